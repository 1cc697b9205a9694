/** Which files does a command name? So that a rule about a path also holds for the shell.
 *  Invariant: every word is taken as a path it might be, from every folder the command might be in; what is computed is
 *  marked and never guessed.
 *  Elsewhere: reading the text (shell-words.ts), comparing paths with a rule (path-rules.ts). */

import { couldCoverFolded, coversFolded, foldedNames, isHidden, type PathPattern, reachesBelow } from "./path-rules.ts";
import { programOf } from "./programs-with-programs.ts";
import { COMPUTED, type ShellCommand, type ShellReading, type ShellWord } from "./shell-words.ts";

export type TouchedPlace = { readonly cwd: string; readonly home?: string };

export type Touched = {
  /** Paths as names from the root. */
  readonly literal: readonly (readonly string[])[];
  readonly computed: readonly (readonly string[])[];
  /** Folders that are searched with all that is in them. */
  readonly searched: readonly { readonly folder: readonly string[]; readonly hiddenToo: boolean }[];
  /** The command moves about too much to tell, or evaluates a text that could run anything. */
  readonly lost: boolean;
};

const MOST_FOLDERS = 16;
/** All names of all paths, so that time and memory stay the same whatever a text repeats. */
const MOST_NAMES = 20_000;

const LOST: Touched = { literal: [], computed: [], searched: [], lost: true };

type Names = readonly string[];

/** Lexical: what links make of `..` is for the file system to say. */
const walk = (from: Names, path: string): Names => {
  const names = path.startsWith("/") ? [] : [...from];
  for (const name of path.split("/")) {
    if (name === "..") names.pop();
    else if (name !== "" && name !== ".") names.push(name);
  }
  return names;
};

export const touchedBy = (reading: ShellReading, { cwd, home }: TouchedPlace): Touched => {
  if (reading.kind === "unread") return LOST;
  const start = walk([], cwd);
  const pathOf = (word: ShellWord, text: string): string =>
    word.home && home !== undefined ? text.replace(/^~(?=\/|$)/, home) : text;
  let folders: readonly Names[] = [start];
  for (const word of reading.commands.flatMap(folderWords)) {
    folders = [...folders, ...folders.map((folder) => walk(folder, pathOf(word, word.text)))];
    if (folders.length > MOST_FOLDERS) return LOST;
  }
  if (namesTold(reading.commands, folders) > MOST_NAMES) return LOST;
  const paths = reading.commands.flatMap((command) =>
    wordsOf(command).flatMap((word) =>
      textsOf(word).flatMap((text) => folders.map((folder) => walk(folder, pathOf(word, text)))),
    ),
  );
  const isComputed = (names: Names): boolean => names.some((name) => name.includes(COMPUTED));
  return {
    literal: paths.filter((names) => !isComputed(names)),
    computed: paths.filter(isComputed),
    searched: reading.commands.flatMap((command) => searchedBy(command, folders)),
    lost: reading.evaluatesUnseen,
  };
};

/** How many names the paths will have, counted before any path is made. */
const namesTold = (commands: readonly ShellCommand[], folders: readonly Names[]): number => {
  const above = folders.reduce((sum, folder) => sum + folder.length, 0);
  const words = commands.flatMap(wordsOf).flatMap(textsOf);
  return words.reduce((sum, text) => sum + above + folders.length * text.split("/").length, 0);
};

const wordsOf = ({ words, redirects }: ShellCommand): readonly ShellWord[] => [
  ...words,
  ...redirects.flatMap(({ target }) => target ?? []),
];

/** Words that name a folder the command goes on from. */
const folderWords = ({ words }: ShellCommand): readonly ShellWord[] => {
  const [head, ...rest] = words;
  if (!head) return [];
  if (["cd", "pushd"].includes(programOf(head))) return rest.filter(({ text }) => !/^-/.test(text));
  return rest.filter((_, at) => ["-C", "--directory", "--work-tree"].includes(rest[at - 1]?.text ?? ""));
};

/** The word itself, the value in `--x=value`, the file in `HEAD:file`, and what is glued to a short option. */
const textsOf = ({ text }: ShellWord): readonly string[] => {
  const texts = [text, /=(.+)$/s.exec(text)?.[1], /:(.+)$/s.exec(text)?.[1], /^-\w(.+)$/s.exec(text)?.[1]];
  return texts.filter((found) => found !== undefined);
};

/** Programs that read the contents of whole folders. */
const searchedBy = ({ words }: ShellCommand, folders: readonly Names[]): Touched["searched"] => {
  const [head, ...rest] = words;
  if (!head) return [];
  const has = (pattern: RegExp): boolean => rest.some(({ text }) => pattern.test(text));
  const program = programOf(head);
  const greps = ["grep", "egrep", "fgrep"].includes(program) && has(/^-[a-zA-Z]*[rRd]|^--(?:r|dir)/);
  const finds = ["rg", "ag", "ack"].includes(program) || (program === "git" && has(/^grep$/));
  if (!greps && !finds) return [];
  const hiddenToo = greps || program === "git" || has(/^-[a-zA-Z]*[u.]|^--(?:hidden|no-ignore|unrestricted)/);
  const operands = rest.filter(({ text }, at) => !/^-/.test(text) && !/^-/.test(rest[at - 1]?.text ?? ""));
  const named = rest.filter(({ text }) => !/^-/.test(text));
  const places = named.flatMap(({ text }) => folders.map((folder) => walk(folder, text)));
  const searched = operands.length > 1 ? places : [...places, ...folders];
  return searched.map((folder) => ({ folder, hiddenToo }));
};

/** How a path rule bears on a command. */
export type Bearing = "names" | "might come to";

/** For many rules: the paths are prepared once, and only if there is a rule about paths. */
export const bearingOf = (touched: Touched): ((pattern: PathPattern) => Bearing | undefined) => {
  const folded = (paths: readonly Names[]): readonly Names[] => paths.map(foldedNames);
  const prepared = { literal: folded(touched.literal), computed: folded(touched.computed) };
  const searched = touched.searched.map((found) => ({ ...found, folder: foldedNames(found.folder) }));
  return (pattern) => {
    if (prepared.literal.some((names) => coversFolded(pattern, names))) return "names";
    if (touched.lost || prepared.computed.some((names) => couldCoverFolded(pattern, names))) return "might come to";
    const found = searched.some(
      ({ folder, hiddenToo }) => (hiddenToo || !isHidden(pattern)) && reachesBelow(pattern, folder),
    );
    return found ? "might come to" : undefined;
  };
};
