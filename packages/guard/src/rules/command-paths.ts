/** Which files does a command name? This makes a rule about a path apply to the shell as well.
 *  Invariant: every word is taken as a path it might be, from every folder the command might be in. What is computed is marked and
 *  never guessed; what could be any path at all says so.
 *  Elsewhere: parsing the text (shell-words.ts), texts inside words (inner-texts.ts), programs that read whole folders
 *  (folder-searches.ts), comparing paths with a rule (path-rules.ts). */

import { type FolderSearches, fedByPipe, isListing, isWithoutFiles, searchesOf } from "./folder-searches.ts";
import { innerTexts, looseWords } from "./inner-texts.ts";
import {
  couldCoverFolded,
  coversFolded,
  foldedNames,
  isHidden,
  isPlaced,
  namesKeys,
  type PathPattern,
  reachesBelow,
} from "./path-rules.ts";
import { programOf, readAsPrograms } from "./programs-with-programs.ts";
import { COMPUTED, readShell, type ShellCommand, type ShellReading, type ShellWord } from "./shell-words.ts";
import type { Levels } from "./variable-values.ts";
import { ANYWHERE, NAME, settledReach } from "./word-reach.ts";

export type CommandPathsContext = { readonly cwd: string; readonly home?: string };

/** Folders that are searched recursively. */
export type SearchedFolder = {
  readonly folder: readonly string[];
  readonly hiddenToo: boolean;
  /** When it runs as a plan, the search skips the files that rules name. */
  readonly skipsRuledFiles: boolean;
};

export type CommandPaths = {
  /** Paths as names from the root. */
  readonly literal: readonly (readonly string[])[];
  readonly computed: readonly (readonly string[])[];
  /** The same in commands that only report names. */
  readonly listed: readonly (readonly string[])[];
  /** Paths in texts of another language, where a name may be something else. */
  readonly possible: readonly (readonly string[])[];
  readonly searched: readonly SearchedFolder[];
  /** Folders in which git shows contents: of any file of the enclosing repository. */
  readonly shown: readonly (readonly string[])[];
  /** The command changes folders too often to follow, names a file that could be any, or evaluates a text that could run
   *  anything. */
  readonly couldBeAny: boolean;
};

const MOST_FOLDERS = 16;
/** Limits the names of all paths together, so that a repetitive text cannot take more time and memory. */
const MOST_NAMES = 20_000;
/** Nesting of texts in texts. */
const MOST_TEXTS = 60;
const DEEPEST = 6;

const LOST: CommandPaths = {
  literal: [],
  computed: [],
  listed: [],
  possible: [],
  searched: [],
  shown: [],
  couldBeAny: true,
};

type Names = readonly string[];

/** Lexical: only the file system knows what `..` means after a link. Undefined if `..` removes an unknown name, or may itself
 *  be computed. */
const walk = (from: Names, path: string): Names | undefined => {
  const names = path.startsWith("/") ? [] : [...from];
  const parts = path.split("/");
  for (const [at, part] of parts.entries()) {
    if (part === "..") {
      if (names.pop()?.includes(COMPUTED)) return undefined;
    } else if (part !== "" && part !== ".") {
      if (part.includes(COMPUTED) && isDots(part) && at < parts.length - 1) return undefined;
      names.push(part);
    }
  }
  return names;
};

/** `.$x` or `.*`: if the variable is empty or a dot, it is a parent folder. */
const isDots = (part: string): boolean => /^\.+$/.test(part.replaceAll(COMPUTED, ""));

type ReadText = { readonly commands: readonly ShellCommand[]; readonly reaches: Levels };

export const findCommandPaths = (reading: ShellReading, place: CommandPathsContext): CommandPaths => {
  const texts = readingsIn(reading);
  return texts ? new Paths(texts, place).collect() : LOST;
};

/** The text, and every shell text inside it; undefined if one cannot be parsed. */
const readingsIn = (reading: ShellReading, depth = 0): readonly ReadText[] | undefined => {
  if (reading.kind === "unread" || reading.evaluatesUnseen || depth > DEEPEST) return undefined;
  const found: ReadText[] = [reading];
  for (const command of reading.commands) {
    const { texts, glued, isUnseen } = innerTexts(command);
    if (isUnseen) return undefined;
    for (const [at, text] of [...texts, ...glued].entries()) {
      const read = readShell(text, reading.levels, reading.reaches);
      if (read.kind === "unread" && at >= texts.length) continue;
      const inner = readingsIn(read, depth + 1);
      if (!inner) return undefined;
      found.push(...inner);
      if (found.length > MOST_TEXTS) return undefined;
    }
  }
  return found;
};

