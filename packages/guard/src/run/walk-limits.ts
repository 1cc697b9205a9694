/** Makes a walk through file contents skip files that may contain secrets. Pure.
 *  Invariant: only exclusions are added, and they come last, where they override earlier words. If the walk was searched beforehand, exactly
 *  what was found is excluded; otherwise everything that a pattern can name.
 *  Elsewhere: where a walk may start (../bash), literal names (render-pipe.ts), searching it (secret-walk.ts). */

import { basename, relative } from "node:path";
import { caseInsensitive, isSecret, secretPatterns } from "../paths/index.ts";
import type { SecretWalk } from "./secret-walk.ts";

/** Where a walk begins: as the program was told, and what that means. */
export type WalkStart = { readonly word: string; readonly path: string };

export type LeftOut = SecretWalk & {
  readonly starts: readonly WalkStart[];
  /** The working directory, from which any of them may begin after all. */
  readonly here: WalkStart;
};

export const GREPS: readonly string[] = ["grep", "egrep", "fgrep"];

/** What a pattern would take for a sign stands for itself. */
const literal = (name: string): string => name.replace(/[\\*?[\]{}!]/g, "\\$&");

type Named = {
  /** By its own name, or by that of the folder that makes it one. */
  readonly kind: "file" | "folder";
  readonly name: string;
};

/** The shortest name by which a walk can leave out what was found: its own where that says it all, else its folder's. */
const namedFor = (path: string, isFolder: boolean, { path: start }: WalkStart): Named => {
  const own = basename(path);
  const below = relative(start, path).split("/");
  if (isFolder || isSecret(own)) return { kind: isFolder ? "folder" : "file", name: own };
  for (let from = below.length - 2; from >= 0; from -= 1)
    if (isSecret(below.slice(from).join("/"))) return { kind: "folder", name: below[from] ?? own };
  return { kind: "file", name: own };
};

export const isBelow = (path: string, { path: start }: WalkStart): boolean =>
  path.startsWith(start.endsWith("/") ? start : `${start}/`);

const namesOf = ({ found, starts, here }: LeftOut): readonly Named[] => {
  const named = found
    .filter(({ kind }) => kind !== "link")
    .flatMap(({ path, kind }) =>
      [here, ...starts]
        .filter((start) => isBelow(path, start))
        .map((start) => namedFor(path, kind === "folder", start)),
    );
  return [...new Map(named.map((one) => [`${one.kind} ${one.name}`, one])).values()];
};

/** A folder's name where it is one name; what is deeper cannot be said to programs that know single names only. */
const SINGLE_FOLDERS = secretPatterns.folders.filter((name) => !name.includes("/"));

/** Names that many harmless files have. */
const ORDINARY = /^\*?(?:config|settings|auth|profiles|gradle|keys)\b/;

const PLACES: readonly string[] = [...secretPatterns.places, ...secretPatterns.ordinaryPlaces];

/** What stands deeper, by the hidden folder that it is in, or else by its own name: too much is left out rather than too
 *  little. Only for trees that are too large to look through. */
const DEEPER: readonly Named[] = [...secretPatterns.folders, ...PLACES]
  .filter((place) => place.includes("/"))
  .map((place): Named => {
    const parts = place.split("/");
    const last = parts.at(-1) ?? place;
    const isFolder = secretPatterns.folders.includes(place);
    const hidden = parts.slice(0, -1).find((part) => part.startsWith("."));
    if (hidden && (isFolder || ORDINARY.test(last))) return { kind: "folder", name: hidden };
    // Whatever is in a folder that ends in .git is left out with it.
    if (parts[0]?.startsWith("*.git")) return { kind: "folder", name: parts[0] };
    return { kind: isFolder ? "folder" : "file", name: last };
  });

const namedDeeper = (kind: Named["kind"]): readonly string[] => [
  ...new Set(DEEPER.filter((one) => one.kind === kind).map(({ name }) => name)),
];

/** A name of a key folder may be a file's as well. */
const FILES_IN_LARGE_TREES: readonly string[] = [
  ...new Set([...secretPatterns.files, ...namedDeeper("file"), ...SINGLE_FOLDERS, ...namedDeeper("folder")]),
];
const FOLDERS_IN_LARGE_TREES: readonly string[] = [...new Set([...SINGLE_FOLDERS, ...namedDeeper("folder")])];

/** grep compares a pattern with the whole of a name that it was given, `./folder/file`; find and rg with a path. */
const inOneName = (pattern: string): string => pattern.replaceAll("[!", "[!/");

/** What rules name, as the program comes to it from each folder that it begins in. */
const shownPaths = ({ found, starts, here }: LeftOut): readonly { readonly kind: string; readonly path: string }[] =>
  found
    .filter(({ byRule }) => byRule)
    .flatMap(({ path, kind }) =>
      [here, ...starts]
        .filter((start) => isBelow(path, start))
        .map(({ word, path: start }) => ({ kind, path: `${word.replace(/\/+$/, "")}/${relative(start, path)}` })),
    );

const grepOptions = (left: LeftOut): readonly string[] => [
  ...namesOf(left).map(({ kind, name }) => `${kind === "file" ? "--exclude" : "--exclude-dir"}=${literal(name)}`),
  ...(left.isWhole ? [] : FILES_IN_LARGE_TREES.map((name) => `--exclude=${inOneName(caseInsensitive(name))}`)),
  ...(left.isWhole ? [] : FOLDERS_IN_LARGE_TREES.map((name) => `--exclude-dir=${inOneName(caseInsensitive(name))}`)),
];

