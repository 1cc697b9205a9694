/** The names of files with secrets as patterns, for programs that exclude files by pattern.
 *  Invariant: every path that isSecret reports matches one of these patterns; now and then a harmless name does too. Both are
 *  derived from the same table. The patterns are lower case, so the caller must match without regard to case. Settings that are
 *  secret only in a home folder are not included, because no pattern knows where that is.
 *  Elsewhere: the table (secret-tables.ts), judging a path (secret-names.ts). */

import { withoutFolderCopy } from "./secret-names.ts";
import {
  BARE_WORDS,
  BEGINNINGS,
  COPIES,
  DATA,
  ENDINGS,
  FOLDER_COPIES,
  FOLDERS,
  HISTORIES,
  LONG_ENDINGS,
  PLACES,
  SOURCES,
  SUBJECTS,
  TEMPLATES,
  WORDS,
} from "./secret-tables.ts";

/** The end of a name, optionally followed by the mark of a copy. */
const ended = (name: string): readonly string[] => [name, `${name}[!a-z0-9]*`];

/** The same for a folder, where that would match everyday names: `.aws-sam`. */
const copiedFolder = (name: string): readonly string[] => [
  ...[`${name}[!a-z0-9._-]*`, `${name}[._-]`],
  ...[...FOLDER_COPIES].flatMap((copy) => [`${name}[._-]${copy}`, `${name}[._-]${copy}[!a-z]*`]),
];

/** Drops names that begin with another one. */
const shortest = (words: readonly string[]): readonly string[] =>
  words.filter((word) => !words.some((other) => other !== word && word.startsWith(other)));

/** Prefixes of a copy, by form: `Copy of`, `backup_`; `bak-`, `old.`, `new_`, `tmp-`. */
const BEFORE: readonly string[] = ["copy?of?", "backup[_.-]", "[bont][alem][kdwp][_.-]"];
const prefixed = (name: string): readonly string[] => BEFORE.map((before) => `${before}*${name}`);

const VISIBLE: readonly string[] = BEGINNINGS.filter((name) => !name.startsWith("."));
const HIDDEN: readonly string[] = BEGINNINGS.filter((name) => name.startsWith("."));
/** Parts of each everyday word. */
const STEMS: readonly string[] = ["credential", "secret"];
const BARE: readonly string[] = [...BARE_WORDS].flatMap((word) =>
  ["", ".", ...BEFORE.map((before) => `${before}*`)].flatMap((before) =>
    ["", "[!a-z.]*", ".", ".[!a-z]*"].map((after) => before + word + after),
  ),
);

/** Excludes the endings of source code. */
const UNLESS_SOURCE: readonly string[] = [
  ...SUBJECTS.flatMap((name) => [`${name}*`, `.${name}*`, ...prefixed(`${name}*`)]),
  "*kubeconfig*.*",
  ...STEMS.flatMap((stem) => shortest([...DATA, ...COPIES]).map((last) => `*${stem}*.${last}*`)),
  ...BARE,
  ...[...ENDINGS, "tfvars.json"].flatMap((one) => ended(`*?.${one}`)),
  ...LONG_ENDINGS.filter((one) => one.startsWith("_")).flatMap((one) => ended(`*?${one}`)),
  ...HISTORIES.flatMap((one) => ended(`.*${one}`)),
];

/** Prefixes that editors give to the copy of a file or folder. */
const MARKED: readonly string[] = ["#*", ".#*", "~$*"];

const ALWAYS: readonly string[] = [
  ...[...MARKED, "..*"],
  // A file in place of a folder with secrets, or an archive of it.
  ...FOLDERS.filter((name) => !name.includes("/")).flatMap((name) => [
    name,
    `${name}[!a-z0-9_-]*`,
    `${name}[_-][0-9]*`,
  ]),
  ...[...COPIES].flatMap((copy) => [`.[a-z0-9]*[_-]${copy}`, `.[a-z0-9]*[_-]${copy}[!a-z]*`]),
  ".[a-z0-9]*[_-]",
  ...HIDDEN.map((name) => `${name}*`),
  ...VISIBLE.flatMap((name) => [`${name}*`, `.${name}*`, ...prefixed(`${name}*`)]),
  // A copy of a hidden name, by its prefix.
  ...BEFORE.flatMap((before) => [`${before}.*`, `${before}*[!a-z0-9].*`]),
];

const folded = (place: string): string => place.split("/").map(withoutFolderCopy).join("/");
const FOLDED_FOLDERS: readonly string[] = [...new Set(FOLDERS.map(folded))];
const FOLDED_PLACES: readonly string[] = [...new Set(PLACES.map(folded))];
/** Includes the folders that lead to a place. */
const HIDDEN_FOLDERS: readonly string[] = [
  ...new Set([
    ...FOLDED_FOLDERS.flatMap((place) => place.split("/")),
    ...FOLDED_PLACES.flatMap((place) => place.split("/").slice(0, -1)),
  ]),
].filter((name) => name.startsWith("."));
const isSingle = (place: string): boolean => !place.includes("/");
const split = (place: string): readonly [string, string] => {
  const at = place.lastIndexOf("/");
  return [place.slice(0, at), place.slice(at + 1)];
};

