/** What did a tool return, in a few lines?
 *  Invariant: pure; only what stands in the result is told, and what is cut is counted.
 *  Elsewhere: which calls were made (work.ts), the whole report (report.ts). */

import type { Json } from "@prefork/wire";
import type { Result } from "./conversation.ts";
import type { Look } from "./moves.ts";

export type Told = {
  readonly ok: boolean;
  /** One line that says it all, if one can. */
  readonly headline: string;
  readonly excerpt: readonly string[];
  /** Files that the result speaks of. */
  readonly files: readonly string[];
};

const EXCERPT_LINES = 8;
const LINE_LENGTH = 160;

const cut = (line: string): string =>
  line.length > LINE_LENGTH ? `${line.slice(0, LINE_LENGTH - 1).toWellFormed()}…` : line;

/** The first lines, and how many more there are. */
export const excerptOf = (lines: readonly string[], most = EXCERPT_LINES): readonly string[] =>
  lines.length <= most
    ? lines.map(cut)
    : [
        ...lines.slice(0, most).map(cut),
        `… and ${lines.length - most} more ${lines.length - most === 1 ? "line" : "lines"}`,
      ];

/** Of a command the beginning and the end: it is the end that says how it went. */
const bothEnds = (lines: readonly string[]): readonly string[] => {
  const [first, last] = [4, 10];
  const between = lines.length - first - last;
  if (between <= 1) return lines.map(cut);
  return [...lines.slice(0, first), `… ${between} lines …`, ...lines.slice(-last)].map(cut);
};

const linesOf = (text: string): readonly string[] => text.split("\n").filter((line) => line.trim() !== "");

export const plural = (count: number, one: string, many = `${one}s`): string => `${count} ${count === 1 ? one : many}`;

/** How the loop words a call that the guard or the user refused. */
const DENIED = /^(?:not allowed|denied)\b/i;

export const isDenied = ({ text, isError }: Result): boolean => isError && DENIED.test(text);

/** Why a call gave nothing: the tool's own words. */
export const failure = (what: string, { text }: Result): Told => ({
  ok: false,
  headline: `${what} ${DENIED.test(text) ? "was denied" : "failed"}`,
  excerpt: bothEnds(linesOf(text)),
  files: [],
});

const isRemark = (line: string): boolean =>
  /^\[.*\]$/.test(line) || /^No(?:thing)? .*(?:\.|\bfound|\bmatch(?:es)?)$/i.test(line);

/** The result of a search without anything found in it: the tool says that there is nothing, or else it is not a result
 *  that we know, and no result is not an empty one. */
const tellNothing = (lines: readonly string[], headline: string): Told => {
  const excerpt = excerptOf(lines, 3);
  if (lines.length === 0) return { ok: false, headline: "the tool returned no text", excerpt, files: [] };
  const isKnown = lines.every(isRemark);
  return { ok: isKnown, headline: isKnown ? headline : "the result has an unknown form", excerpt, files: [] };
};

/** Tools say how much they left out; then a count is of what they showed. */
const atLeast = (lines: readonly string[]): string =>
  lines.some((line) => /^\[(?:\d[\d,]* more |Too long|the search was ended)/.test(line)) ? "at least " : "";

/** Matching lines stand under the name of their file, as `12:text`. */
const MATCH = /^\d+:/;

const tellSearch = (text: string): Told => {
  const lines = linesOf(text);
  const isMatch = (line: string | undefined): boolean => line !== undefined && MATCH.test(line);
  const matches = lines.filter(isMatch);
  const files = lines.filter((line, index) => !isMatch(line) && isMatch(lines[index + 1]) && line !== "--");
  if (matches.length === 0) return tellNothing(lines, "nothing found");
  const shown = `${atLeast(lines)}${plural(matches.length, "matching line")} in ${plural(files.length, "file")}`;
  return { ok: true, headline: shown, excerpt: excerptOf(lines), files };
};

const tellNames = (text: string): Told => {
  const lines = linesOf(text);
  const names = lines.filter((line) => !isRemark(line));
  if (names.length === 0) return tellNothing(lines, "no files");
  const headline = `${atLeast(lines)}${plural(names.length, "file")}`;
  return { ok: true, headline, excerpt: excerptOf(lines), files: names };
};

const COUNTED = /^(.+?):\s*(\d+)$/;

const tellCount = (text: string): Told => {
  const lines = linesOf(text);
  const counts = lines.flatMap((line) => {
    const [, file, count] = COUNTED.exec(line) ?? [];
    return file === undefined ? [] : [{ file, count: Number(count) }];
  });
  if (counts.length === 0) return tellNothing(lines, "0 lines in 0 files");
  const sum = counts.reduce((all, { count }) => all + count, 0);
  const headline = `${atLeast(lines)}${plural(sum, "line")} in ${plural(counts.length, "file")}`;
  return { ok: true, headline, excerpt: excerptOf(lines), files: counts.map(({ file }) => file) };
};

/** The last line of a command's output says how it ended. */
const EXIT = /\[exit code (-?\d+)[^\]]*\]\s*$/;