/** rg takes white space off the end of a glob, so any bytes stand for it. */
const untrimmed = (glob: string): string =>
  glob.replace(/(?<!\s)\s+$/, (blanks) => "?".repeat(Buffer.byteLength(blanks)));

const withoutRuled = (left: LeftOut): LeftOut => ({ ...left, found: left.found.filter(({ byRule }) => !byRule) });

/** Are all folders that a walk begins in written so that a glob finds again what is below them? rg takes the working
 *  directory off an absolute path, whatever follows. */
const isClean = ({ starts }: LeftOut): boolean =>
  starts.every(({ word, path }) =>
    word.startsWith("/") ? word.replace(/\/$/, "") === path : RELATIVE.test(word.replace(/^\.\/(?=.)|\/$/g, "")),
  );

/** Steps back stand first, and no step is empty. */
const RELATIVE = /^(?:\.|\.\.(?:\/\.\.)*|(?:\.\.\/)*(?!\.{1,2}(?:\/|$))[^/]+(?:\/(?!\.{1,2}(?:\/|$))[^/]+)*)$/;

/** Case does not count, and these outrank `--glob`: so do ours, being the last of their kind. */
const rgOptions = (left: LeftOut): readonly string[] => [
  "--no-ignore-messages", // they repeat lines of what is to be ignored, which may be a link to keys
  ...namesOf(isClean(left) ? withoutRuled(left) : left).flatMap(({ kind, name }) => [
    `--iglob=!${untrimmed(literal(name))}`,
    // A folder that rg begins in is not left out by its own name.
    ...(kind === "folder" ? [`--iglob=!**/${literal(name)}/**`] : []),
  ]),
  ...shownPaths(left).map(({ path }) => `--iglob=!/${untrimmed(literal(path.replace(/^\.\//, "")))}`),
  ...(left.isWhole
    ? []
    : [
        ...[...secretPatterns.files, ...secretPatterns.folders, ...PLACES],
        ...secretPatterns.folders.map((name) => `${name}/**`),
      ].map((name) => `--iglob=!**/${inOneName(name).replaceAll("#", "[#]")}`)),
];

/** Both sides of a comparison; links are compared as links, since one could lead anywhere. */
const diffOptions = (left: LeftOut): readonly string[] => [
  "--no-dereference",
  ...namesOf(left).map(({ name }) => `--exclude=${literal(name)}`),
  ...(left.isWhole
    ? []
    : [...FILES_IN_LARGE_TREES, ...FOLDERS_IN_LARGE_TREES].map((name) => `--exclude=${caseInsensitive(name)}`)),
];

const findTests = ({ found, starts, isWhole }: LeftOut): readonly string[] => [
  ...found.flatMap(({ path, kind }) =>
    starts
      .filter((start) => isBelow(path, start))
      .flatMap(({ word, path: start }) => {
        const shown = `${word.endsWith("/") ? word : `${word}/`}${relative(start, path)}`;
        const itself = ["!", "-path", literal(shown)];
        // If a folder itself were an argument, the program that gets it would walk it.
        return kind === "folder" ? [...itself, "!", "-path", `${literal(shown)}/*`] : itself;
      }),
  ),
  ...(isWhole
    ? []
    : [
        ...secretPatterns.files.flatMap((name) => ["!", "-iname", name]),
        ...secretPatterns.folders
          .map(inOneName)
          .flatMap((name) => ["!", "-ipath", `*/${name}`, "!", "-ipath", `*/${name}/*`]),
        // A star stands for any number of folders here.
        ...PLACES.flatMap((name) => ["!", "-ipath", `*/${inOneName(name).replace("/**/", "/")}`]),
      ]),
];

const optionsFor = (program: string, left: LeftOut): readonly string[] => {
  if (GREPS.includes(program)) return grepOptions(left);
  if (program === "rg") return rgOptions(left);
  return program === "diff" ? diffOptions(left) : [];
};

/** The words of a command that walks; the inner command's where another one runs it. */
export const withoutKeys = (program: string, words: readonly string[], left: LeftOut): readonly string[] => {
  if (program === "find") return findWithout(words, left);
  const at = program === "xargs" ? words.findIndex((word) => !word.startsWith("-")) : -1;
  if (at >= 0) return [...words.slice(0, at + 1), ...withoutKeys(words[at] ?? "", words.slice(at + 1), left)];
  const options = optionsFor(program, left);
  const end = words.indexOf("--");
  return end < 0 ? [...words, ...options] : [...words.slice(0, end), ...options, ...words.slice(end)];
};

/** In brackets with the action: a `!` that stands before it must not turn round the first test instead. */
const findWithout = (words: readonly string[], left: LeftOut): readonly string[] => {
  const first = words.indexOf("-exec");
  if (first < 0) return words;
  const end = words.findIndex((word, at) => at > first && (word === ";" || word === "+"));
  const last = end < 0 ? words.length : end;
  const [program = "", ...inner] = words.slice(first + 1, last - 1); // the names that are found stand last
  return [
    ...words.slice(0, first),
    ...["(", ...findTests(left), "-exec", program, ...withoutKeys(program, inner, left)],
    ...[...words.slice(last - 1, last + 1), ")"],
    ...findWithout(words.slice(last + 1), left),
  ];
};
