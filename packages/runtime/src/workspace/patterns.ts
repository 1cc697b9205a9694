/** File names that a pattern stands for, found by us and not by a shell.
 *  Invariant: as bash does without options (hidden names only where the pattern says so, sorted, the pattern itself when
 *  nothing matches), but a name can never become an option. Matching takes no longer than name times pattern.
 *  Elsewhere: which words are patterns (guard/bash). */

import { lstatSync, readdirSync, statSync } from "node:fs";
import { resolve } from "node:path";

const MOST_NAMES = 10_000;

/** What one place in a pattern takes: any run of letters, or one letter. */
type Sign = "run" | ((letter: string) => boolean);

/** A part of a pattern between slashes: its signs, or its plain text where it has no pattern character. */
const readPart = (part: string): readonly Sign[] | string => {
  const letters = [...part];
  const signs: Sign[] = [];
  let plain = "";
  let matches = false;
  for (let at = 0; at < letters.length; at += 1) {
    const letter = letters[at] as string;
    const close = letter === "[" ? letters.indexOf("]", at + 2) : -1;
    if (letter === "*" || letter === "?" || close > 0) matches = true;
    if (letter === "*") {
      if (signs.at(-1) !== "run") signs.push("run");
    } else if (letter === "?") signs.push(() => true);
    else if (close > 0) {
      signs.push(readSet(letters.slice(at + 1, close)));
      at = close;
    } else {
      if (letter === "\\" && at + 1 < letters.length) at += 1;
      const meant = letters[at] as string;
      plain += meant;
      signs.push((given) => given === meant);
    }
  }
  return matches ? signs : plain;
};

/** `abc`, `a-z`, and `!` or `^` before them for everything else. */
const readSet = (letters: readonly string[]): ((letter: string) => boolean) => {
  const negated = letters[0] === "!" || letters[0] === "^";
  const members = negated ? letters.slice(1) : letters;
  const ranges: (readonly [string, string])[] = [];
  for (let at = 0; at < members.length; at += 1) {
    const from = members[at] as string;
    const to = members[at + 1] === "-" ? members[at + 2] : undefined;
    ranges.push([from, to ?? from]);
    if (to !== undefined) at += 2;
  }
  return (given) => ranges.some(([from, to]) => from <= given && given <= to) !== negated;
};

/** When a later sign fails, only the last run can take one letter more: earlier ones would gain nothing by it. */
const isMatch = (name: string, signs: readonly Sign[]): boolean => {
  const letters = [...name];
  let [at, sign, run, taken] = [0, 0, -1, 0];
  while (at < letters.length) {
    const wanted = signs[sign];
    if (wanted === "run") {
      run = sign;
      taken = at;
      sign += 1;
    } else if (wanted?.(letters[at] as string)) {
      at += 1;
      sign += 1;
    } else if (run >= 0) {
      taken += 1;
      at = taken;
      sign = run + 1;
    } else return false;
  }
  return signs.slice(sign).every((left) => left === "run");
};

const namesIn = (folder: string, signs: readonly Sign[], hidden: boolean): readonly string[] => {
  try {
    return readdirSync(folder).filter((name) => (hidden || !name.startsWith(".")) && isMatch(name, signs));
  } catch {
    return [];
  }
};

/** A name that ends in a slash must be a folder; any other may be a link to nowhere. */
const isThere = (path: string, folder: string): boolean => {
  try {
    if (path.endsWith("/")) return statSync(resolve(folder, path)).isDirectory();
    lstatSync(resolve(folder, path));
    return true;
  } catch {
    return false;
  }
};

/** The names, relative or absolute as the pattern is. */
export const expandPattern = (pattern: string, folder: string): readonly string[] => {
  const [first = "", ...more] = pattern.split("/");
  let found: readonly string[] = [first === "" ? "/" : ""];
  for (const part of first === "" ? more : [first, ...more]) {
    const signs = readPart(part);
    found = found.flatMap((before) => {
      const under = (name: string): string =>
        before === "" || before.endsWith("/") ? before + name : `${before}/${name}`;
      if (typeof signs === "string") return [under(signs)];
      return namesIn(resolve(folder, before), signs, /^\\?\./.test(part)).map(under);
    });
    if (found.length > MOST_NAMES) throw new RangeError(`the pattern stands for more than ${MOST_NAMES} names`);
  }
  const names = found.filter((path) => isThere(path, folder)).sort();
  return names.length > 0 ? names.map(notAnOption) : [notAnOption(pattern.replace(/\\(.)/gs, "$1"))];
};

const notAnOption = (name: string): string => (name.startsWith("-") ? `./${name}` : name);
