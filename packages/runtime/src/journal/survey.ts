/** What should a list say about a session, without reading all of it? Pure.
 *  Invariant: only the first entries are decoded. Of the others, only the start of the line is inspected.
 *  Elsewhere: finding the sessions (sessions.ts), reading one in full (read.ts, replay.ts). */

import type { Block } from "@prefork/wire";
import { JOURNAL_VERSION, type JournalEntry, type OpenedEntry } from "./entry.ts";
import { decodeLine } from "./line.ts";

export type SessionSurvey =
  | {
      readonly ok: true;
      readonly opened: OpenedEntry;
      readonly createdAt: number;
      readonly usedAt: number;
      /** The user's first prompt, in one short line. */
      readonly firstPrompt: string;
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
    if (typed === undefined && (kind === "message" || kind === "blocks")) {
      const decoded = decodeLine(bytes.subarray(from, end));
      const words = decoded.ok ? userWords(decoded.entry) : undefined;
      if (words?.typed) typed = words.text;
      entered ??= words?.text;
    }
    from = end + 1;
  }
  const firstPrompt = toShortLine(typed ?? entered ?? "");
  return { ok: true, opened: first.entry, createdAt: first.at, usedAt, firstPrompt, turns, problems };
};

const endOfLine = (bytes: Buffer, from: number): number => {
  const end = bytes.indexOf(NEWLINE, from);
  return end === -1 ? bytes.length : end;
};

/** The prompt is the last text of its message; what accompanies it comes before. */
const userWords = (entry: JournalEntry): { readonly text: string; readonly typed: boolean } | undefined => {
  if (entry.kind === "message" && entry.message.role === "user")
    return { text: lastText(entry.message.content), typed: entry.source === "prompt" };
  if (entry.kind === "blocks") return { text: lastText(entry.blocks), typed: entry.source === "prompt" };
  return undefined;
};

const lastText = (blocks: readonly Block[]): string =>
  blocks.flatMap((block) => (block.type === "text" ? [block.text] : [])).at(-1) ?? "";

const MAX_SHOWN = 80;
const MAX_INSPECTED = 1_000;

/** Control characters would affect the terminal that shows the list. */
const toShortLine = (text: string): string => {
  const line = text
    .slice(0, MAX_INSPECTED)
    .replace(/[\s\p{Cc}]+/gu, " ")
    .trim();
  const letters = [...line];
  return letters.length > MAX_SHOWN ? `${letters.slice(0, MAX_SHOWN - 1).join("")}…` : line;
};
