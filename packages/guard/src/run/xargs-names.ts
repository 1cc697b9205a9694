/** The names that xargs would read from a text, and the arguments it then runs with.
 *  Invariant: read exactly as GNU xargs reads them (blanks, quotes and backslashes, lines for -I, delimiters for -0
 *  and -d). xargs then gets the same names with a zero after each, so no other xargs can read them differently. Pure,
 *  linear.
 *  Elsewhere: options as single words (../bash/programs/xargs.ts), checking the names (run-pipe.ts). */

import { innerProgramIndex, type PlanWord } from "../rules/index.ts";

export type XargsNames = {
  readonly names: readonly string[];
  /** Each option as one word, so that names are taken as they are. */
  readonly options: readonly PlanWord[];
  /** The program that is run, its own words after it. */
  readonly inner: readonly PlanWord[];
  /** The placeholder that each name replaces (`-I`). */
  readonly place?: string;
  /** Why xargs would fail after these names. */
  readonly complaint?: string;
};

export type XargsProblem = { readonly problem: string };

type Line = readonly string[];

type Read = { readonly lines: readonly Line[]; readonly complaint?: string };

const unmatched = (quote: string): string =>
  `xargs: a name has a ${quote} without its end; use -print0 and xargs -0, or xargs -d '\\n'`;

const BLANK = /[ \t]/;
const SPACE = /[ \t\n\v\f\r]/;

/** What xargs does without -0 and -d. `whole`: a line is one name, as for -I. */
const readWords = (text: string, whole: boolean): Read | XargsProblem => {
  const lines: string[][] = [[]];
  let name: string | undefined;
  let quote = "";
  let from = 0;
  /** Copies slices, because adding letter by letter would take longer. */
  const take = (to: number): void => {
    if (to > from || name !== undefined) name = (name ?? "") + text.slice(from, to);
  };
  const end = (): void => {
    if (name !== undefined) lines.at(-1)?.push(name);
    name = undefined;
  };
  for (let at = 0; at < text.length; at += 1) {
    const letter = text[at] as string;
    if (letter === "\0") return { problem: "xargs: a zero among the names; use xargs -0" };
    if (quote !== "") {
      if (letter === "\n") break;
      if (letter !== quote) continue;
      name = (name ?? "") + text.slice(from, at);
      quote = "";
      from = at + 1;
    } else if (name === undefined && from === at && SPACE.test(letter)) {
      from = at + 1; // any space before a name is skipped
    } else if (letter === "\n" || (!whole && BLANK.test(letter))) {
      take(at);
      end();
      from = at + 1;
      // A line that ends in a blank continues on the next line.
      if (letter === "\n" && !BLANK.test(text[at - 1] ?? "")) lines.push([]);
    } else if (letter === "\\") {
      take(at);
      if (at + 1 < text.length) name = (name ?? "") + (text[at + 1] as string);
      at += 1;
      from = at + 1;
    } else if (letter === "'" || letter === '"') {
      take(at);
      name ??= "";
      quote = letter;
      from = at + 1;
    }
  }
  if (quote === "") {
    take(text.length);
    end();
  }
  const read = lines.filter((line) => line.length > 0);
  return quote === "" ? { lines: read } : { lines: read, complaint: unmatched(quote) };
};

/** Everything between two delimiters is a name; the last delimiter ends the last name. */
const readBetween = (text: string, sign: string): Read | XargsProblem => {
  const names = text.split(sign);
  if (names.at(-1) === "") names.pop();
  if (names.some((name) => name.includes("\0"))) return { problem: "xargs: a zero among the names; use xargs -0" };
  return { lines: names.map((name) => [name]) };
};

const givenFor = (options: readonly PlanWord[], letter: string): string | undefined =>
  options.find(({ text }) => text[1] === letter)?.text.slice(2);

/** -L counts lines, and names separated by zeros have no lines. If all lines have equally many names, it becomes a
 *  number of names. */
const perRun = (lines: readonly Line[], count: string | undefined): readonly PlanWord[] | XargsProblem => {
  if (count === undefined) return [];
  const most = Math.max(1, ...new Set(lines.map((line) => line.length)));
  const uneven = lines.slice(0, -1).some((line) => line.length !== most);
  if (uneven) return { problem: "xargs -L: lines have different numbers of names; use xargs -n" };
  return [{ text: `-n${Number(count) * most}` }];
};

export const readXargsNames = (args: readonly PlanWord[], text: string): XargsNames | XargsProblem => {
  const at = innerProgramIndex(args);
  const [options, inner] = at < 0 ? [args, [{ text: "echo" }]] : [args.slice(0, at), args.slice(at)];
  const place = givenFor(options, "I");
  const delimiter = givenFor(options, "d");
  const zeros = givenFor(options, "0") !== undefined || delimiter === "\\0";
  const read = zeros
    ? readBetween(text, "\0")
    : delimiter !== undefined
      ? readBetween(text, "\n")
      : readWords(text, place !== undefined);
  if ("problem" in read) return read;
  const { lines, complaint } = read;
  const counted = perRun(lines, givenFor(options, "L"));
  if ("problem" in counted) return counted;
  const kept = options.filter(({ text: option }) => !/^-[0dL]/.test(option));
  return {
    names: lines.flat(),
    options: [{ text: "-0" }, ...kept, ...counted],
    inner,
    ...(place === undefined ? {} : { place }),
    ...(complaint === undefined ? {} : { complaint }),
  };
};
