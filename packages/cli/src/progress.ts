/** One line that says what is going on, on a terminal only.
 *  Invariant: it is gone before anything else is printed, and never stands in a file or a pipe. */

import type { Io } from "./io.ts";

export type Progress = { readonly show: (line: string) => void; readonly clear: () => void };

const CLEAR_LINE = "\r\u001b[2K";

export const progressLine = (io: Io): Progress => {
  let shown = "";
  return {
    show: (line) => {
      if (!io.isTerminal || line === shown) return;
      shown = line;
      io.err(`${CLEAR_LINE}${line}`);
    },
    clear: () => {
      if (shown !== "") io.err(CLEAR_LINE);
      shown = "";
    },
  };
};
