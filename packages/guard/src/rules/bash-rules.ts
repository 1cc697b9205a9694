/** Does a command match a Bash rule?
 *  Invariant: one rule is read in two ways. To allow, the words must be exactly those of the rule, with nothing computed, set or
 *  redirected around them. To ask or deny, it is enough that the command could run what the rule names, anywhere in the text; a
 *  text that cannot be parsed matches every such rule.
 *  Elsewhere: where a command could start (programs-with-programs.ts), rules of other tools (rules.ts). */

import { programOf, type Start, type Starts } from "./programs-with-programs.ts";
import { coversRest } from "./running-options.ts";
import {
  COMPUTED,
  couldBe,
  isLiteral,
  readShell,
  type ShellCommand,
  type ShellReading,
  type ShellWord,
} from "./shell-words.ts";

export type BashPattern = {
  /** The words of the command. ANY_WORD stands for one word; to allow, only for one that is not an option. */
  readonly words: readonly string[];
  /** Further words may follow. */
  readonly more: boolean;
};

/** `*` as a word of a rule: a character that nobody writes, so that a quoted star stays a star. */
const ANY_WORD = "\u{f0000}";

/** The pattern in `Bash(…)`, or why it is invalid. */
export const parseBashPattern = (text: string): BashPattern | string => {
  const ending = /(?::\*|\s\*)$/.exec(text);
  const body = text.slice(0, ending?.index ?? text.length);
  if (body.trim() === "" || body.includes(ANY_WORD)) return "names no command";
  const reading = readShell(body.replace(/(?<=\s)\*(?=\s|$)/g, ANY_WORD));
  if (reading.kind === "unread") return `is not a command: ${reading.reason}`;
  const [command, ...others] = reading.commands;
  if (!command || others.length > 0 || reading.definesFunction)
    return "must name one simple command, without | && ; or $( )";
  if (command.assignments.length > 0) return "must not set variables";
  if (command.redirects.length > 0 || command.input.length > 0) return "must not redirect";
  if (!command.words.every(isLiteral))
    return "must be plain words; use `*` only as a separate word, or as `:*` at the end";
  return { words: command.words.map((word) => word.text), more: ending !== null };
};

// --- to allow ----------------------------------------------------------------------------------------------------------

/** Joining descriptors and discarding output have no effect on files. */
const isHarmless = ({ operator, target }: ShellCommand["redirects"][number]): boolean => {
  const text = target?.text ?? "";
  if (operator === ">&") return /^[12]$/.test(text);
  return [">", ">>", "&>"].includes(operator) && text === "/dev/null";
};

/** Whether the command is exactly what the rule allows. */
export const allowsCommand = ({ words, more }: BashPattern, command: ShellCommand): boolean => {
  if (command.assignments.length > 0 || command.input.length > 0) return false;
  if (!command.redirects.every(isHarmless)) return false;
  if (command.words.length < words.length || (!more && command.words.length > words.length)) return false;
  const rest = command.words.slice(words.length).map(({ text }) => text);
  if (
    more &&
    !coversRest(
      command.words.slice(0, words.length).map(({ text }) => text),
      rest,
    )
  )
    return false;
  return words.every((text, index) => {
    const word = command.words[index];
    if (word === undefined || !isLiteral(word) || word.home) return false;
    return text === ANY_WORD ? isPlainOperand(word.text) : word.text === text;
  });
};

/** The author of `git push * main` means a name. An option (`--receive-pack=./evil`), a forced ref (`+main`) and an address
 *  that names a program (`ext::sh …`) do something else. */
const isPlainOperand = (text: string): boolean => text !== "" && !/^[-+]/.test(text) && !text.includes("::");

// --- to ask or deny ------------------------------------------------------------------------------------------------------

/** Whether some part of the text could run what the rule names. */
export const couldRun = (pattern: BashPattern, starts: Starts): boolean =>
  starts.kind === "unread" || starts.starts.some((start) => startsLike(pattern.words, start));

/** Whether the text names the rule's program literally, so that it is certain and not only possible. */
export const namesProgram = (pattern: BashPattern, starts: Starts): boolean =>
  starts.kind === "starts" &&
  starts.starts.some((start) => {
    const head = start.words[start.at];
    return head !== undefined && isLiteral(head) && startsLike(pattern.words, start);
  });

