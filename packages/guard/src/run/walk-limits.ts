/** Makes a walk through file contents skip files that may contain secrets. Pure.
 *  Invariant: only exclusions are added, and they come last, where they override earlier words. If the walk was
 *  searched beforehand, exactly what was found is excluded; otherwise everything that a pattern can name.
 *  Elsewhere: where a walk may start (../bash), literal names (render-pipe.ts), searching it (secret-walk.ts). */

import { basename, relative } from "node:path";
import { caseInsensitive, isSecret, secretPatterns } from "../paths/index.ts";
import type { SecretWalk } from "./secret-walk.ts";

/** Where a walk begins: the word that the program was given, and its real path. */
export type WalkStart = { readonly word: string; readonly path: string };

export type Exclusions = SecretWalk & {
  readonly starts: readonly WalkStart[];
  /** The working directory, which any of them may still start from. */
  readonly here: WalkStart;
};

export const GREPS: readonly string[] = ["grep", "egrep", "fgrep"];

/** Escapes characters that have a meaning in a pattern. */
const literal = (name: string): string => name.replace(/[\\*?[\]{}!]/g, "\\$&");

type ExcludedName = {
  /** Excluded by its own name, or by the name of the folder that makes it a secret. */
  readonly kind: "file" | "folder";
  readonly name: string;
};

/** The shortest name by which a walk can exclude a file: its own name if that is enough, otherwise its folder's. */
const excludedNameFor = (path: string, isFolder: boolean, { path: start }: WalkStart): ExcludedName => {
  const own = basename(path);
  const below = relative(start, path).split("/");
  if (isFolder || isSecret(own)) return { kind: isFolder ? "folder" : "file", name: own };
  for (let from = below.length - 2; from >= 0; from -= 1)
    if (isSecret(below.slice(from).join("/"))) return { kind: "folder", name: below[from] ?? own };
  return { kind: "file", name: own };
};

export const isBelow = (path: string, { path: start }: WalkStart): boolean =>
  path.startsWith(start.endsWith("/") ? start : `${start}/`);

const namesOf = ({ found, starts, here }: Exclusions): readonly ExcludedName[] => {
  const named = found
    .filter(({ kind }) => kind !== "link")
    .flatMap(({ path, kind }) =>
      [here, ...starts]
        .filter((start) => isBelow(path, start))
        .map((start) => excludedNameFor(path, kind === "folder", start)),
    );
  return [...new Map(named.map((one) => [`${one.kind} ${one.name}`, one])).values()];
};

/** Only folders that are a single name; some programs cannot exclude longer paths. */
const SINGLE_FOLDERS = secretPatterns.folders.filter((name) => !name.includes("/"));

/** Names that many harmless files share. */
const ORDINARY = /^\*?(?:config|settings|auth|profiles|gradle|keys)\b/;

const PLACES: readonly string[] = [...secretPatterns.places, ...secretPatterns.ordinaryPlaces];

/** Deeper paths are excluded by the hidden folder that they are in, or otherwise by their own name. This excludes too
 *  much rather than too little, and is used only for trees that are too large to search. */
const DEEPER: readonly ExcludedName[] = [...secretPatterns.folders, ...PLACES]
  .filter((place) => place.includes("/"))
  .map((place): ExcludedName => {
    const parts = place.split("/");
    const last = parts.at(-1) ?? place;
    const isFolder = secretPatterns.folders.includes(place);
    const hidden = parts.slice(0, -1).find((part) => part.startsWith("."));
    if (hidden && (isFolder || ORDINARY.test(last))) return { kind: "folder", name: hidden };
    // Everything in a folder: by the name of the folder, because every file has the name `*`.
    if (place.endsWith("/**/*")) return { kind: "folder", name: parts.at(-3) ?? place };
    // A folder that ends in .git is excluded with everything in it.
    if (parts[0]?.startsWith("*.git")) return { kind: "folder", name: parts[0] };
    return { kind: isFolder ? "folder" : "file", name: last };
  });

const namedDeeper = (kind: ExcludedName["kind"]): readonly string[] => [
  ...new Set(DEEPER.filter((one) => one.kind === kind).map(({ name }) => name)),
];

/** A secret folder's name may also be a file's name. */
const FILES_IN_LARGE_TREES: readonly string[] = [
  ...new Set([...secretPatterns.files, ...namedDeeper("file"), ...SINGLE_FOLDERS, ...namedDeeper("folder")]),
];
const FOLDERS_IN_LARGE_TREES: readonly string[] = [...new Set([...SINGLE_FOLDERS, ...namedDeeper("folder")])];

/** grep compares a pattern with the whole of a name that it was given, `./folder/file`; find and rg with a path. */
const inOneName = (pattern: string): string => pattern.replaceAll("[!", "[!/");

/** What rules name, as paths from each folder that the program starts in. */
const shownPaths = ({ found, starts, here }: Exclusions): readonly { readonly kind: string; readonly path: string }[] =>
  found
    .filter(({ byRule }) => byRule)
    .flatMap(({ path, kind }) =>
      [here, ...starts]
        .filter((start) => isBelow(path, start))
        .map(({ word, path: start }) => ({ kind, path: `${word.replace(/\/+$/, "")}/${relative(start, path)}` })),
    );

