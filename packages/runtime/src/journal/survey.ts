/** What should a list say about a session, without reading all of it? Pure.
 *  Invariant: only the first entries are decoded. Of the others, only the start of the line is inspected.
 *  Elsewhere: finding the sessions (sessions.ts), reading one in full (read.ts, replay.ts). */

import type { Block } from "@prefork/wire";
import { JOURNAL_VERSION, type JournalEntry, type OpenedEntry } from "./entry.ts";
import { decodeLine } from "./line.ts";
import { isRecord } from "./schema.ts";

export type SessionSurvey =
  | {
      readonly ok: true;
      readonly opened: OpenedEntry;
      readonly createdAt: number;
      readonly usedAt: number;
      /** The user's first prompt, in one short line. */
      readonly firstPrompt: string;
      /** The first line of that prompt. */
      readonly title: string;
      /** The first lines of the last answer. */
      readonly lastAnswer: string;
      /** The cost of its own requests, without those of its forks. */
      readonly usd: number;
      /** The number of forks that started from it. */
      readonly forks: number;
      /** The number of answered requests. */
      readonly turns: number;
      /** How often lines are missing or unreadable, as far as their beginnings tell. */
      readonly problems: number;
    }
  | { readonly ok: false; readonly reason: string };

const NEWLINE = 0x0a;
const START = /^\{"v":(\d+),"seq":(\d+),"at":([-+.\deE]+)(?:,"more":\d+)?,"kind":"([a-z_]+)"/;

export const surveyJournal = (bytes: Buffer): SessionSurvey => {
  const first = decodeLine(bytes.subarray(0, endOfLine(bytes, 0)));
  if (!first.ok && first.kind === "newer")
    return { ok: false, reason: `was written by a newer version (journal version ${first.version})` };
  if (!first.ok || first.entry.kind !== "opened")
    return { ok: false, reason: "begins with an entry that cannot be read" };
  let usedAt = first.at;
  let turns = 0;
  let problems = 0;
  let lastSeq = 0;
  let typed: string | undefined;
  let entered: string | undefined;
  let usd = 0;
  const forks = new Set<string>();
  const answers: (readonly [from: number, end: number])[] = [];
  for (let from = 0; from < bytes.length; ) {
    const end = endOfLine(bytes, from);
    const [, version, seq, at, kind] = START.exec(bytes.toString("latin1", from, Math.min(end, from + 160))) ?? [];
    if (Number(version) > JOURNAL_VERSION)
      return { ok: false, reason: `was written by a newer version (journal version ${version})` };
    if (at !== undefined) usedAt = Number(at);
    const isLast = end === bytes.length; // a write that is in progress, or was torn
    if (end > from && !isLast && (seq === undefined || Number(seq) > lastSeq + 1)) problems += 1;
    lastSeq = seq === undefined ? lastSeq + 1 : Math.max(lastSeq, Number(seq));
    if (kind === "response") turns += 1;
    if (kind === "response" || kind === "billed") usd += costIn(bytes.subarray(from, end));
    if (kind === "fork" || kind === "unfork") countFork(forks, bytes.subarray(from, end));
    if (kind === "message" && isAnswerLine(bytes.subarray(from, end))) answers.push([from, end]);
    if (typed === undefined && (kind === "message" || kind === "blocks")) {
      const decoded = decodeLine(bytes.subarray(from, end));
      const words = decoded.ok ? userWords(decoded.entry) : undefined;
      if (words?.typed) typed = words.text;
      entered ??= words?.text;
    }
    from = end + 1;
  }
  const prompt = typed ?? entered ?? "";
  return {
    ...{ ok: true, opened: first.entry, createdAt: first.at, usedAt, turns, problems, usd, forks: forks.size },
    firstPrompt: toShortLine(prompt),
    title: toTitle(prompt),
    lastAnswer: firstLines(lastAnswerIn(bytes, answers)),
  };
};

/** `usd` of a line about money. These lines are many and short, so they are not checked against the whole schema. */
const costIn = (line: Buffer): number => {
  const { usd } = parsedFields(line);
  return typeof usd === "number" && Number.isFinite(usd) ? usd : 0;
};

const countFork = (forks: Set<string>, line: Buffer): void => {
  const { kind, session } = parsedFields(line);
  if (typeof session !== "string") return;
  if (kind === "fork") forks.add(session);
  else forks.delete(session);
};

const parsedFields = (line: Buffer): Readonly<Record<string, unknown>> => {
  try {
    const value: unknown = JSON.parse(line.toString("utf8"));
    return isRecord(value) ? value : {};
  } catch {
    return {};
  }
};

const ANSWER = '"message":{"role":"assistant"';

/** `message` is the first field after the sizes and the hash. */
export const isAnswerLine = (line: Buffer): boolean => line.subarray(0, 8_192).includes(ANSWER);

/** A turn may consist of calls only, so a few answers are tried, the last first. */
const MAX_ANSWERS_TRIED = 50;

const lastAnswerIn = (bytes: Buffer, answers: readonly (readonly [number, number])[]): string => {
  for (const [from, end] of answers.slice(-MAX_ANSWERS_TRIED).toReversed()) {
    const decoded = decodeLine(bytes.subarray(from, end));
    if (!decoded.ok || decoded.entry.kind !== "message") continue;
    const text = textsIn(decoded.entry.message.content).join("\n");
    if (text.trim() !== "") return text;
  }
  return "";
};

export const textsIn = (blocks: readonly Block[]): readonly string[] =>
  blocks.flatMap((block) => (block.type === "text" ? [block.text] : []));

const endOfLine = (bytes: Buffer, from: number): number => {
  const end = bytes.indexOf(NEWLINE, from);
  return end === -1 ? bytes.length : end;
};

/** The prompt is the last text of its message; what accompanies it comes before. */
export const userWords = (entry: JournalEntry): { readonly text: string; readonly typed: boolean } | undefined => {
  if (entry.kind === "message" && entry.message.role === "user")
    return { text: lastText(entry.message.content), typed: entry.source === "prompt" };
  if (entry.kind === "blocks") return { text: lastText(entry.blocks), typed: entry.source === "prompt" };
  return undefined;
};

const lastText = (blocks: readonly Block[]): string => textsIn(blocks).at(-1) ?? "";

const MAX_SHOWN = 80;
const MAX_INSPECTED = 1_000;

/** White space, and what would affect the terminal that shows the list: control characters and bidirectional overrides. */
const UNPRINTABLE = /[\s\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]+/gu;

/** Text as one line that is safe on a terminal, cut to `most` characters. */
export const toShortLine = (text: string, most = MAX_SHOWN): string => {
  const line = text.slice(0, MAX_INSPECTED).toWellFormed().replace(UNPRINTABLE, " ").trim();
  const letters = [...line];
  return letters.length > most ? `${letters.slice(0, most - 1).join("")}…` : line;
};

/** The first line that says something. */
export const toTitle = (text: string): string =>
  text
    .slice(0, MAX_INSPECTED)
    .split(/[\r\n]/)
    .map((line) => toShortLine(line))
    .find((line) => line !== "") ?? "";

const MAX_LINES = 5;
const MAX_LINE = 160;

const firstLines = (text: string): string => {
  const lines = text
    .slice(0, MAX_LINES * MAX_INSPECTED)
    .split(/\r?\n/)
    .map((line) => toShortLine(line, MAX_LINE))
    .filter((line) => line !== "");
  return lines.slice(0, MAX_LINES).join("\n");
};
