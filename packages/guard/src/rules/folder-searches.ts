/** Which programs read, copy or change whole folders, or files that nobody named?
 *  Invariant: errs towards more. If options cannot be told from their values, the working directory counts.
 *  Elsewhere: which paths words name (command-paths.ts), walks that run without approval (bash/indirect-reads.ts). */

import { commandPlaces, programOf } from "./programs-with-programs.ts";
import { COMPUTED, type ShellCommand, type ShellWord } from "./shell-words.ts";

export type FolderSearches = {
  /** Words that name what is searched. */
  readonly words: readonly ShellWord[];
  /** The working directory is searched. */
  readonly here: boolean;
  /** Names with a leading dot are searched as well. */
  readonly hiddenToo: boolean;
  /** git shows the contents of any file of the repository. */
  readonly shows: boolean;
  /** When it runs as a plan, it skips the files that rules name. */
  readonly skipsRuledFiles: boolean;
  /** Files whose names come from elsewhere. */
  readonly unknown: boolean;
};

const NONE: FolderSearches = {
  words: [],
  here: false,
  hiddenToo: true,
  shows: false,
  skipsRuledFiles: false,
  unknown: false,
};

const MOST_PLACES = 20;

/** All programs that a command runs, also through wrappers. */
export const searchesOf = ({ words }: ShellCommand): FolderSearches => {
  const places = [...commandPlaces(words).entries()].filter(([, isPlace]) => isPlace).map(([at]) => at);
  if (places.length > MOST_PLACES) return { ...NONE, here: true, unknown: true };
  const found = places.flatMap((at) => searchesFrom(words.slice(at)) ?? []);
  return {
    words: found.flatMap((one) => one.words),
    here: found.some(({ here }) => here),
    hiddenToo: found.some(({ hiddenToo, here, words: named }) => hiddenToo && (here || named.length > 0)),
    shows: found.some(({ shows }) => shows),
    skipsRuledFiles: found.every(
      ({ skipsRuledFiles, here, words: named }) => skipsRuledFiles || (!here && named.length === 0),
    ),
    unknown: found.some(({ unknown }) => unknown),
  };
};

const searchesFrom = ([head, ...args]: readonly ShellWord[]): FolderSearches | undefined => {
  if (!head) return undefined;
  const has = (pattern: RegExp): boolean => args.some(({ text }) => pattern.test(text));
  const unknown = has(/^--files0?-from/);
  switch (programOf(head)) {
    case "grep":
    case "egrep":
    case "fgrep":
    case "zgrep":
      return has(/^-[a-zA-Z]*[rRd]|^--(?:r|de|dir)/) ? grepped(args, "efmABCDd") : undefined;
    case "rg":
      if (has(/^--files$|^--(?:version|help|type-list)$/)) return undefined;
      return { ...grepped(args, "efgtTmABCEMjdr"), hiddenToo: has(/^-[a-zA-Z]*[u.]|^--(?:hidden|no-ignore|unres)/) };
    case "ag":
    case "ack":
    case "ugrep":
    case "ug":
    case "rga":
    case "pt":
    case "sift":
      return { ...NONE, here: true, words: operandsOf(args), hiddenToo: has(/^-[a-zA-Z]*[u.]|^--(?:hidden|unres)/) };
    case "find":
    case "gfind":
      return found(args);
    case "fd":
    case "fdfind":
      return has(/^-(?:x|X|-exec)/) ? { ...NONE, here: true, words: operandsOf(args) } : undefined;
    case "diff":
      return has(/^-[a-zA-Z]*r|^--rec/) ? { ...NONE, words: operandsOf(args) } : undefined;
    case "git":
      return shownByGit(args);
    case "cpio":
    case "pax":
      return { ...NONE, here: true, unknown: true };
    case "tar":
    case "bsdtar":
      return { ...NONE, words: operandsOf(args), unknown: unknown || has(/^-?[a-zA-Z]*T/) };
    case "cp":
    case "mv":
    case "rm":
    case "chmod":
    case "chown":
    case "chgrp":
    case "rsync":
    case "scp":
    case "zip":
    case "7z":
    case "shred":
    case "ctags":
      return { ...NONE, words: operandsOf(args), unknown };
    default:
      return unknown ? { ...NONE, unknown } : undefined;
  }
};

const isOption = ({ text }: ShellWord): boolean => /^-./.test(text);
const operandsOf = (args: readonly ShellWord[]): readonly ShellWord[] => args.filter((word) => !isOption(word));

