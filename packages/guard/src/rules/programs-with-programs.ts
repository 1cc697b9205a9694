/** Which programs run other programs? Where in a command could another command start?
 *  Invariant: the answer errs towards "could"; only programs known to take plain data end the search.
 *  Elsewhere: parsing the text (shell-words.ts), comparing with a rule (bash-rules.ts). */

import { COMPUTED, couldBe, readShell, type ShellCommand, type ShellReading, type ShellWord } from "./shell-words.ts";
import {
  isDescriptor,
  NOTHING_WRITTEN,
  type Reader,
  readerIn,
  runsByName,
  runsOfSed,
  type Written,
  writtenIn,
} from "./unseen-programs.ts";
import { type Levels, NO_LEVELS } from "./variable-values.ts";

/** A place where a command could start: the words from `at` on. */
export type Start = { readonly words: readonly ShellWord[]; readonly at: number };

export type Starts =
  | { readonly kind: "starts"; readonly starts: readonly Start[] }
  | { readonly kind: "unread"; readonly reason: string };

const SHELLS = new Set("sh bash zsh dash ksh ash fish csh tcsh eval source . trap mksh rbash".split(" "));

/** Programs that run their arguments and read no input. */
const RUNS_ARGUMENTS = new Set([".", "source", "eval", "trap"]);

/** Wrappers: their first word that is not an option, number or variable is the command they run. */
const WRAPPERS = new Set(
  (
    "sudo doas su env command builtin exec nohup setsid nice ionice chrt timeout time stdbuf xargs parallel watch " +
    "busybox toybox chroot unshare nsenter flock strace ltrace then do else if elif while until coproc script " +
    "runuser pkexec systemd-run firejail bwrap caffeinate arch taskset prlimit setarch unbuffer entr"
  ).split(" "),
);

/** Their arguments are text, names or files, and are never run. */
const CONSUMERS = new Set(
  (
    "echo printf cat head tail wc uniq cut tr grep egrep fgrep ls stat file du df tree jq pwd cd mkdir rmdir rm mv cp " +
    "ln touch chmod chown basename dirname realpath readlink date diff cmp test [ true false sleep seq which type tee " +
    "whoami id uname nl tac rev fold paste comm join md5sum sha1sum sha256sum cksum strings od export kill"
  ).split(" "),
);

/** Programs whose arguments are data after these subcommands. */
const DATA_SUBCOMMANDS: Readonly<Record<string, ReadonlySet<string>>> = {
  git: new Set(
    (
      "status log diff show add commit push pull fetch branch checkout switch merge rm mv tag stash restore reset " +
      "remote blame ls-files rev-parse clean revert cherry-pick describe shortlog init clone"
    ).split(" "),
  ),
  npm: new Set("install i ci rm uninstall remove test t run ls list outdated view info audit version".split(" ")),
  pnpm: new Set("install i add rm remove test run list outdated".split(" ")),
  yarn: new Set("install add remove test run list outdated".split(" ")),
  cargo: new Set("add rm remove build check test clippy fmt doc tree metadata".split(" ")),
  docker: new Set("ps images logs rm rmi stop start restart pull inspect kill".split(" ")),
};

/** Options (long ones also abbreviated) and addresses that make otherwise plain programs start another one. */
const RUNNING_WORD = /^(?:-c|-x|-O|-u|--up|--rec|--ex|--op|--conf|--pre|--script)|::/;
const COMMAND_OPTION = /^(?:-exec|-execdir|-ok|-okdir|-c|-e|-x|--exec|--command|--eval)$/;
const DEEPEST = 8;
const MOST_STARTS = 600;
const MOST_RUNS = 20;

export const programOf = (word: ShellWord): string => (word.text.split("/").at(-1) ?? "").toLowerCase();

