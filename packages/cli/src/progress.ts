/** One line that says what is happening, on a terminal only.
 *  Invariant: the line is removed before anything else is printed, takes one row, and is never written to a file or pipe. */

import type { Io } from "./io.ts";
import { terminalColumns, truncateText } from "./width.ts";

export type Progress = { readonly show: (line: string) => void; readonly clear: () => void };

const CLEAR_LINE = "\r\u001b[2K";

export const progressLine = (io: Io): Progress => {
  let shown = "";
  return {
    show: (line) => {
      if (!io.isTerminal || line === shown) return;
      shown = line;
      io.err(`${CLEAR_LINE}${truncateText(line, terminalColumns() ?? Number.POSITIVE_INFINITY)}`);
    },
    clear: () => {
      if (shown !== "") io.err(CLEAR_LINE);
      shown = "";
    },
  };
};
