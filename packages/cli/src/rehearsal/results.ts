/** Summarizes the result of a tool call in a few lines.
 *  Invariant: pure; it reports only what is in the result, and counts what it cuts.
 *  Elsewhere: which calls were made (work.ts), the whole report (report.ts). */

import type { Json } from "@prefork/wire";
import type { Result } from "./conversation.ts";
import type { Look } from "./moves.ts";

export type ResultSummary = {
  readonly ok: boolean;
  /** One line that summarizes the result. */
  readonly headline: string;
  readonly excerpt: readonly string[];
  /** Files that the result names. */
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

/** The beginning and the end of a command's output; the end shows how it went. */
const bothEnds = (lines: readonly string[]): readonly string[] => {
  const [first, last] = [4, 10];
  const between = lines.length - first - last;
  if (between <= 1) return lines.map(cut);
  return [...lines.slice(0, first), `… ${between} lines …`, ...lines.slice(-last)].map(cut);
};

const linesOf = (text: string): readonly string[] => text.split("\n").filter((line) => line.trim() !== "");

export const plural = (count: number, one: string, many = `${one}s`): string => `${count} ${count === 1 ? one : many}`;

/** The text of a call that the guard or the user denied. */
const DENIED = /^(?:not allowed|denied)\b/i;

export const isDenied = ({ text, isError }: Result): boolean => isError && DENIED.test(text);

/** Why a call failed, in the tool's own words. */
export const failure = (what: string, { text }: Result): ResultSummary => ({
  ok: false,
  headline: `${what} ${DENIED.test(text) ? "was denied" : "failed"}`,
  excerpt: bothEnds(linesOf(text)),
  files: [],
});

const isRemark = (line: string): boolean =>
  /^\[.*\]$/.test(line) || /^No(?:thing)? .*(?:\.|\bfound|\bmatch(?:es)?)$/i.test(line);

/** A search result without matches: either the tool says that there are none, or the result has an unknown form, which
 *  is not the same. */
const summarizeEmpty = (lines: readonly string[], headline: string): ResultSummary => {
  const excerpt = excerptOf(lines, 3);
  if (lines.length === 0) return { ok: false, headline: "the tool returned no text", excerpt, files: [] };
  const isKnown = lines.every(isRemark);
  return { ok: isKnown, headline: isKnown ? headline : "the result has an unknown form", excerpt, files: [] };
};

/** If a tool says that it left something out, a count is only a lower bound. */
const atLeast = (lines: readonly string[]): string =>
  lines.some((line) => /^\[(?:\d[\d,]* more |Too long|the search was ended)/.test(line)) ? "at least " : "";

/** Matching lines follow the name of their file, as `12:text`. */
const MATCH = /^\d+:/;

const summarizeSearch = (text: string): ResultSummary => {
  const lines = linesOf(text);
  const isMatch = (line: string | undefined): boolean => line !== undefined && MATCH.test(line);
  const matches = lines.filter(isMatch);
  const files = lines.filter((line, index) => !isMatch(line) && isMatch(lines[index + 1]) && line !== "--");
  if (matches.length === 0) return summarizeEmpty(lines, "nothing found");
  const shown = `${atLeast(lines)}${plural(matches.length, "matching line")} in ${plural(files.length, "file")}`;
  return { ok: true, headline: shown, excerpt: excerptOf(lines), files };
};

const summarizeNames = (text: string): ResultSummary => {
  const lines = linesOf(text);
  const names = lines.filter((line) => !isRemark(line));
  if (names.length === 0) return summarizeEmpty(lines, "no files");
  const headline = `${atLeast(lines)}${plural(names.length, "file")}`;
  return { ok: true, headline, excerpt: excerptOf(lines), files: names };
};

const COUNTED = /^(.+?):\s*(\d+)$/;

const summarizeCount = (text: string): ResultSummary => {
  const lines = linesOf(text);
  const counts = lines.flatMap((line) => {
    const [, file, count] = COUNTED.exec(line) ?? [];
    return file === undefined ? [] : [{ file, count: Number(count) }];
  });
  if (counts.length === 0) return summarizeEmpty(lines, "0 lines in 0 files");
  const sum = counts.reduce((all, { count }) => all + count, 0);
  const headline = `${atLeast(lines)}${plural(sum, "line")} in ${plural(counts.length, "file")}`;
  return { ok: true, headline, excerpt: excerptOf(lines), files: counts.map(({ file }) => file) };
};

/** The last line of a command's output says how it ended. */
const EXIT = /\[exit code (-?\d+)[^\]]*\]\s*$/;

const summarizeRun = (text: string): ResultSummary => {
  const code = EXIT.exec(text)?.[1];
  const lines = linesOf(text.replace(EXIT, ""));
  const ended = code === undefined ? "done" : `exit code ${code}`;
  const headline = lines.length === 0 ? `${ended}, no output` : ended;
  return { ok: code === undefined || code === "0", headline, excerpt: bothEnds(lines), files: [] };
};

/** A pipe succeeds if its last program does, so errors of the first program are recognised by their text. */
const COMPLAINT = /^(?:grep|find): /;

const summarizePipe = (text: string, headline: (lines: readonly string[]) => string): ResultSummary => {
  const summary = summarizeRun(text);
  const lines = linesOf(text.replace(EXIT, "")).map((line) => line.trim());
  if (lines.some((line) => COMPLAINT.test(line)))
    return { ...summary, ok: false, headline: "could not look everywhere" };
  return summary.ok ? { ...summary, headline: headline(lines), excerpt: excerptOf(lines) } : summary;
};

/** Each line of the result occurs more than once. */
const summarizeRepeats = (text: string): ResultSummary =>
  summarizePipe(text, (lines) => {
    const repeated = lines.filter((line) => !isRemark(line));
    return repeated.length === 0
      ? "no match occurs twice"
      : `${atLeast(lines)}${plural(repeated.length, "match", "matches")} more than once`;
  });

const TALLIED = /^(\d+) /;

/** Lines of `uniq -c`: a number and what was counted. */
const summarizeTally = (text: string): ResultSummary =>
  summarizePipe(text, (lines) => {
    const counts = lines.flatMap((line) => TALLIED.exec(line)?.slice(1).map(Number) ?? []);
    const sum = counts.reduce((all, count) => all + count, 0);
    return `${atLeast(lines)}${plural(sum, "file")} in ${plural(counts.length, "folder")}`;
  });

const NUMBERED = /^\s*(\d+)(?:\t|→)(.*)$/;

/** The lines of a Read result without their numbers; unnumbered lines are remarks. */
export const numberedLines = (
  text: string,
): { readonly lines: readonly string[]; readonly last: number; readonly remark: string } => {
  const lines: string[] = [];
  const remarks: string[] = [];
  let last = 0;
  for (const line of text.split("\n")) {
    const [, number, words] = NUMBERED.exec(line) ?? [];
    // A number that does not continue the sequence is part of the text.
    if (number === undefined || (last !== 0 && Number(number) !== last + 1)) remarks.push(line);
    else {
      last = Number(number);
      lines.push(words ?? "");
    }
  }
  return { lines, last, remark: remarks.join("\n").trim() };
};

/** Lines requested by number are shown, up to this many. */
const MOST_ASKED_LINES = 60;

const summarizeRead = (text: string, asked: Json | undefined): Omit<ResultSummary, "ok"> => {
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

/** Summarizes the result of a reading call. */
export const summarizeResult = (look: Look, result: Result): ResultSummary => {
  if (result.isError) return failure(look.name, result);
  const { file_path: path, limit } = look.input;
  switch (look.about) {
    case "search":
      return summarizeSearch(result.text);
    case "count":
      return summarizeCount(result.text);
    case "names":
    case "list":
      return summarizeNames(result.text);
    case "read":
      return { ok: true, ...summarizeRead(result.text, limit), files: typeof path === "string" ? [path] : [] };
    case "run":
      return summarizeRun(result.text);
    case "repeats":
      return summarizeRepeats(result.text);
    case "tally":
      return summarizeTally(result.text);
  }
};
