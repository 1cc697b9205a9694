/** grep excludes folders only by their last name. So if a rule names such a folder, grep gets its siblings instead.
 *  Invariant: grep gets regular files and folders, never what a rule names nor a parent of it. If that would be too
 *  many words, or would change what grep prints, it is not done.
 *  Elsewhere: what rules name below a folder (walk-starts.ts), excluding by name (walk-limits.ts). */

import type { Dirent } from "node:fs";
import { listFolder } from "../files/index.ts";
import { type Exclusions, isBelow, type WalkStart } from "./walk-limits.ts";

const MOST_WORDS = 1_000;

type FolderEntries = { readonly words: readonly string[]; readonly hasFolder: boolean };

/** The entries of the folder, without excluded paths. A folder that contains an excluded path is replaced by its own
 *  entries. */
const entriesExcept = (folder: string, prefix: string, kept: readonly string[]): FolderEntries | undefined => {
  const words: string[] = [];
  let hasFolder = false;
  const entries = entriesOf(folder);
  if (entries.length > MOST_WORDS) return undefined;
  for (const entry of entries) {
    const path = folder.endsWith("/") ? folder + entry.name : `${folder}/${entry.name}`;
    // If named directly, grep would follow a link and wait for a pipe; inside a folder it skips both.
    if (kept.includes(path) || !(entry.isFile() || entry.isDirectory())) continue;
    const name = prefix === "" && entry.name.startsWith("-") ? `./${entry.name}` : prefix + entry.name;
    if (entry.name.includes("\ufffd")) return undefined;
    if (kept.some((one) => one.startsWith(`${path}/`))) {
      const inside = entriesExcept(path, `${name}/`, kept);
      if (!inside) return undefined;
      words.push(...inside.words);
      hasFolder ||= inside.hasFolder;
    } else {
      words.push(name);
      hasFolder ||= entry.isDirectory();
    }
  }
  return words.length > MOST_WORDS ? undefined : { words, hasFolder };
};

const entriesOf = (folder: string): readonly Dirent[] => {
  try {
    return listFolder(folder, MOST_WORDS);
  } catch {
    return [];
  }
};

type ReplacedStarts = { readonly words: readonly string[]; readonly exclusions: Exclusions };

/** `operands`: indexes of the words that grep starts from. Other words stay as they are: an option's value may be a
 *  folder too. */
export const replaceStarts = (
  words: readonly string[],
  operands: ReadonlySet<number>,
  exclusions: Exclusions,
): ReplacedStarts => {
  const startAt = (word: string, at: number): WalkStart | undefined =>
    operands.has(at) ? exclusions.starts.find((start) => start.word === word) : undefined;
  const given = words.flatMap((word, at) => startAt(word, at) ?? []);
  const here = operands.size === 0 ? exclusions.starts.filter(({ word }) => word === ".").slice(0, 1) : [];
  const keptBelow = (start: WalkStart): readonly string[] =>
    exclusions.found.filter((one) => one.byRule && isBelow(one.path, start)).map(({ path }) => path);
  const replacementFor = (start: WalkStart): readonly string[] | undefined => {
    const kept = keptBelow(start);
    const prefix = operands.size > 0 ? `${start.word.replace(/\/+$/, "")}/` : "";
    const found = kept.length === 0 ? undefined : entriesExcept(start.path, prefix, kept);
    // With a single file, grep would not print its name.
    return !found || (found.words.length < 2 && !found.hasFolder) ? undefined : found.words;
  };
  const ways = new Map([...given, ...here].map((start) => [start.word, replacementFor(start)]));
  const rounded = words.flatMap((word, at) => (startAt(word, at) && ways.get(word)) ?? [word]);
  const added = here.flatMap(({ word }) => ways.get(word) ?? []);
  /** If one start cannot be replaced by its entries, its excluded paths must be excluded by name, whatever the other
   *  starts do. */
  const isGone = (path: string): boolean => {
    const above = exclusions.starts.filter((start) => isBelow(path, start));
    return above.every(({ word }) => ways.get(word) !== undefined) && (above.length > 0 || given.length > 0);
  };
  const found = exclusions.found.filter(({ path, byRule }) => !(byRule && isGone(path)));
  return { words: [...rounded, ...added], exclusions: { ...exclusions, found } };
};