/** `letters`: the short options that take a value. A word after a long option may be its value, too. */
const grepped = (args: readonly ShellWord[], letters: string): FolderSearches => {
  const takes = new RegExp(`^-[a-zA-Z0-9]*[${letters}]$`);
  let isDoubtful = false;
  const operands = args.filter((word, at) => {
    const before = args[at - 1]?.text ?? "";
    if (isOption(word) || takes.test(before)) return false;
    if (/^--[^=]+$/.test(before) && before !== "--") isDoubtful = true;
    return true;
  });
  const isGiven = args.some(({ text }) => /^-[a-zA-Z0-9]*[ef]|^--(?:regexp|file)/.test(text));
  const files = isGiven ? operands : operands.slice(1);
  return { ...NONE, words: files, here: files.length === 0 || isDoubtful, skipsRuledFiles: true };
};

/** They print names or metadata, and no file contents. */
const NAMES_ONLY = new Set("echo printf basename dirname ls stat test [ true realpath readlink".split(" "));

const found = (args: readonly ShellWord[]): FolderSearches | undefined => {
  const acts = args.some(({ text }, at) => {
    if (/^-(?:delete|fprint|fls)/.test(text)) return true;
    const next = args[at + 1];
    return /^-(?:exec|execdir|ok|okdir)$/.test(text) && next !== undefined && !NAMES_ONLY.has(programOf(next));
  });
  if (!acts) return undefined;
  const starts = startsOf(args);
  return { ...NONE, words: starts, here: starts.length === 0, skipsRuledFiles: true };
};

/** The folders that find starts in: the words before its expression. */
const startsOf = (args: readonly ShellWord[]): readonly ShellWord[] => {
  const from = args.slice(args.findIndex(({ text }) => !/^-(?:[HLP]|O\d?|D)$/.test(text)));
  const end = from.findIndex(({ text }) => /^[-(!,)]/.test(text));
  return end === -1 ? from : from.slice(0, end);
};

// --- git -----------------------------------------------------------------------------------------------------------------

/** Options that suppress contents. `--exit-code` and `-q` do not. */
const PATCH =
  /^-[a-zA-Z]*[puU]|^-[cL]|^--(?:pat|cc|dd|uni|word-d|color-w|remerge|binary|ext-d|function-c|check|diff-m)/;
const ONLY_NAMES = /^--(?:stat|name|short|num|summary|dirstat|compact-s|quiet|raw|no-patch)|^-s$/;

/** Subcommands that show contents: always, unless they are told to print only names, or with an option. */
const ALWAYS_SHOW = new Set("diff show".split(" "));
const SHOW_WITH_PATCH = new Set("log whatchanged reflog stash diff-tree diff-index diff-files".split(" "));
const SHOW_ALL = new Set(
  "archive bundle fast-export format-patch difftool range-diff cat-file checkout-index".split(" "),
);

