/** Programs that tell what is installed.
 *  Invariant: they only query the package database; no package file is opened, and nothing is fetched or cached. */

import { readOptions } from "../options.ts";
import type { PlanWord } from "../plan.ts";
import { Refusal } from "../refusal.ts";
import { type ProgramTable, program } from "./program.ts";

const QUESTION = /^(-[lLsSp]|--(list|listfiles|status|search|print-avail|get-selections|print-architecture|version))$/;

const HELP = "dpkg may only query: dpkg -l, dpkg -L PACKAGE, dpkg -s PACKAGE, dpkg -S FILE";

/** One query option, then plain names. */
const readDpkg = (words: readonly PlanWord[]): readonly PlanWord[] => {
  const [question, ...names] = words;
  if (!question || question.pattern || !QUESTION.test(question.text)) throw new Refusal(HELP, "write");
  if (names.some(({ text }) => text.startsWith("-"))) throw new Refusal(HELP);
  return words;
};

const queryRule = program({
  flags: "WlsLSp",
  valued: "f",
  long: "show list status listfiles search print-avail showformat= no-pager version",
}).rule;

const readQuery = (words: readonly PlanWord[]): readonly PlanWord[] => {
  const { options } = readOptions("dpkg-query", words, queryRule);
  // `${Package;20}` pads to a width, too.
  if (options.some(({ value = "" }) => /\d{4}/.test(value)))
    throw new Refusal("dpkg-query -f accepts widths of at most three digits");
  return words;
};

export const packagePrograms: ProgramTable = {
  dpkg: program({ read: readDpkg }),
  "dpkg-query": program({ read: readQuery }),
};
