/** xargs: runs another program with names that only turn up when it runs.
 *  Invariant: every option is one word and stands once, so that the runner reads them without knowing their arity; a
 *  placeholder stands only where the inner program takes data, never in a program, an option or a format.
 *  Elsewhere: who may hand names over (../feeding.ts), reading them as xargs would (../../run). */

import { NEEDS_WHOLE_NAMES } from "../indirect-reads.ts";
import { readOptions } from "../options.ts";
import type { PlanWord } from "../plan.ts";
import { Refusal } from "../refusal.ts";
import { FOUND_NAMES } from "./find.ts";
import { type InnerCommand, limitNumbers, type ProgramTable, program } from "./program.ts";

const rule = program({
  flags: "0rtx",
  valued: "nLPdsI",
  long: "null no-run-if-empty max-args= max-lines? max-procs= delimiter= exit verbose",
  optionsFirst: true,
}).rule;

/** Long names and their letters. */
const LETTERS: Readonly<Record<string, string>> = {
  null: "0",
  "no-run-if-empty": "r",
  verbose: "t",
  exit: "x",
  "max-args": "n",
  "max-lines": "L",
  "max-procs": "P",
  delimiter: "d",
};

/** Signs that may stand for a name. */
const PLACEHOLDERS: readonly string[] = ["{}", "%", "@"];

const checkValue = (letter: string, value: string): void => {
  if (letter === "d" && !/^(?:\\[n0]|\n)$/.test(value))
    throw new Refusal("xargs -d takes '\\n' or '\\0'; other signs could make other names of those that were listed");
  if (letter === "P" && !/^(?:[1-9]|1[0-6])$/.test(value)) throw new Refusal("xargs -P takes 1 to 16");
  if (/^[nLs]$/.test(letter) && !/^[1-9]\d{0,5}$/.test(value)) throw new Refusal(`xargs -${letter} takes a number`);
  if (letter === "I" && !PLACEHOLDERS.includes(value))
    throw new Refusal("xargs -I takes {} and a plain program: xargs -I{} grep TEXT {}");
};

type Options = ReadonlyMap<string, string>;

/** Each option by its letter; where several contradict each other, xargs lets the last win and we take none. */
const readLetters = (given: ReturnType<typeof readOptions>["options"]): Options => {
  const found = new Map<string, string>();
  for (const { name, value = "" } of given) {
    const letter = LETTERS[name] ?? name;
    if (found.has(letter)) throw new Refusal(`xargs -${letter} stands twice; give it once`);
    const meant = name === "max-lines" && value === "" ? "1" : value;
    checkValue(letter, meant);
    found.set(letter, meant);
  }
  // One name a time is what -I does anyway.
  if (found.has("I") && found.get("n") === "1") found.delete("n");
  if (found.has("0") && found.has("d")) throw new Refusal("xargs takes -0 or -d, not both");
  if (["I", "n", "L"].filter((letter) => found.has(letter)).length > 1)
    throw new Refusal("xargs takes one of -I, -n and -L");
  return found;
};

/** Words of the inner command with the placeholder in them: data, wherever the inner program does not want a plain word. */
const markPlaceholders = (operands: readonly PlanWord[], place: string): readonly PlanWord[] =>
  operands.map((word, at) => {
    if (word.pattern) throw new Refusal("xargs -I takes plain words; a file could have the placeholder in its name");
    if (!word.text.includes(place)) return word;
    if (at === 0 || word.text.startsWith("-") || word.home)
      throw new Refusal(
        `xargs -I: ${place} may stand for data, not in a program or an option: xargs -I{} grep TEXT {}`,
      );
    return { ...word, pattern: true, placeholder: true };
  });

const withoutMarks = (words: readonly PlanWord[]): readonly PlanWord[] =>
  words.map(({ text, searchText, placeholder, pattern, home }) => ({
    text,
    ...(searchText ? { searchText } : {}),
    ...(pattern && !placeholder ? { pattern } : {}),
    ...(home ? { home } : {}),
  }));

/** Names that turn up are no options: the runner hands over none that begins with a dash. */
const readInnerCommand = (
  operands: readonly PlanWord[],
  options: Options,
  inner: InnerCommand,
): readonly PlanWord[] => {
  const place = options.get("I");
  if (place !== undefined) return withoutMarks(inner(markPlaceholders(operands, place), "placed"));
  if (!NEEDS_WHOLE_NAMES.includes(operands[0]?.text ?? "")) return inner(operands, "last");
  return inner([...operands, FOUND_NAMES], "none").slice(0, -1);
};

const readXargs = (words: readonly PlanWord[], inner: InnerCommand): readonly PlanWord[] => {
  const given = readOptions("xargs", words, rule);
  limitNumbers("xargs", "P", "n", "L", "s", "max-procs", "max-args", "max-lines")(given);
  const letters = readLetters(given.options);
  const options = [...letters].map(([letter, value]): PlanWord => ({ text: `-${letter}${value}` }));
  const [name] = given.operands;
  // What xargs does without a command, written out.
  if (!name) return [...options, { text: "echo" }];
  const isWhole = letters.has("0");
  if (NEEDS_WHOLE_NAMES.includes(name.text) && !isWhole)
    throw new Refusal(`${name.text} could take a name for an option; use find DIR … -exec ${name.text} … {} +`);
  return [...options, ...readInnerCommand(given.operands, letters, inner)];
};

export const xargsPrograms: ProgramTable = { xargs: program({ read: readXargs }) };
