/** grep excludes folders only by their last name. So if a rule names such a folder, grep gets its siblings instead.
 *  Invariant: grep gets regular files and folders, never what a rule names nor a parent of it. If that would be too many words, or would
 *  change what grep prints, it is not done.
 *  Elsewhere: what rules name below a folder (walk-starts.ts), excluding by name (walk-limits.ts). */

import type { Dirent } from "node:fs";
import { listFolder } from "../files/index.ts";
import { isBelow, type LeftOut, type WalkStart } from "./walk-limits.ts";

const MOST_WORDS = 1_000;

type Beside = { readonly words: readonly string[]; readonly hasFolder: boolean };

/** What stands in the folder, with what is kept back and the folders above that gone round. */
const beside = (folder: string, prefix: string, kept: readonly string[]): Beside | undefined => {
  const words: string[] = [];
  let hasFolder = false;
  const entries = entriesOf(folder);
  if (entries.length > MOST_WORDS) return undefined;
  for (const entry of entries) {
    const path = folder.endsWith("/") ? folder + entry.name : `${folder}/${entry.name}`;
    // Named by itself, a link would be followed and a pipe waited for; below a folder grep passes them over.
    if (kept.includes(path) || !(entry.isFile() || entry.isDirectory())) continue;
    const name = prefix === "" && entry.name.startsWith("-") ? `./${entry.name}` : prefix + entry.name;
    if (entry.name.includes("\ufffd")) return undefined;
    if (kept.some((one) => one.startsWith(`${path}/`))) {
      const inside = beside(path, `${name}/`, kept);
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

type Rounded = { readonly words: readonly string[]; readonly left: LeftOut };

/** `operands`: places of words that grep begins at. Other words stay as they are: an option's value may be a folder too. */
export const goRound = (words: readonly string[], operands: ReadonlySet<number>, left: LeftOut): Rounded => {
  const startAt = (word: string, at: number): WalkStart | undefined =>
    operands.has(at) ? left.starts.find((start) => start.word === word) : undefined;
  const given = words.flatMap((word, at) => startAt(word, at) ?? []);
  const here = operands.size === 0 ? left.starts.filter(({ word }) => word === ".").slice(0, 1) : [];
  const keptBelow = (start: WalkStart): readonly string[] =>
    left.found.filter((one) => one.byRule && isBelow(one.path, start)).map(({ path }) => path);
  const around = (start: WalkStart): readonly string[] | undefined => {
    const kept = keptBelow(start);
    const prefix = operands.size > 0 ? `${start.word.replace(/\/+$/, "")}/` : "";
    const found = kept.length === 0 ? undefined : beside(start.path, prefix, kept);
    // A single file would be searched without its name being told.
    return !found || (found.words.length < 2 && !found.hasFolder) ? undefined : found.words;
  };
  const ways = new Map([...given, ...here].map((start) => [start.word, around(start)]));
  const rounded = words.flatMap((word, at) => (startAt(word, at) && ways.get(word)) ?? [word]);
  const added = here.flatMap(({ word }) => ways.get(word) ?? []);
  /** What one start does not go round has to be left out by name, whatever the others do. */
  const isGone = (path: string): boolean => {
    const above = left.starts.filter((start) => isBelow(path, start));
    return above.every(({ word }) => ways.get(word) !== undefined) && (above.length > 0 || given.length > 0);
  };
  const found = left.found.filter(({ path, byRule }) => !(byRule && isGone(path)));
  return { words: [...rounded, ...added], left: { ...left, found } };
};
