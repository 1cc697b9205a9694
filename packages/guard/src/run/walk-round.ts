/** grep leaves out folders by their last name alone; so where a rule names one of them, grep is given what stands beside it.
 *  Invariant: what is handed over are plain files and folders, never what a rule names nor a folder above it; where that
 *  would be too many words, or would change what grep prints, it is not done.
 *  Elsewhere: what rules name below a folder (walk-starts.ts), leaving out by name (walk-limits.ts). */

import type { Dirent } from "node:fs";
import { listFolder } from "./list-folder.ts";
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

/** Options that may take the next word. */
const TAKES_VALUE = /^--[^=]+$|^-[a-zA-Z]*[efmABCDd]$/;

type Rounded = { readonly words: readonly string[]; readonly left: LeftOut };

/** `sought`: places of words that are text to look for. */
export const goRound = (words: readonly string[], sought: ReadonlySet<number>, left: LeftOut): Rounded => {
  const isStart = (word: string, at: number): boolean =>
    !sought.has(at) && left.starts.some((start) => start.word === word);
  const isGiven = words.some(isStart);
  // A word that is no option's value is a folder, so that grep does not begin where it is.
  const isCertain = words.some(
    (word, at) => isStart(word, at) && (sought.has(at - 1) || !TAKES_VALUE.test(words[at - 1] ?? "--x")),
  );
  const gone = new Set<string>();
  const around = ({ word, path }: WalkStart): readonly string[] | undefined => {
    const kept = left.found.filter((one) => one.byRule && isBelow(one.path, { word, path }));
    if (kept.length === 0) return undefined;
    const found = beside(
      path,
      isGiven ? `${word.replace(/\/+$/, "")}/` : "",
      kept.map((one) => one.path),
    );
    // A single file would be searched without its name being told.
    if (!found || (found.words.length < 2 && !found.hasFolder)) return undefined;
    for (const one of kept) gone.add(one.path);
    return found.words;
  };
  const rounded = words.flatMap((word, at) => {
    const start = isStart(word, at) ? left.starts.find((one) => one.word === word) : undefined;
    return (start && around(start)) ?? [word];
  });
  const [here] = left.starts;
  const added = isGiven || !here ? [] : (around(here) ?? []);
  const isReached = (path: string): boolean => left.starts.some((start) => isBelow(path, start));
  const found = left.found.filter(({ path, byRule }) => !gone.has(path) && !(byRule && isCertain && !isReached(path)));
  return { words: [...rounded, ...added], left: { ...left, found } };
};