const isOption = ({ text }: ShellWord): boolean => /^-./.test(text);
const isAssignment = ({ text }: ShellWord): boolean => /^\w+=/.test(text);
const isNumber = ({ text }: ShellWord): boolean => /^[\d.]+[smhd]?$/.test(text);
const isComputed = ({ text }: ShellWord): boolean => text.includes(COMPUTED);

/** Whether this program takes the rest of its words as data. */
const consumes = (words: readonly ShellWord[], at: number): boolean => {
  const head = words[at];
  if (!head || isComputed(head)) return false;
  const program = programOf(head);
  const rest = words.slice(at + 1);
  // The variable name after -v may have an index, which bash evaluates.
  const indexes = /^(?:printf|test|\[)$/.test(program) && rest.some(({ text }) => /^-v/.test(text));
  if (CONSUMERS.has(program)) return !indexes;
  if (program === "command") return rest[0]?.text === "-v" || rest[0]?.text === "-V";
  if (program === "rg") return !rest.some(({ text }) => /^--(?:pre|hostname-bin)|^\0/.test(text));
  const subcommands = DATA_SUBCOMMANDS[program];
  const first = rest[0];
  return first !== undefined && !!subcommands?.has(first.text) && !rest.some(({ text }) => RUNNING_WORD.test(text));
};

/** Every position in a text where a command could start, including texts inside words. */
export const startsIn = (reading: ShellReading): Starts => {
  const starts: Start[] = [];
  const problem = collect(reading, { starts, depth: 0 });
  return problem === undefined ? { kind: "starts", starts } : { kind: "unread", reason: problem };
};

const TOO_MANY = "too many of its words could be commands";

const UNSEEN = "bash would evaluate a text in it that could run any command; write numbers and names out";

type Collection = {
  readonly starts: Start[];
  readonly depth: number;
  readonly levels?: Levels;
  /** A text that an interpreter could read as its program. */
  readonly written?: Written;
  /** The text is such a program itself. */
  readonly isWritten?: true;
};

/** A text that is a word of another text. */
const collectInner = (text: string, into: Collection): string | undefined =>
  collect(readShell(text, into.levels ?? NO_LEVELS), { ...into, depth: into.depth + 1 });

const collect = (reading: ShellReading, into: Collection): string | undefined => {
  if (reading.kind === "unread") return reading.reason;
  if (into.depth > DEEPEST) return "commands are nested too deeply";
  if (reading.evaluatesUnseen && into.depth === 0) return UNSEEN;
  if (reading.evaluatesUnseen) into.starts.push({ words: ANY_COMMAND, at: 0 });
  const written = writtenIn(reading.commands, into.written);
  const inside: Collection = { ...into, levels: reading.levels, written };
  for (const command of reading.commands) {
    const problem = collectCommand(command, inside);
    if (problem !== undefined) return problem;
    if (into.starts.length > MOST_STARTS) return TOO_MANY;
  }
  if (into.isWritten) return undefined;
  const readers = new Set(reading.commands.map((command) => readerOf(command, written)));
  return collectWritten(readers, inside);
};

const readerOf = (command: ShellCommand, written: Written): Reader => {
  const words = withReplacements(command.words);
  if (words.length === 0) return "none";
  if (takesPlainData(words)) return words.some((word) => runsByName(programOf(word), written.files)) ? "shell" : "none";
  return readerIn(command, words, { places: commandPlaces(words), written });
};

/** Text that appears in commands, if one of them could take it as its program. */
export const readAsPrograms = (commands: readonly ShellCommand[]): readonly string[] => {
  const written = writtenIn(commands);
  const isRead = commands.some((command) => readerOf(command, written) !== "none");
  return isRead ? written.texts.map(({ text }) => text) : [];
};

/** Any text that a command prints may be what an interpreter reads. */
const collectWritten = (readers: ReadonlySet<Reader>, into: Collection): string | undefined => {
  if (!readers.has("shell") && !readers.has("other")) return undefined;
  const inside: Collection = { ...into, written: NOTHING_WRITTEN, isWritten: true };
  for (const { text, isWhole } of into.written?.texts ?? []) {
    const problem = readers.has("shell") ? collectInner(text, inside) : undefined;
    if (problem !== undefined && isWhole) return problem;
    if (!isWhole || readers.has("other")) collectLoose(text, into);
    if (into.starts.length > MOST_STARTS) return TOO_MANY;
  }
  return undefined;
};

const ANY_COMMAND: readonly ShellWord[] = [{ text: COMPUTED, spreads: true, home: false }];

const collectCommand = (command: ShellCommand, into: Collection): string | undefined => {
  const words = withReplacements(command.words);
  const head = words[0];
  collectSettings(command, into);
  if (!head) return undefined;
  into.starts.push({ words, at: 0 });
  collectCopies(words, into);
  if (givesGitNames(command)) into.starts.push({ words: [{ ...head, text: "git" }, ...ANY_COMMAND], at: 0 });
  if (givesNames(words) || evaluatesAny(words) || runsFolder(words)) into.starts.push({ words: ANY_COMMAND, at: 0 });
  if (consumes(words, 0)) return undefined;
  const plainPath = pathToConsumer(words);
  const end = plainPath ?? words.length;
  const places = commandPlaces(words);
  for (let at = 1; at < Math.min(end + 1, words.length); at++) {
    if (into.starts.length > MOST_STARTS) return TOO_MANY;
    collectAt(words, at, { ...into, isPlace: places[at] === true });
  }
  if (plainPath !== undefined) return undefined;
  if (readsCommands(command, words)) into.starts.push({ words: ANY_COMMAND, at: 0 });
  return collectTexts(command, words, into);
};

/** A program that the same text copied, moved or linked goes by another name now. */
const collectCopies = (words: readonly ShellWord[], { starts, written }: Collection): void => {
  if (!written || written.copies.size === 0) return;
  const places = commandPlaces(words);
  for (const [at, word] of words.entries()) {
    if (places[at] !== true || (at > 0 && !word.text.includes("/"))) continue;
    for (const source of written.copies.get(programOf(word)) ?? [])
      if (starts.length <= MOST_STARTS) starts.push({ words: [source, ...words.slice(at + 1)], at: 0 });
  }
};

/** Variables whose value some programs run as a command. */
const RUN_BY_NAME =
  /(?:EDITOR|PAGER|COMMAND|_CMD|ASKPASS|WRAPPER|_RSH|_SSH)$|^(?:BROWSER|VISUAL|FCEDIT|LESSOPEN|LESSCLOSE|SHELL|GIT_EXTERNAL_DIFF|PS[0-4])$/;

/** `GIT_EDITOR='git push' git commit`, `CC=rm make`: a program may run the value of a variable as a command. */
const collectSettings = ({ words, assigned }: ShellCommand, into: Collection): void => {
  const given = words.flatMap((word) => {
    const [, name = "", text = ""] = /^(\w+)=(.*)$/s.exec(word.text) ?? [];
    return name === "" ? [] : [{ name, value: { ...word, text } }];
  });
  for (const { name, value } of [...assigned, ...given]) {
    const isRun = RUN_BY_NAME.test(name);
    // Not set for a program; what bash does with it is visible where it is used.
    if (!isRun && (words.length === 0 || isComputed(value))) continue;
    into.starts.push({ words: [value], at: 0 });
    const text = value.text.replace(/^[|-]+/, "");
    if (text !== value.text) into.starts.push({ words: [{ ...value, text }], at: 0 });
    const isText = /[^\w@%+=:,./-]/.test(text);
    if (isText && collectInner(text, into) !== undefined && isRun) into.starts.push({ words: ANY_COMMAND, at: 0 });
    if (isText || /[=:,-]/.test(text)) collectLoose(text, into);
  }
};

/** With aliases, git can do anything under any name. */
const givesGitNames = ({ words, assignments }: ShellCommand): boolean =>
  words.some((word) => programOf(word) === "git") &&
  (words.some(({ text }) => /^(?:--config-env=)?alias\./i.test(text)) ||
    assignments.some((name) => /^GIT_CONFIG/.test(name)));

/** `alias g=git` and `hash -p /usr/bin/git g` run a program under another name. */
const givesNames = ([head, ...rest]: readonly ShellWord[]): boolean => {
  const program = head ? programOf(head) : "";
  if (program === "builtin" || program === "command") return givesNames(rest);
  if (program === "alias") return rest.some(({ text }) => /[=\0]/.test(text));
  return program === "hash" && rest.some(({ text }) => /^-[a-z]*p|\0/.test(text));
};

/** `run-parts DIR` runs every program in the folder. */
const runsFolder = (words: readonly ShellWord[]): boolean => {
  const places = commandPlaces(words);
  return words.some((word, at) => places[at] === true && programOf(word) === "run-parts");
};

/** `"$x" "$y"`: x may be eval, and y any text. */
const evaluatesAny = ([head, ...rest]: readonly ShellWord[]): boolean =>
  head !== undefined && isComputed(head) && couldBe(programOf(head), "eval") && rest.some(isComputed);

/** A text attached to its option, as in `env -S'git push'`. To env, `\\_` is a blank. */
const textsIn = (text: string): readonly string[] => {
  const texts = /^-[a-zA-Z]/.test(text) ? [text, ...[2, 3, 4].map((letters) => text.slice(letters))] : [text];
  return /\\[_cfnrtv]/.test(text) ? [...texts, ...texts.map((one) => one.replace(/\\[_cfnrtv]/g, " "))] : texts;
};

/** Words and standard input that are themselves a text with commands. */
const collectTexts = (command: ShellCommand, words: readonly ShellWord[], into: Collection): string | undefined => {
  const forShell = words.some((word) => SHELLS.has(programOf(word)));
  const forWrapper = words.some((word) => WRAPPERS.has(programOf(word)));
  const forSed = words.some((word) => /^g?sed$/.test(programOf(word)));
  for (const word of command.input) into.starts.push({ words: [word], at: 0 });
  for (const { text } of [...words.slice(1), ...command.input]) {
    if (into.starts.length > MOST_STARTS) return TOO_MANY;
    const isText = forShell ? /[^\w@%+=:,./-]/.test(text) : /[^\w@%+=:,./\0-]/.test(text);
    if (!isText && forSed && runsOfSed(text)) collectSed(text, into);
    if (!isText) continue;
    if (forShell || forWrapper) {
      for (const part of textsIn(text)) {
        const problem = collectInner(part, into);
        if (problem !== undefined && forShell && part === text) return problem;
      }
    }
    if (!forShell) collectLoose(text, into);
  }
  return undefined;
};

const MOST_DELIMITERS = 8;

/** The parts of `s/x/program/e`; any character may be the delimiter. */
const collectSed = (text: string, into: Collection): void => {
  collectLoose(text, into);
  const signs = new Set([...text.matchAll(/s(\w)/g)].slice(0, MOST_DELIMITERS).map(([, sign = ""]) => sign));
  for (const sign of signs) collectLoose(text.split(sign).join(" "), into);
};

/** `sudo grep x`: the position of a data program that only wrappers, numbers and variables precede. */
const pathToConsumer = (words: readonly ShellWord[]): number | undefined => {
  for (let at = 0; at < words.length; at++) {
    const word = words[at];
    if (!word) return undefined;
    if (at > 0 && consumes(words, at)) return at;
    if (!WRAPPERS.has(programOf(word)) && !(at > 0 && (isNumber(word) || isAssignment(word)))) return undefined;
  }
  return undefined;
};

const collectAt = (
  words: readonly ShellWord[],
  at: number,
  { starts, isPlace }: Collection & { readonly isPlace: boolean },
): void => {
  const word = words[at];
  if (!word) return;
  for (const value of new Set([...valuesOf(word.text), ...gluedTo(words, at)])) {
    starts.push({ words: [{ ...word, text: value }, ...words.slice(at + 1)], at: 0 });
  }
  // A computed argument is data, unless it is where a command is expected.
  if (!isComputed(word) || isPlace) starts.push({ words, at });
};

/** Option letters that take a program, in any position within a group: `git grep -inOrm`, `man -Prm`. */
const PROGRAM_LETTERS: Readonly<Record<string, string>> = {
  ...{ grep: "O", man: "PH", difftool: "x", rebase: "x", clone: "u", tar: "IF", bsdtar: "I", rsync: "e" },
  ...{ script: "c", su: "c", runuser: "c", flock: "c" },
};

/** `-Xrm` → "rm": the program may be attached to the letter. */
const gluedTo = (words: readonly ShellWord[], at: number): readonly string[] => {
  const text = words[at]?.text ?? "";
  if (!/^-[a-zA-Z]./.test(text)) return [];
  const letters = words.slice(0, at).map((word) => PROGRAM_LETTERS[programOf(word)] ?? "");
  const later = [...text].flatMap((letter, index) => {
    const isTaking = index > 1 && index < text.length - 1 && letters.some((known) => known.includes(letter));
    return isTaking && /^-[a-zA-Z]*$/.test(text.slice(0, index)) ? [text.slice(index + 1)] : [];
  });
  return [text.slice(2), ...later];
};

/** `--action=exec=rm` → "exec=rm" and "rm"; `rm,x` and `ext::rm` → "rm". */
const valuesOf = (text: string): ReadonlySet<string> => {
  const values = [/^[^=]+=(.+)$/s.exec(text)?.[1], /=([^=]+)$/s.exec(text)?.[1]];
  const parts = /,|::|^(?:EXEC|SYSTEM|SHELL):/i.test(text) ? text.split(/,|::?|=/).slice(0, MOST_PARTS) : [];
  return new Set([...values, ...parts].filter((value) => value !== undefined && value !== "") as string[]);
};

const MOST_PARTS = 20;

/** Whether all words go to a program that takes them as data, directly or through wrappers. */
export const takesPlainData = (words: readonly ShellWord[]): boolean =>
  consumes(words, 0) || pathToConsumer(words) !== undefined;

/** For each word: whether a command could be here, because only wrappers, shells and their arguments come before. */
export const commandPlaces = (words: readonly ShellWord[]): readonly boolean[] => {
  let open = true;
  return words.map((word, at) => {
    const previous = words[at - 1];
    const isPlace = at === 0 || open || (previous !== undefined && COMMAND_OPTION.test(previous.text));
    const program = programOf(word);
    const belongs =
      at > 0 && (isOption(word) || isNumber(word) || isAssignment(word) || (!!previous && isOption(previous)));
    open &&= WRAPPERS.has(program) || SHELLS.has(program) || belongs;
    return isPlace;
  });
};

/** A command that a text certainly runs, directly or through programs made for that. */
export type RunCommand = { readonly words: readonly ShellWord[]; readonly command: ShellCommand };

/** Only real commands: text for programs that print or search it is not included. */
export const commandsIn = (reading: ShellReading, depth = 0): readonly RunCommand[] => {
  if (reading.kind === "unread" || depth > DEEPEST) return [];
  return reading.commands.flatMap((command) => {
    const { words } = command;
    const head = words[0];
    if (!head) return [];
    const places = [...commandPlaces(words).entries()].filter(([, isPlace]) => isPlace).slice(0, MOST_RUNS);
    const starts = places.map(([at]) => ({ words: words.slice(at), command }));
    if (!SHELLS.has(programOf(head)) && !WRAPPERS.has(programOf(head))) return starts;
    const texts = [...words.slice(1), ...command.input].filter(({ text }) => /\s|;/.test(text));
    return [...starts, ...texts.flatMap(({ text }) => commandsIn(readShell(text, reading.levels), depth + 1))];
  });
};

export const isShell = (program: string): boolean => SHELLS.has(program);
export const isWrapper = (program: string): boolean => WRAPPERS.has(program);

const operands = (words: readonly ShellWord[]): readonly ShellWord[] =>
  words.filter((word, at) => !isOption(word) && !/^-[a-zA-Z]$/.test(words[at - 1]?.text ?? ""));

/** A shell without a script runs its standard input; so do wrappers that take their command from there. */
const readsCommands = ({ piped, input }: ShellCommand, words: readonly ShellWord[]): boolean =>
  words.some((word, at) => {
    const program = programOf(word);
    const rest = words.slice(at + 1);
    if (program === "parallel") return piped && !rest.some((next) => !isOption(next));
    if (program === "at" || program === "batch" || program === "crontab") return piped;
    if (program === "ssh") return piped && operands(rest).length < 2;
    if (!SHELLS.has(program)) return false;
    if (rest.some(({ text }) => text === "--version" || text === "--help")) return false;
    if (input.length > 0 && !piped) return false; // the text is visible and is parsed itself
    if (RUNS_ARGUMENTS.has(program)) return rest.some(isDescriptor);
    return (
      rest.every((next) => isOption(next) || isDescriptor(next)) || (piped && rest.some(({ text }) => text === "-s"))
    );
  });

/** xargs appends what it reads, or puts it where `-I` says; find may run what it found. */
const withReplacements = (words: readonly ShellWord[]): readonly ShellWord[] => {
  if (words.some((word) => /^g?find$/.test(programOf(word)))) return withFound(words);
  const at = words.findIndex((word) => programOf(word) === "xargs" || programOf(word) === "parallel");
  if (at === -1) return words;
  // parallel puts the words after `:::` where xargs puts what it reads.
  const given = words.findIndex(({ text }, index) => index > at && /^:::/.test(text));
  const rest = words.slice(at + 1, given < 0 ? words.length : given);
  const mark = rest.findIndex(({ text }) => /^(?:-[IiJ]|--replace)/.test(text));
  const glued = /^(?:-[IiJ]|--replace=?)(.*)$/s.exec(rest[mark]?.text ?? "")?.[1];
  const replaced = mark === -1 ? ["{}"] : [glued || rest[mark + 1]?.text || "{}", "{}"];
  const filled = rest.map((word, index) => {
    if (index <= mark) return word;
    const text = replaced.reduce((sum, from) => sum.replaceAll(from, COMPUTED), word.text);
    return text === word.text ? word : { ...word, text, spreads: true };
  });
  return [...words.slice(0, at + 1), ...filled, ...(mark === -1 ? ANY_COMMAND : [])];
};

const withFound = (words: readonly ShellWord[]): readonly ShellWord[] =>
  words.map((word, at) =>
    word.text.includes("{}") && /^-(?:exec|ok)(?:dir)?$/.test(words[at - 1]?.text ?? "")
      ? { ...word, text: word.text.replaceAll("{}", COMPUTED), spreads: true }
      : word,
  );

/** Text in a language other than the shell's: each of its words could start a command. A slash may separate words too
 *  (`s/x/rm y/e`). */
const collectLoose = (text: string, into: Collection): void => {
  const whole = text.split(/[^\w.\-/\0]+/).filter((token) => token !== "");
  const parted = text.split(/[^\w.\-\0]+/).filter((token) => token !== "");
  // A letter before a word may belong to an option; a number and `e` may be sed's command to run it.
  const bare = whole.map((token) => token.replace(/^-[a-zA-Z](?=.)|^\d*e(?=.)/, ""));
  const readings = [
    whole,
    ...(parted.length > whole.length ? [parted] : []),
    ...(bare.join() === whole.join() ? [] : [bare]),
  ];
  for (const tokens of readings) {
    const words = tokens.map((token): ShellWord => ({ text: token, spreads: false, home: false }));
    words.forEach((word, at) => {
      if (!isComputed(word)) into.starts.push({ words, at });
    });
  }
};
