/** xargs: runs another program with names that are known only at run time.
 *  Invariant: every option is a single word and occurs once, so the runner can read the options without knowing which take a
 *  value. A placeholder occurs only where the inner program takes data, never in a program's name, an option or a format.
 *  Elsewhere: which programs may supply names (../indirect-reads.ts), reading them as xargs would (../../run). */

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

/** Placeholders that -I accepts. */
const PLACEHOLDERS: readonly string[] = ["{}", "%", "@"];

const checkValue = (letter: string, value: string): void => {
  if (letter === "d" && !/^(?:\\[n0]|\n)$/.test(value))
    throw new Refusal("xargs -d takes '\\n' or '\\0'; other delimiters could turn listed names into different ones");
  if (letter === "P" && !/^(?:[1-9]|1[0-6])$/.test(value)) throw new Refusal("xargs -P takes a number from 1 to 16");
  if (/^[nLs]$/.test(letter) && !/^[1-9]\d{0,5}$/.test(value))
    throw new Refusal(`xargs -${letter} takes a positive number`);
  if (letter === "I" && !PLACEHOLDERS.includes(value))
    throw new Refusal("xargs -I takes {}, % or @ as its placeholder: xargs -I{} grep TEXT {}");
};

type Options = ReadonlyMap<string, string>;

/** Each option by its letter. If options contradict each other, xargs lets the last win; we refuse the command. */
const readLetters = (given: ReturnType<typeof readOptions>["options"]): Options => {
  const found = new Map<string, string>();
  for (const { name, value = "" } of given) {
    const letter = LETTERS[name] ?? name;
    if (found.has(letter)) throw new Refusal(`xargs -${letter} is given twice; give it once`);
    const effective = name === "max-lines" && value === "" ? "1" : value;
    checkValue(letter, effective);
    found.set(letter, effective);
  }
  // -I passes one name at a time anyway.
  if (found.has("I") && found.get("n") === "1") found.delete("n");
  if (found.has("0") && found.has("d")) throw new Refusal("xargs takes -0 or -d, not both");
  if (["I", "n", "L"].filter((letter) => found.has(letter)).length > 1)
    throw new Refusal("xargs takes only one of -I, -n and -L");
  return found;
};

/** Marks the words of the inner command that contain the placeholder. They are data, so options and programs may not. */
const markPlaceholders = (operands: readonly PlanWord[], place: string): readonly PlanWord[] =>
  operands.map((word, at) => {
    if (word.pattern)
      throw new Refusal("xargs -I takes plain words; a pattern could match a file with the placeholder in its name");
    if (!word.text.includes(place)) return word;
    if (at === 0 || word.text.startsWith("-") || word.home)
      throw new Refusal(
        `xargs -I: ${place} may only stand for data, not for a program or an option: xargs -I{} grep TEXT {}`,
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

/** Names from the pipe are never options: the runner passes on none that starts with a dash. */
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
  // Without a command, xargs runs echo.
  if (!name) return [...options, { text: "echo" }];
  const isWhole = letters.has("0");
  if (NEEDS_WHOLE_NAMES.includes(name.text) && !isWhole)
    throw new Refusal(`${name.text} could mistake a name for an option; use find DIR … -exec ${name.text} … {} +`);
  return [...options, ...readInnerCommand(given.operands, letters, inner)];
};

export const xargsPrograms: ProgramTable = { xargs: program({ read: readXargs }) };