/** The same for a text that runs as a plan, where every program is known by name. */
export const runsAsPlanned = (pattern: BashPattern, starts: Starts, reading: ShellReading): boolean => {
  if (starts.kind === "starts") return namesProgram(pattern, starts);
  if (reading.kind === "unread") return true;
  const all = reading.commands.flatMap(({ words }) => words.map((_, at) => ({ words, at })));
  return all.length > MOST_PLANNED || namesProgram(pattern, { kind: "starts", starts: all });
};

const MOST_PLANNED = 2_000;

const startsLike = ([program = "", ...rest]: readonly string[], { words, at }: Start): boolean => {
  const head = words[at];
  if (!head || !couldBe(programOf(head), (program.split("/").at(-1) ?? "").toLowerCase())) return false;
  if (head.spreads && head.text.includes(COMPUTED)) return true;
  const after = words.slice(at + 1);
  const operands = rest.filter((text) => !isOption(text));
  const isGit = programOf(head) === "git";
  const has = (option: string): boolean =>
    hasOption(option, after) || hasShortForm(option, after, isGit) || (isGit && forcesByName(option, after));
  return rest.filter(isOption).every(has) && hasOperands(operands, after);
};

const isOption = (text: string): boolean => /^-./.test(text);

/** Operands in the rule's order; options and their values may be in between. */
const hasOperands = (wanted: readonly string[], words: readonly ShellWord[]): boolean => {
  let next = 0;
  for (let at = 0; at < words.length && next < wanted.length; at++) {
    const word = words[at];
    const text = wanted[next];
    if (!word || text === undefined) return false;
    if (word.spreads && word.text.includes(COMPUTED)) return true;
    if (text === ANY_WORD ? !isOption(word.text) : couldBe(word.text, text)) next++;
    else if (!isOption(word.text) && !isOption(words[at - 1]?.text ?? "")) return false;
  }
  return next === wanted.length;
};

/** Letters that programs commonly give these options. */
const SHORT: Readonly<Record<string, string>> = {
  "--recursive": "rR",
  "--force": "f",
  "--no-verify": "n",
  "--delete": "dD",
  "--global": "g",
  "--in-place": "i",
  "--interactive": "i",
  "--output": "o",
  "--remote-name": "O",
  "--data": "d",
  "--request": "X",
  "--upload-file": "T",
  "--insecure": "k",
  "--all": "aA",
  "--yes": "y",
  "--amend": "",
};

/** Long spellings of letters that rules like `rm -rf` name. */
const LONG: Readonly<Record<string, string>> = {
  r: "--recursive",
  R: "--recursive",
  f: "--force",
  n: "--no-verify",
  g: "--global",
  i: "--in-place",
};

/** `-f` for `--force`. After a letter of git that takes a value comes the value. */
const hasShortForm = (option: string, words: readonly ShellWord[], isGit: boolean): boolean => {
  const letters = SHORT[option] ?? "";
  return words.some(({ text }) => {
    const cluster = /^-([a-zA-Z]+)/.exec(text)?.[1] ?? "";
    const own = isGit ? cluster.replace(/[mFCct].*$/s, "") : cluster;
    return [...own].some((letter) => letters.includes(letter));
  });
};

/** `git push origin +main` forces like `--force`. */
const forcesByName = (option: string, words: readonly ShellWord[]): boolean =>
  /^(?:--force|-f)$/.test(option) &&
  words.some(({ text }) => text === "push") &&
  words.some(({ text }) => /^\+/.test(text));

/** Options count in any position; letters count combined or separate, in any order. */
const hasOption = (option: string, words: readonly ShellWord[]): boolean => {
  if (words.some(({ text }) => couldBe(text, option) || text.slice(0, option.length + 1) === `${option}=`)) return true;
  // Programs accept abbreviated long options if they are unambiguous.
  if (/^--./.test(option))
    return words.some(({ text }) => /^--\w/.test(text) && option.startsWith(text.split("=")[0] ?? text));
  const clusters = words.map(({ text }) => text).filter((text) => /^-[^-]/.test(text));
  return [...option.slice(1)].every((letter) => {
    const long = LONG[letter];
    const spelled = long && words.some(({ text }) => text.length > 3 && long.slice(0, text.length) === text);
    const letters = LONG[letter] === "--recursive" ? ["r", "R"] : [letter];
    return spelled || clusters.some((text) => letters.some((either) => text.slice(1).includes(either)));
  });
};