const grepOptions = (exclusions: Exclusions): readonly string[] => [
  ...namesOf(exclusions).map(({ kind, name }) => `${kind === "file" ? "--exclude" : "--exclude-dir"}=${literal(name)}`),
  ...(exclusions.isWhole ? [] : FILES_IN_LARGE_TREES.map((name) => `--exclude=${inOneName(caseInsensitive(name))}`)),
  ...(exclusions.isWhole
    ? []
    : FOLDERS_IN_LARGE_TREES.map((name) => `--exclude-dir=${inOneName(caseInsensitive(name))}`)),
];

/** rg trims white space from the end of a glob, so it is replaced by a wildcard. */
const untrimmed = (glob: string): string =>
  glob.replace(/(?<!\s)\s+$/, (blanks) => "?".repeat(Buffer.byteLength(blanks)));

const withoutRuled = (exclusions: Exclusions): Exclusions => ({
  ...exclusions,
  found: exclusions.found.filter(({ byRule }) => !byRule),
});

/** Are all start folders written so that a glob still matches the paths below them? rg removes the working directory
 *  from absolute paths in any case. */
const isClean = ({ starts }: Exclusions): boolean =>
  starts.every(({ word, path }) =>
    word.startsWith("/") ? word.replace(/\/$/, "") === path : RELATIVE.test(word.replace(/^\.\/(?=.)|\/$/g, "")),
  );

/** `..` only at the start, and no empty names. */
const RELATIVE = /^(?:\.|\.\.(?:\/\.\.)*|(?:\.\.\/)*(?!\.{1,2}(?:\/|$))[^/]+(?:\/(?!\.{1,2}(?:\/|$))[^/]+)*)$/;

/** These ignore case and take precedence over `--glob`. Ours come last, so they win. */
const rgOptions = (exclusions: Exclusions): readonly string[] => [
  "--no-ignore-messages", // these messages quote lines of ignore files, which may be links to secrets
  ...namesOf(isClean(exclusions) ? withoutRuled(exclusions) : exclusions).flatMap(({ kind, name }) => [
    `--iglob=!${untrimmed(literal(name))}`,
    // rg does not exclude a start folder by its own name.
    ...(kind === "folder" ? [`--iglob=!**/${literal(name)}/**`] : []),
  ]),
  ...shownPaths(exclusions).map(({ path }) => `--iglob=!/${untrimmed(literal(path.replace(/^\.\//, "")))}`),
  ...(exclusions.isWhole
    ? []
    : [
        ...[...secretPatterns.files, ...secretPatterns.folders, ...PLACES],
        ...secretPatterns.folders.map((name) => `${name}/**`),
      ].map((name) => `--iglob=!**/${inOneName(name).replaceAll("#", "[#]")}`)),
];

/** For both sides of a comparison. Links are compared as links, because one could lead anywhere. */
const diffOptions = (exclusions: Exclusions): readonly string[] => [
  "--no-dereference",
  ...namesOf(exclusions).map(({ name }) => `--exclude=${literal(name)}`),
  ...(exclusions.isWhole
    ? []
    : [...FILES_IN_LARGE_TREES, ...FOLDERS_IN_LARGE_TREES].map((name) => `--exclude=${caseInsensitive(name)}`)),
];

const findTests = ({ found, starts, isWhole }: Exclusions): readonly string[] => [
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
        // Here a star matches any number of folders.
        ...PLACES.flatMap((name) => ["!", "-ipath", `*/${inOneName(name).replace("/**/", "/")}`]),
      ]),
];

const optionsFor = (program: string, exclusions: Exclusions): readonly string[] => {
  if (GREPS.includes(program)) return grepOptions(exclusions);
  if (program === "rg") return rgOptions(exclusions);
  return program === "diff" ? diffOptions(exclusions) : [];
};

/** Adds the exclusions to the words of a command that walks, or to the inner command if another one runs it. */
export const withoutKeys = (program: string, words: readonly string[], exclusions: Exclusions): readonly string[] => {
  if (program === "find") return findWithout(words, exclusions);
  const at = program === "xargs" ? words.findIndex((word) => !word.startsWith("-")) : -1;
  if (at >= 0) return [...words.slice(0, at + 1), ...withoutKeys(words[at] ?? "", words.slice(at + 1), exclusions)];
  const options = optionsFor(program, exclusions);
  const end = words.indexOf("--");
  return end < 0 ? [...words, ...options] : [...words.slice(0, end), ...options, ...words.slice(end)];
};

/** In parentheses together with the action: otherwise a `!` before the action would negate the first exclusion. */
const findWithout = (words: readonly string[], exclusions: Exclusions): readonly string[] => {
  const first = words.indexOf("-exec");
  if (first < 0) return words;
  const end = words.findIndex((word, at) => at > first && (word === ";" || word === "+"));
  const last = end < 0 ? words.length : end;
  const [program = "", ...inner] = words.slice(first + 1, last - 1); // the found names come last
  return [
    ...words.slice(0, first),
    ...["(", ...findTests(exclusions), "-exec", program, ...withoutKeys(program, inner, exclusions)],
    ...[...words.slice(last - 1, last + 1), ")"],
    ...findWithout(words.slice(last + 1), exclusions),
  ];
};