class Paths {
  readonly #texts: readonly ReadText[];
  readonly #start: Names;
  readonly #home: string | undefined;
  #folders: readonly Names[];
  #names = 0;
  /** A folder that the command changes to may be any number of names deep. */
  #isDeep = false;
  #isLost = false;

  constructor(texts: readonly ReadText[], { cwd, home }: CommandPathsContext) {
    this.#texts = texts;
    this.#start = walk([], cwd) ?? [];
    this.#home = home;
    this.#folders = [this.#start];
  }

  collect(): CommandPaths {
    const all = this.#texts.flatMap(({ commands, reaches }) => commands.map((command) => ({ command, reaches })));
    for (const { command, reaches } of all) {
      for (const word of folderWords(command)) {
        this.#enter(word, reaches);
        if (this.#folders.length > MOST_FOLDERS || this.#isLost) return LOST;
      }
    }
    const literal: Names[] = [];
    const computed: Names[] = [];
    const listed: Names[] = [];
    const possible: Names[] = [];
    const searched: SearchedFolder[] = [];
    const shown: Names[] = [];
    for (const { command, reaches } of all) {
      const isGit = command.words.some((word) => programOf(word) === "git");
      const isLister = command.redirects.length === 0 && isListing(command);
      for (const word of wordsOf(command)) {
        if (word.reach && isWithoutFiles(command, word)) continue;
        const level = this.#level(word, reaches);
        if (level === ANYWHERE) return LOST;
        const paths = [
          ...this.#paths(word, [...textsOf(word.text), ...behindColons(word.text)]),
          ...(isGit ? behindColons(word.text).flatMap((text) => this.#fromAbove(text)) : []),
        ];
        for (const names of paths) {
          if (!names.some(isComputed)) literal.push(names);
          else if (level === NAME && !this.#isDeep) (isLister ? listed : computed).push(names);
          else searched.push({ folder: knownPart(names), hiddenToo: true, skipsRuledFiles: false });
        }
      }
      for (const text of innerTexts(command).loose) possible.push(...this.#from(text));
      for (const text of filesOfSed(command)) possible.push(...this.#from(text));
      const searches: FolderSearches = searchesOf(command);
      const { hiddenToo, skipsRuledFiles } = searches;
      for (const word of searches.words) {
        const found = this.#paths(word, [word.text]);
        searched.push(...found.map((folder) => ({ folder: knownPart(folder), hiddenToo, skipsRuledFiles })));
      }
      if (searches.here) searched.push(...this.#folders.map((folder) => ({ folder, hiddenToo, skipsRuledFiles })));
      if (searches.shows) shown.push(...this.#folders);
      if (searches.unknown || this.#isLost || this.#names > MOST_NAMES) return LOST;
    }
    const commands = all.map(({ command }) => command);
    for (const text of readAsPrograms(commands).flatMap(looseWords)) possible.push(...this.#from(text));
    const fed = fedByPipe(commands);
    if (fed === "unknown") return LOST;
    for (const word of fed)
      for (const names of this.#from(word.text))
        searched.push({ folder: knownPart(names), hiddenToo: true, skipsRuledFiles: true });
    return { literal, computed, listed, possible, searched, shown, couldBeAny: this.#isLost };
  }

  #level({ reach }: ShellWord, reaches: Levels): number {
    if (!reach) return NAME;
    const isMoved = (variable: string): boolean => reaches.isAnySet || reaches.of.has(variable);
    if ((reach.start === "home" && (isMoved("HOME") || !this.#home)) || (reach.start === "here" && isMoved("PWD")))
      return ANYWHERE;
    return settledReach(reach, reaches);
  }

  /** A folder may exist or not, so each that was possible before still is. */
  #enter(word: ShellWord, reaches: Levels): void {
    const level = this.#level(word, reaches);
    if (level !== NAME) this.#isDeep = true;
    if (level === ANYWHERE) this.#isLost = true;
    else this.#folders = [...this.#folders, ...this.#paths(word, [word.text])];
  }

  /** Each text as a path from every folder; the texts are the word's own. */
  #paths({ text: whole, home, reach }: ShellWord, texts: readonly string[]): readonly Names[] {
    return texts.flatMap((text) => {
      const isStart = text === whole;
      // If the variable is empty, `$x/etc` is `/etc`.
      const rooted =
        reach?.maybeEmpty && !reach.start && text.startsWith(`${COMPUTED}/`) ? this.#from(text.slice(1)) : [];
      if (rooted.length > 0) return [...rooted, ...this.#from(text)];
      if (!text.startsWith(COMPUTED) || reach?.start === undefined) return this.#from(text, isStart && home);
      const rest = `.${text.slice(COMPUTED.length)}`;
      if (!/^\.(?:\/|$)/.test(rest)) return this.#give(undefined);
      if (reach.start === "home") return this.#give(walk(walk([], this.#home ?? "") ?? [], rest));
      const starts = reach.start === "here" ? this.#folders : this.#folders.flatMap(ancestors);
      return starts.flatMap((folder) => this.#walked(folder, rest));
    });
  }

  #from(text: string, isHome = /^~\//.test(text)): readonly Names[] {
    if (isHome && /^~/.test(text)) {
      const [user = "", ...rest] = text.slice(1).split("/");
      const home = this.#home === undefined ? undefined : walk([], this.#home);
      if (user === "+") return this.#folders.flatMap((folder) => this.#walked(folder, `./${rest.join("/")}`));
      const isOwn = user === "" || user === home?.at(-1);
      return this.#give(isOwn && home ? walk(home, `./${rest.join("/")}`) : undefined);
    }
    if (text.startsWith("/")) return this.#give(walk([], text));
    return this.#folders.flatMap((folder) => this.#walked(folder, text));
  }

  /** A path in a commit is relative to the top of the repository, which may be any parent folder. */
  #fromAbove(text: string): readonly Names[] {
    if (/^[./~]|^\0/.test(text)) return [];
    return this.#folders.flatMap(ancestors).flatMap((folder) => this.#walked(folder, text));
  }

  /** A text that cannot be followed adds no more paths. */
  #walked(folder: Names, path: string): readonly Names[] {
    return this.#isLost ? [] : this.#give(walk(folder, path));
  }

  #give(names: Names | undefined): readonly Names[] {
    if (!names) this.#isLost = true;
    this.#names += names?.length ?? 0;
    if (this.#names > MOST_NAMES) this.#isLost = true;
    return names && !this.#isLost ? [names] : [];
  }
}

const isComputed = (name: string): boolean => name.includes(COMPUTED);

/** Up to the first name that is not known. */
const knownPart = (names: Names): Names => {
  const at = names.findIndex(isComputed);
  return at === -1 ? names : names.slice(0, at);
};

/** The folder and its parents, except for the root. */
const ancestors = (names: Names): readonly Names[] => names.map((_, at) => names.slice(0, names.length - at));

const wordsOf = ({ words, redirects }: ShellCommand): readonly ShellWord[] => [
  ...words,
  ...redirects.flatMap(({ target }) => target ?? []),
];

const HOME_WORD: ShellWord = { text: "~", spreads: false, home: true };
const UNKNOWN_WORD: ShellWord = { text: COMPUTED, spreads: false, home: false, reach: { level: ANYWHERE, names: [] } };

/** Options that set the folder of a program: as the next word, or attached. */
const FOLDER_OPTION = /^(?:-C|--directory|--work-tree|--chdir|--cwd)$/;
const GLUED_FOLDER = /^(?:-C|--(?:directory|work-tree|chdir|cwd)=)(.+)$/s;

/** Words that name a folder in which the command continues. */
const folderWords = ({ words, assignments }: ShellCommand): readonly ShellWord[] => {
  if (assignments.includes("CDPATH")) return [UNKNOWN_WORD];
  const [head, ...rest] = words;
  if (!head) return [];
  const at = words.findIndex((word) => !/^(?:command|builtin)$/.test(programOf(word)));
  const moving = words[at];
  if (moving && ["cd", "pushd", "chdir"].includes(programOf(moving))) {
    const operands = words.slice(at + 1).filter(({ text }) => !/^[-+]/.test(text));
    return operands.length === 0 && programOf(moving) === "cd" ? [HOME_WORD] : operands;
  }
  return rest.flatMap((word, index) => {
    if (FOLDER_OPTION.test(rest[index - 1]?.text ?? "")) return [word];
    const glued = GLUED_FOLDER.exec(word.text)?.[1];
    return glued === undefined ? [] : [{ ...word, text: glued }];
  });
};

const MOST_LETTERS = 40;
const MOST_PARTS = 20;

/** The word itself, and each part of it that could be a path: the value in `--x=value`, the file in `HEAD:file` or `@file`,
 *  the path in an address, and what is attached to short options. */
const textsOf = (text: string): readonly string[] => {
  const texts = [text, /=(.+)$/s.exec(text)?.[1], /:(.+)$/s.exec(text)?.[1], /[@<>](.+)$/s.exec(text)?.[1]];
  texts.push(/^\w+:\/\/[^/]*(\/.+)$/s.exec(text)?.[1]);
  const letters = /^-\w+/.exec(text)?.[0].length ?? 0;
  for (let at = 2; at <= Math.min(letters, MOST_LETTERS); at++) texts.push(text.slice(at));
  // `-v ./folder:/place`, `--mount=type=bind,src=./folder,dst=/place`.
  const parts = /[,:=]/.test(text)
    ? text.split(/[,:=]/, MOST_PARTS).map((part) => part.replace(/^-\w(?=[./~])/, ""))
    : [];
  texts.push(...parts.filter((part) => part.includes("/") || part.startsWith("~")));
  return [...new Set(texts.filter((found) => found !== undefined && found !== ""))] as string[];
};

const MOST_SED_FILES = 40;

/** The file name after sed's letters for reading and writing files; it may be attached to them. */
const filesOfSed = ({ words }: ShellCommand): readonly string[] => {
  if (!words.some((word) => /^g?sed$/.test(programOf(word)))) return [];
  const programs = words.slice(1).filter(({ text }) => !text.includes(COMPUTED));
  const found = programs.flatMap(({ text }) => {
    const letters = [...text.matchAll(/[rRwW][ \t]*(?=[^\s;}])/g)].slice(0, MOST_SED_FILES);
    return letters.map(({ index, 0: letter }) => /^[^\s;}]{1,4096}/.exec(text.slice(index + letter.length))?.[0] ?? "");
  });
  return found.filter((name) => name !== "");
};

const MOST_COLONS = 8;

/** `HEAD:file`, `:0:file`, `-L1,5:file`: the part after a colon may be a path. */
const behindColons = (text: string): readonly string[] => {
  const parts = text.split(":").slice(0, MOST_COLONS + 1);
  return parts
    .slice(1)
    .map((_, at) => text.slice(parts.slice(0, at + 1).join(":").length + 1))
    .filter((rest) => rest !== "");
};

/** How a command relates to the files of a path rule. */
export type PathMatch = "names" | "might reach";

/** Prepares the paths once for many rules. `isPlanned`: the command runs as a plan, so git hides what rules name, and searches
 *  skip files that usually contain secrets and what a rule names by its literal path. */
export const createPathMatcher = (
  paths: CommandPaths,
  isPlanned: boolean,
): ((pattern: PathPattern) => PathMatch | undefined) => {
  const folded = (paths: readonly Names[]): readonly Names[] => paths.map(foldedNames);
  const [literal, possible] = [folded(paths.literal), folded(paths.possible)];
  const computed = folded(isPlanned ? paths.computed : [...paths.computed, ...paths.listed]);
  const searched = [
    ...paths.searched,
    ...(isPlanned ? [] : paths.shown.map((folder) => ({ folder, hiddenToo: true, skipsRuledFiles: false }))),
  ].map((found) => ({ ...found, folder: foldedNames(found.folder) }));
  return (pattern) => {
    if (literal.some((names) => coversFolded(pattern, names))) return "names";
    if (paths.couldBeAny || computed.some((names) => couldCoverFolded(pattern, names))) return "might reach";
    if (possible.some((names) => coversFolded(pattern, names))) return "might reach";
    if (isPlanned && namesKeys(pattern)) return undefined;
    const isSkipped = isPlanned && isPlaced(pattern);
    const found = searched.some(
      ({ folder, hiddenToo, skipsRuledFiles }) =>
        (hiddenToo || !isHidden(pattern)) && !(isSkipped && skipsRuledFiles) && reachesBelow(pattern, folder),
    );
    return found ? "might reach" : undefined;
  };
};