const shownByGit = (args: readonly ShellWord[]): FolderSearches | undefined => {
  const start = args.findIndex(
    ({ text }, at) => !/^-/.test(text) && !/^-[Cc]$|^--(?:git-dir|work-tree|namespace)$/.test(args[at - 1]?.text ?? ""),
  );
  const subcommand = args[start]?.text ?? "";
  const rest = args.slice(start + 1);
  const end = rest.findIndex(({ text }) => text === "--");
  const options = (end === -1 ? rest : rest.slice(0, end)).map(({ text }) => text);
  const has = (pattern: RegExp): boolean => options.some((text) => pattern.test(text));
  const paths = end === -1 ? [] : rest.slice(end + 1);
  const isLimited = paths.length > 0 && paths.every(({ text }) => !/[*?[:\0]/.test(text));
  const limited: FolderSearches = { ...NONE, words: paths, skipsRuledFiles: true };
  // A copy of all files; a clone copies those of another folder.
  if (subcommand === "worktree" && rest[0]?.text === "add") return { ...NONE, shows: true };
  if (subcommand === "clone") return { ...NONE, words: operandsOf(rest).filter(({ text }) => !text.includes(":")) };
  if (subcommand === "grep") return isLimited ? limited : { ...NONE, here: true, skipsRuledFiles: true };
  const shows =
    SHOW_ALL.has(subcommand) ||
    (ALWAYS_SHOW.has(subcommand) && (!(has(ONLY_NAMES) || (subcommand === "show" && has(/^-q$/))) || has(PATCH))) ||
    (SHOW_WITH_PATCH.has(subcommand) && has(PATCH)) ||
    (subcommand === "status" && has(/^-[a-z]*v|^--verb/)) ||
    (subcommand === "commit" && has(/^-[a-z]*v|^--verb|^-[a-z]*p$|^--pat/)) ||
    (/^(?:add|checkout|restore|reset)$/.test(subcommand) && has(/^-[a-z]*p$|^--pat/));
  if (!shows) return undefined;
  return isLimited ? limited : { ...NONE, shows: true };
};

// --- names through a pipe --------------------------------------------------------------------------------------------------

/** They print the names of files that their words lead to, or pass lines through. */
const LISTS_NAMES = /^(?:find|ls|fd|fdfind|rg|grep|egrep|fgrep|git|tree|echo|printf)$/;
const PASSES_ON = /^(?:head|tail|sort|uniq|tr|cut|cd|true|test|\[)$/;

/** What the names that xargs reads from a pipe could refer to: words that name folders, or anything. */
export const fedByPipe = (commands: readonly ShellCommand[]): readonly ShellWord[] | "unknown" => {
  const fed: ShellWord[] = [];
  for (const [at, command] of commands.entries()) {
    const inner = fedProgram(command.words);
    if (inner === undefined || NAMES_ONLY.has(inner) || NO_FILES.test(inner)) continue;
    if (command.words.some(({ text }) => /^(?:-[a-z0-9]*a|--arg-file)/.test(text))) return "unknown";
    if (!command.piped) continue;
    for (const before of upstream(commands, at)) {
      const run = before.words.slice(commandPlaces(before.words).lastIndexOf(true));
      const program = run[0] ? programOf(run[0]) : "";
      if (PASSES_ON.test(program)) continue;
      if (!LISTS_NAMES.test(program) || run.some(({ text }) => /^-(?:printf|exec)/.test(text))) return "unknown";
      const starts = program === "find" ? startsOf(run.slice(1)) : [];
      fed.push(...(starts.length > 0 ? starts : [HERE, ...operandsOf(run.slice(1))]));
    }
  }
  return fed.filter(({ text }) => !text.includes(COMPUTED));
};

const HERE: ShellWord = { text: ".", spreads: false, home: false };

/** The commands of the pipe before it. */
const upstream = (commands: readonly ShellCommand[], at: number): readonly ShellCommand[] => {
  let from = at - 1;
  while (from > 0 && commands[from]?.piped) from--;
  return commands.slice(Math.max(0, from), at);
};

/** What xargs or parallel runs; undefined if the command is neither. */
const fedProgram = (words: readonly ShellWord[]): string | undefined => {
  const at = words.findIndex((word) => /^(?:xargs|parallel)$/.test(programOf(word)));
  if (at === -1) return undefined;
  const rest = words.slice(at + 1);
  const inner = rest.find(
    (word, index) => !isOption(word) && !/^-[a-zA-Z0-9]*[IEdLnPsa]$/.test(rest[index - 1]?.text ?? ""),
  );
  return inner ? programOf(inner) : "echo";
};

// --- words that are not files -----------------------------------------------------------------------------------------------

/** They print, compare or keep their words, and open nothing. */
const NO_FILES =
  /^(?:echo|printf|test|\[|:|true|false|export|declare|typeset|local|readonly|unset|shift|set|return|exit|sleep|kill|wait)$/;

const isMessageOption = (text: string): boolean => /^-[a-z]*m$|^--(?:message|title|body)$/.test(text);

/** Whether the command reports only names and metadata, whatever its words expand to. */
export const isListing = ({ words }: ShellCommand): boolean => {
  const run = words[commandPlaces(words).lastIndexOf(true)];
  return run !== undefined && (NAMES_ONLY.has(programOf(run)) || programOf(run) === "du");
};

/** Whether this word is certainly not a file that the command opens, whatever it expands to. */
export const isWithoutFiles = ({ words }: ShellCommand, word: ShellWord): boolean => {
  const at = words.indexOf(word);
  const head = words[0];
  if (at === -1 || !head) return false;
  const program = programOf(head);
  if (NO_FILES.test(program)) return true;
  return /^(?:git|gh|glab)$/.test(program) && isMessageOption(words[at - 1]?.text ?? "");
};
