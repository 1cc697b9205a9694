/** Expands file name patterns, without a shell.
 *  Invariant: as bash does without options (hidden names only if the pattern says so, sorted, the pattern itself if
 *  nothing matches), but a name can never become an option.
 *  Elsewhere: which words are patterns (../bash), matching one name (../paths). */

import { lstatSync, readdirSync, statSync } from "node:fs";
import { resolveName } from "../files/index.ts";
import { matchesTokens, type ParsedPattern, parsePattern } from "../paths/index.ts";
import { Turns } from "./in-turns.ts";

const MOST_NAMES = 10_000;
/** Links to the folder they are in make a few thousand files look like millions. */
const MOST_LOOKED_AT = 200_000;

/** A long name and a long pattern take thousands of comparisons. */
const MOST_STEPS = 20_000_000;

/** How many names the patterns of a pipe have been compared with so far, and in how many steps. */
export type PatternSearch = { names: number; steps: number; readonly signal?: AbortSignal };

const entriesOf = (folder: string): readonly string[] => {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
};

/** A name that ends in a slash must be a folder; any other may be a dangling link. */
const isThere = (path: string, folder: string): boolean => {
  try {
    if (path.endsWith("/")) return statSync(resolveName(folder, path)).isDirectory();
    lstatSync(resolveName(folder, path));
    return true;
  } catch {
    return false;
  }
};

/** The names, relative or absolute as the pattern is. */
export const expandPattern = async (
  pattern: string,
  folder: string,
  lookedAt: PatternSearch = { names: 0, steps: 0 },
): Promise<readonly string[]> => {
  const [first = "", ...more] = pattern.split("/");
  let found: readonly string[] = [first === "" ? "/" : ""];
  const turns = new Turns();
  const namesIn = async (inside: string, signs: ParsedPattern, hidden: boolean): Promise<readonly string[]> => {
    const entries = entriesOf(inside);
    lookedAt.names += entries.length;
    if (lookedAt.names > MOST_LOOKED_AT)
      throw new RangeError(`the patterns are compared with more than ${MOST_LOOKED_AT} names`);
    const matching: string[] = [];
    for (const name of entries) {
      if (lookedAt.steps > MOST_STEPS) throw new RangeError("the patterns are too long for so many long names");
      if ((hidden || !name.startsWith(".")) && matchesTokens(name, signs, lookedAt)) matching.push(name);
      if (turns.isOver) await turns.next();
      if (lookedAt.signal?.aborted) return []; // the command will not run
    }
    return matching;
  };
  for (const part of first === "" ? more : [first, ...more]) {
    const signs = parsePattern(part);
    const below: string[] = [];
    for (const before of found) {
      const under = (name: string): string =>
        before === "" || before.endsWith("/") ? before + name : `${before}/${name}`;
      const names =
        typeof signs === "string" ? [signs] : await namesIn(resolveName(folder, before), signs, /^\\?\./.test(part));
      for (const name of names) below.push(under(name));
      if (below.length > MOST_NAMES) throw new RangeError(`the pattern matches more than ${MOST_NAMES} names`);
    }
    found = below;
  }
  const names = found.filter((path) => isThere(path, folder)).sort();
  return names.length > 0 ? names.map(notAnOption) : [notAnOption(pattern.replace(/\\(.)/gs, "$1"))];
};

const notAnOption = (name: string): string => (name.startsWith("-") ? `./${name}` : name);
