/** Programs that run another one: the inner command must be allowed by itself. */

import { NEEDS_WHOLE_NAMES } from "../feeding.ts";
import { readOptions } from "../options.ts";
import type { PlanWord } from "../plan.ts";
import { Refusal } from "../refusal.ts";
import { FOUND } from "./find.ts";
import { type InnerCommand, type ProgramTable, program } from "./program.ts";
import { smallNumbers } from "./widths.ts";

const xargsRule = program({
  flags: "0rtx",
  valued: "nLPdsI",
  long: "null no-run-if-empty max-args= max-lines? max-procs= delimiter= exit verbose",
  strict: true,
}).rule;

const readXargs = (words: readonly PlanWord[], inner: InnerCommand): readonly PlanWord[] => {
  const { operands, options: given } = readOptions("xargs", words, xargsRule);
  const options = words.slice(0, words.length - operands.length);
  const [name] = operands;
  // What xargs does without a command, written out.
  if (!name) return [...options, { text: "echo" }];
  smallNumbers("xargs", "P", "n", "L", "s", "max-procs", "max-args", "max-lines")({ options: given, operands });
  for (const { name: option, value = "" } of given) {
    if (/^(d|delimiter)$/.test(option) && !/^(\\[n0]|\n)$/.test(value))
      throw new Refusal("xargs -d takes '\\n' or '\\0'; other signs could make other names of those that were listed");
    if (/^(P|max-procs)$/.test(option) && !/^([1-9]|1[0-6])$/.test(value)) throw new Refusal("xargs -P takes 1 to 16");
    if (
      option === "I" &&
      name.text === "jq" &&
      operands.slice(1).some(({ text }) => text.includes(value) && text !== value)
    )
      throw new Refusal("xargs would put names into a jq program; give them as whole words");
    if (option === "I" && (!PLACES.includes(value) || name.text.includes(value)))
      throw new Refusal("xargs -I takes {} and a plain program: xargs -I{} grep TEXT {}");
  }
  const isWhole = given.some(({ name: option }) => option === "0" || option === "null");
  if (NEEDS_WHOLE_NAMES.includes(name.text) && !isWhole)
    throw new Refusal(`${name.text} could take a name for an option; use find DIR … -exec ${name.text} … {} +`);
  return [...options, ...innerOf(operands, { place: given.find(({ name: option }) => option === "I")?.value, inner })];
};

/** Names that turn up are no options: the runner hands over none that begins with a dash. */
const innerOf = (
  operands: readonly PlanWord[],
  { place, inner }: { readonly place: string | undefined; readonly inner: InnerCommand },
): readonly PlanWord[] => {
  if (!NEEDS_WHOLE_NAMES.includes(operands[0]?.text ?? "")) return inner(operands, true);
  if (place === undefined) return inner([...operands, FOUND], false).slice(0, -1);
  const judged = inner(
    operands.map((word) => (word.text === place ? FOUND : word)),
    false,
  );
  return judged.map((word) => (word.text === FOUND.text && word.pattern ? { text: place } : word));
};

const PLACES: readonly string[] = ["{}", "%", "@"];

const readTimeout = (words: readonly PlanWord[], inner: InnerCommand): readonly PlanWord[] => {
  const [limit, ...command] = words;
  if (!limit || !/^0*[1-9]\d*(\.\d+)?[smh]?$/.test(limit.text))
    throw new Refusal("timeout takes a number of seconds and a command");
  if (command.length === 0) throw new Refusal("timeout needs a command");
  if (command[0]?.text === "timeout") throw new Refusal("one timeout is enough");
  return [limit, ...inner(command, false)];
};

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

export const wrapperPrograms: ProgramTable = {
  xargs: program({ read: readXargs }),
  timeout: program({ read: readTimeout }),
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
