/** Which files does a command name? So that a rule about a path also holds for the shell.
 *  Invariant: every word is taken as a path it might be, from every folder the command might be in; what is computed is
 *  marked and never guessed.
 *  Elsewhere: reading the text (shell-words.ts), comparing paths with a rule (path-rules.ts). */

import { couldCoverPath, coversPath, isHidden, type PathPattern, reachesBelow } from "./path-rules.ts";
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
  if (reading.kind === "unread") return { literal: [], computed: [], searched: [], lost: true };
  const start = walk([], cwd);
  const pathOf = (word: ShellWord, text: string): string =>
    word.home && home !== undefined ? text.replace(/^~(?=\/|$)/, home) : text;
  let folders: readonly Names[] = [start];
  for (const word of reading.commands.flatMap(folderWords)) {
    folders = [...folders, ...folders.map((folder) => walk(folder, pathOf(word, word.text)))];
    if (folders.length > MOST_FOLDERS) return { literal: [], computed: [], searched: [], lost: true };
  }
  const paths = reading.commands.flatMap((command) =>
    [...command.words, ...command.redirects.flatMap(({ target }) => target ?? [])].flatMap((word) =>
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

export const bearsOn = (pattern: PathPattern, touched: Touched): Bearing | undefined => {
  if (touched.literal.some((names) => coversPath(pattern, names))) return "names";
  if (touched.lost || touched.computed.some((names) => couldCoverPath(pattern, names))) return "might come to";
  const found = touched.searched.some(
    ({ folder, hiddenToo }) => (hiddenToo || !isHidden(pattern)) && reachesBelow(pattern, folder),
  );
  return found ? "might come to" : undefined;
};