const tellRun = (text: string): Told => {
  const code = EXIT.exec(text)?.[1];
  const lines = linesOf(text.replace(EXIT, ""));
  const ended = code === undefined ? "done" : `exit code ${code}`;
  const headline = lines.length === 0 ? `${ended}, no output` : ended;
  return { ok: code === undefined || code === "0", headline, excerpt: bothEnds(lines), files: [] };
};

/** A pipe ends well when its last program does; what the first one said about a place is told as a failure. */
const COMPLAINT = /^(?:grep|find): /;

const tellPipe = (text: string, headline: (lines: readonly string[]) => string): Told => {
  const told = tellRun(text);
  const lines = linesOf(text.replace(EXIT, "")).map((line) => line.trim());
  if (lines.some((line) => COMPLAINT.test(line))) return { ...told, ok: false, headline: "could not look everywhere" };
  return told.ok ? { ...told, headline: headline(lines), excerpt: excerptOf(lines) } : told;
};

/** Each line stands there more than once. */
const tellRepeats = (text: string): Told =>
  tellPipe(text, (lines) => {
    const repeated = lines.filter((line) => !isRemark(line));
    return repeated.length === 0
      ? "no match stands there twice"
      : `${atLeast(lines)}${plural(repeated.length, "match", "matches")} more than once`;
  });

const TALLIED = /^(\d+) /;

/** As `uniq` counts: a number and what was counted. */
const tellTally = (text: string): Told =>
  tellPipe(text, (lines) => {
    const counts = lines.flatMap((line) => TALLIED.exec(line)?.slice(1).map(Number) ?? []);
    const sum = counts.reduce((all, count) => all + count, 0);
    return `${atLeast(lines)}${plural(sum, "file")} in ${plural(counts.length, "folder")}`;
  });

const NUMBERED = /^\s*(\d+)(?:\t|→)(.*)$/;

/** The lines of a file as a Read shows them, without their numbers; what is not numbered is a remark. */
export const numberedLines = (
  text: string,
): { readonly lines: readonly string[]; readonly last: number; readonly remark: string } => {
  const lines: string[] = [];
  const remarks: string[] = [];
  let last = 0;
  for (const line of text.split("\n")) {
    const [, number, words] = NUMBERED.exec(line) ?? [];
    // A number that does not follow the one before belongs to somebody else's text.
    if (number === undefined || (last !== 0 && Number(number) !== last + 1)) remarks.push(line);
    else {
      last = Number(number);
      lines.push(words ?? "");
    }
  }
  return { lines, last, remark: remarks.join("\n").trim() };
};

/** Lines that were asked for by number are shown, up to a page. */
const MOST_ASKED_LINES = 60;

const tellRead = (text: string, asked: Json | undefined): Omit<Told, "ok"> => {
  const { lines, last, remark } = numberedLines(text);
  if (lines.length === 0)
    return { headline: text.trim() === "" ? "no text" : "read", excerpt: excerptOf(linesOf(text)), files: [] };
  const most = typeof asked === "number" ? Math.min(asked, MOST_ASKED_LINES) : EXCERPT_LINES;
  const first = last - lines.length + 1;
  const all = /^\[lines \d+ to \d+ (of \d+)/.exec(remark)?.[1];
  const headline = `lines ${first} to ${last}${all === undefined ? "" : ` ${all}`}`;
  return {
    headline,
    excerpt: excerptOf(
      lines.map((line, index) => `${first + index}\t${line}`),
      most,
    ),
    files: [],
  };
};

/** What a look brought. */
export const tell = (look: Look, result: Result): Told => {
  if (result.isError) return failure(look.name, result);
  const { file_path: path, limit } = look.input;
  switch (look.about) {
    case "search":
      return tellSearch(result.text);
    case "count":
      return tellCount(result.text);
    case "names":
    case "list":
      return tellNames(result.text);
    case "read":
      return { ok: true, ...tellRead(result.text, limit), files: typeof path === "string" ? [path] : [] };
    case "run":
      return tellRun(result.text);
    case "repeats":
      return tellRepeats(result.text);
    case "tally":
      return tellTally(result.text);
  }
};