/** A path with a copied folder that is not hidden. */
const fromCopy = (place: string): readonly string[] =>
  place
    .split("/")
    .slice(0, -1)
    .flatMap((name, at, all) =>
      name.startsWith(".")
        ? []
        : [[...all.slice(0, at), `${name}[!a-z0-9]*`, ...all.slice(at + 1), split(place)[1]].join("/")],
    );

const COPIED_FOLDERS: readonly string[] = [
  ...MARKED,
  ...copiedFolder(".[a-z0-9]*"),
  ...BEFORE.flatMap((before) => [`${before}.*`, `${before}*[!a-z0-9].*`]),
  ...FOLDED_FOLDERS.filter((name) => isSingle(name) && !name.startsWith(".")).map((name) => `${name}[!a-z0-9]*`),
  ...HIDDEN_FOLDERS.map((name) => `${name}[._-][0-9]*`),
  ...FOLDED_FOLDERS.filter((place) => !isSingle(place)).flatMap((place) => [
    ...[`${place}[!a-z0-9]*`, ...fromCopy(place)],
    ...(split(place)[1].startsWith(".")
      ? BEFORE.map((before) => `${split(place)[0]}/${before}*${split(place)[1]}`)
      : []),
  ]),
];

/** Ordinary names in ordinary folders: `src/git/config.ts` is not a copy. */
const ORDINARY: readonly string[] = ["git/config", "huggingface/token"];

const placePattern = (place: string): string => {
  const [folder, last] = split(place);
  return `${folder}/*${last}*`;
};

const ordinaryPatterns = (place: string): readonly string[] => {
  const [folder, last] = split(place);
  const before = [".", ...BEFORE.map((one) => `${one}*`)].map((one) => `${folder}/${one}${last}*`);
  const after = ["[!a-z0-9._-]*", "[._-]", "[._-][0-9]*", ...shortest([...COPIES]).map((copy) => `[._-]${copy}*`)];
  return [place, ...after.map((one) => place + one), ...before];
};

const EXAMPLES: readonly string[] = ["env", "json", "yaml", "yml"];

export const secretPatterns: {
  /** Names of files. */
  readonly files: readonly string[];
  /** Names among them that are not secret if the ending is one of `sources`. */
  readonly filesUnlessSource: readonly string[];
  readonly filesAlways: readonly string[];
  readonly sources: readonly string[];
  /** Matches of `files` that are not secret after all, unless one of `noTemplates` matches too. */
  readonly templates: readonly string[];
  readonly noTemplates: readonly string[];
  /** Folders with everything in them, and files of these names. */
  readonly folders: readonly string[];
  /** Paths of files; `**` stands for any number of folders. */
  readonly places: readonly string[];
  /** More paths, where ordinary files have almost the same name: exact, and as fewer patterns that match more. */
  readonly ordinaryPlaces: readonly string[];
  readonly placesUnlessSource: readonly string[];
} = {
  files: [...UNLESS_SOURCE, ...ALWAYS],
  filesUnlessSource: UNLESS_SOURCE,
  filesAlways: ALWAYS,
  sources: [...SOURCES].map((ending) => `*.${ending}`),
  templates: [
    ...[...TEMPLATES].flatMap((word) => [
      ...[`*[._-]${word}`, `${word}.env`],
      ...EXAMPLES.map((ending) => `*[._-]${word}.${ending}`),
    ]),
    // Settings of secret scanners, which match the patterns of what they look for.
    ...[".secrets.baseline", ".secretlintrc.json"],
  ],
  noTemplates: EXAMPLES.map((ending) => `*.env*.${ending}`),
  folders: [...FOLDED_FOLDERS, ...COPIED_FOLDERS],
  places: [
    ...FOLDED_PLACES.filter((place) => !ORDINARY.includes(place)).flatMap((place) =>
      [place, ...fromCopy(place)].map(placePattern),
    ),
    ...["*.git/**/*config*", "*.git[!a-z0-9]*/**/*config*", "prefork*/sessions*/*/*journal*"],
    "prefork*/sessions*/*/rewind-files*/**/*",
  ],
  ordinaryPlaces: ORDINARY.flatMap((place) => [place, ...fromCopy(place)].flatMap(ordinaryPatterns)),
  placesUnlessSource: ORDINARY.flatMap((place) => [place, ...fromCopy(place)].map(placePattern)),
};

/** One sample name for each row of the table. */
export const secretSamples: readonly string[] = [
  ...[...BEGINNINGS, ...SUBJECTS.map((name) => `${name}.json`)],
  ...[...BARE_WORDS, ...[...WORDS].flatMap((word) => [...DATA].map((last) => `${word}.${last}`))],
  ...[...ENDINGS].map((one) => `x.${one}`),
  ...LONG_ENDINGS.map((one) => `x${one}`),
  ...HISTORIES.map((one) => `.x${one}`),
  ...FOLDERS.map((name) => `${name}/config`),
  ...[
    ...PLACES,
    ".git/config",
    "prefork/sessions/x/journal.jsonl",
    "prefork/sessions/x/rewind-files/git/objects/ab/cd",
  ],
];
