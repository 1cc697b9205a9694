/** Shell words that ask where a program is, and the names under which programs are really found.
 *  Elsewhere: words that only say how a program is run (../classify.ts). */

import type { PlanWord } from "../plan.ts";
import { Refusal } from "../refusal.ts";
import { type ProgramTable, program } from "./program.ts";

/** `command -v NAME` and `type NAME` ask where a program is: `which` answers the same. */
const readLookup =
  (option: RegExp) =>
  (words: readonly PlanWord[]): readonly PlanWord[] => {
    const names = words.filter(({ text }) => !option.test(text));
    if (
      names.length === 0 ||
      names.some(({ text, pattern }) => pattern || !/^[\w.+-]+$/.test(text) || text.startsWith("-"))
    ) {
      throw new Refusal("ask for programs by name: command -v NAME");
    }
    return names;
  };

export const lookupPrograms: ProgramTable = {
  command: program({
    read: (words) => {
      if (words[0]?.text !== "-v" && words[0]?.text !== "-V")
        throw new Refusal("command may only look: command -v NAME");
      return readLookup(/^-[vV]$/)(words);
    },
  }),
  type: program({ read: readLookup(/^-[apPt]$/) }),
};

/** Shell words that stand for a program of the same use. */
export const STANDS_FOR: Readonly<Record<string, string>> = {
  command: "which",
  type: "which",
  ":": "true",
  hd: "hexdump",
};
