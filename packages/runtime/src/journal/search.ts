/** Which sessions mention these words, in a prompt or in an answer?
 *  Invariant: journals are read line by line, the most recently used session first, so the memory does not grow with
 *  them and the first results come early. A session matches if it has every word somewhere; case does not matter.
 *  Tool results, thinking and instructions are not searched.
 *  Elsewhere: the list of sessions (previews.ts), the lines of a journal (journal-lines.ts). */

import { closeSync } from "node:fs";
import { setImmediate } from "node:timers/promises";
import type { Block } from "@prefork/wire";
import { JournalError } from "./errors.ts";
import { journalLines } from "./journal-lines.ts";
import { decodeLine } from "./line.ts";
import { listSessionPreviews, type SessionPreview } from "./previews.ts";
import type { ListOptions, UnreadableSession } from "./sessions.ts";
import { openJournalFile, openSessionFolder, openSessions } from "./storage.ts";
import { isAnswerLine, textsIn, toShortLine } from "./survey.ts";

/** A place where some of the words are. */
export type SearchExcerpt = { readonly from: "prompt" | "answer"; readonly at: number; readonly text: string };

export type SearchMatch = { readonly session: SessionPreview; readonly excerpts: readonly SearchExcerpt[] };

export type SearchOptions = ListOptions & {
  readonly signal?: AbortSignal;
  /** Called for a session that cannot be searched. */
  readonly onUnreadable?: (session: UnreadableSession) => void;
};

const MAX_EXCERPTS = 3;

/** Yields each matching session, with the excerpts that have the most of the words. */
export async function* searchSessions(
  state: string,
  words: readonly string[],
  { signal, onUnreadable, ...wanted }: SearchOptions = {},
): AsyncGenerator<SearchMatch> {
  const asked = [...new Set(words.map((word) => toComparable(word.trim())).filter((word) => word !== ""))];
  if (asked.length === 0) return;
  for (const session of await listSessionPreviews(state, wanted)) {
    signal?.throwIfAborted();
    if (session.kind === "unreadable") {
      onUnreadable?.(session);
      continue;
    }
    await setImmediate(); // an interrupt is noticed between two sessions
    try {
      const excerpts = await searchOne(state, { session, asked });
      if (excerpts) yield { session, excerpts };
    } catch (error) {
      if (!(error instanceof JournalError)) throw error;
      onUnreadable?.({ kind: "unreadable", id: session.id, reason: error.message });
    }
  }
}

const toComparable = (text: string): string => text.normalize("NFC").toLowerCase();

type OneSearch = { readonly session: SessionPreview; readonly asked: readonly string[] };

/** Undefined if one of the words is nowhere in the session. */
const searchOne = async (
  state: string,
  { session, asked }: OneSearch,
): Promise<readonly SearchExcerpt[] | undefined> => {
  await using sessions = await openSessions(state);
  await using folder = sessions && (await openSessionFolder(sessions, session.id));
  if (!folder) return undefined; // it was deleted in the meantime
  const missing = new Set(asked);
  let best: readonly (SearchExcerpt & { readonly count: number })[] = [];
  const search = (text: string, where: Pick<SearchExcerpt, "from" | "at">): void => {
    const comparable = toComparable(text);
    const found = asked.filter((word) => comparable.includes(word));
    for (const word of found) missing.delete(word);
    const count = found.length;
    if (count === 0 || (best.length === MAX_EXCERPTS && best.every((other) => other.count >= count))) return;
    const first = Math.min(...found.map((word) => comparable.indexOf(word)));
    const excerpt = { ...where, count, text: excerptAround(text.normalize("NFC"), first) };
    // Sorting is stable: of excerpts with equally many words the earlier ones stay.
    best = [...best, excerpt].toSorted((a, b) => b.count - a.count).slice(0, MAX_EXCERPTS);
  };
  const title = toComparable(session.title);
  for (const word of asked) if (title.includes(word)) missing.delete(word);
  const fd = openJournalFile(folder, "read");
  try {
    for (const line of journalLines(fd)) searchLine(line, search);
  } finally {
    closeSync(fd);
  }
  if (missing.size > 0) return undefined;
  return best.map(({ count: _count, ...excerpt }) => excerpt).toSorted((a, b) => a.at - b.at);
};

const KIND = /^\{"v":\d+,"seq":\d+,"at":[-+.\deE]+(?:,"more":\d+)?,"kind":"(?:message|blocks)"/;
const PROMPT = '"source":"prompt"';

type Search = (text: string, where: Pick<SearchExcerpt, "from" | "at">) => void;

/** Only lines that may hold a prompt or an answer are decoded. */
const searchLine = (line: Buffer, search: Search): void => {
  if (!KIND.test(line.toString("latin1", 0, 160))) return;
  if (!isAnswerLine(line) && !line.includes(PROMPT)) return;
  const decoded = decodeLine(line);
  if (!decoded.ok) return;
  const { entry, at } = decoded;
  if (entry.kind === "message" && entry.message.role === "assistant")
    search(textsIn(entry.message.content).join("\n"), { from: "answer", at });
  else if ((entry.kind === "message" || entry.kind === "blocks") && entry.source === "prompt")
    search(promptIn(entry.kind === "message" ? entry.message.content : entry.blocks), { from: "prompt", at });
};

/** The prompt is the last text of its message; what accompanies it comes before. */
const promptIn = (blocks: readonly Block[]): string => textsIn(blocks).at(-1) ?? "";

const BEFORE = 40;
const MAX_EXCERPT = 140;

const excerptAround = (text: string, at: number): string => {
  const start = Math.max(0, at - BEFORE);
  const word = start === 0 ? 0 : text.slice(start, at).search(/(?<=\s)\S/);
  const from = start + Math.max(0, word);
  const cut = text.slice(from, from + MAX_EXCERPT).replace(/^[\udc00-\udfff]|[\ud800-\udbff]$/g, ""); // half characters
  const isEnd = from + MAX_EXCERPT >= text.length;
  return `${from > 0 ? "… " : ""}${toShortLine(cut, MAX_EXCERPT)}${isEnd ? "" : " …"}`;
};
