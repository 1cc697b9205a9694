/** The earlier conversation of a session that is resumed, from its journal.
 *  Invariant: reads only; what a rewind left is not shown, and what a new epoch repeats is shown once; prompts are what the
 *  user typed, not what we added to them; the latest blocks are enough, and a journal that cannot be read only means an
 *  empty screen. A call without a result was interrupted, and is never shown as done.
 *  Elsewhere: blocks of what happens now (state: events.ts), the journal (@prefork/runtime/observe). */

import { lineUpTo } from "@prefork/runtime/internal";
import { readFamily, readSession, type SessionReading, type SessionStore } from "@prefork/runtime/observe";
import type { JsonObject, Block as WireBlock } from "@prefork/wire";
import { type Block, type CallBlock, type Child, safeLine, safeText } from "./state/index.ts";

const MAX_BLOCKS = 200;

type Entries = SessionReading["reading"]["entries"];

export type EarlierConversation = {
  readonly blocks: readonly Block[];
  readonly usd: number;
  /** Forks whose work is not merged yet. */
  readonly children?: readonly Child[];
};

/** A block, and when it happened. */
type TimedBlock = { readonly at: number; readonly block: Block };

/** `families`: what to say about forks of earlier runs, and when they were done. */
export const readEarlier = async (
  store: SessionStore,
  id: string,
  families: readonly TimedBlock[] = [],
): Promise<EarlierConversation> => {
  const { reading, replayed } = await readSession(store, id);
  const blocks = [...toBlocks(reading.entries), ...families].toSorted((one, other) => one.at - other.at);
  return { blocks: lastBlocks(blocks), usd: replayed.usd };
};

const lastBlocks = (blocks: readonly TimedBlock[]): readonly Block[] =>
  blocks.slice(-MAX_BLOCKS).map(({ block }) => block);

/** Only what was said before this moment, with what the session and its forks had cost by then. */
export const readEarlierThan = async (store: SessionStore, id: string, at: number): Promise<EarlierConversation> => {
  const { reading } = await readSession(store, id);
  const { rows } = await readFamily(store, id);
  return {
    blocks: lastBlocks(toBlocks(reading.entries.filter((entry) => entry.at < at))),
    usd: rows.filter((row) => row.at < at).reduce((sum, { usd = 0 }) => sum + usd, 0),
  };
};

const toBlocks = (entries: Entries): readonly TimedBlock[] => {
  const calls = new Map<string, number>();
  const blocks: TimedBlock[] = [];
  const add = (block: WireBlock, at: number, isPrompt = false): void => {
    if (block.type === "tool_result") {
      const index = calls.get(block.toolUseId);
      const call = index === undefined ? undefined : blocks[index];
      if (index === undefined || call?.block.kind !== "call") return;
      const output = block.content.map((part) => (part.type === "text" ? part.text : `[${part.type}]`)).join("\n");
      const { fault: _fault, ...ended } = call.block;
      const failed = block.isError ? { fault: "failed" as const } : {};
      blocks[index] = { at: call.at, block: { ...ended, output: safeText(output), ...failed } };
      return;
    }
    const shown = toBlock(block, isPrompt);
    if (!shown) return;
    if (shown.kind === "call") calls.set(shown.callId, blocks.length);
    blocks.push({ at, block: shown });
  };
  const isOnLine = lineUpTo(entries, entries.at(-1)?.seq ?? 0);
  let isRepeated = false;
  for (const { entry, seq, at } of entries) {
    if (!isOnLine(seq)) continue;
    // A new epoch repeats what it keeps, up to its first request; what the user types meanwhile is new.
    if (entry.kind === "epoch") isRepeated = entry.reason !== "start";
    if (entry.kind === "request") isRepeated = false;
    if (isRepeated && !("source" in entry && entry.source === "prompt")) continue;
    if (entry.kind === "message" && entry.message.role === "assistant")
      for (const block of entry.message.content) add(block, at);
    else if (entry.kind === "message" || entry.kind === "blocks") {
      const content = entry.kind === "message" ? entry.message.content : entry.blocks;
      const typed = entry.source === "prompt" ? content.findLast(({ type }) => type === "text") : undefined;
      for (const block of content) if (block.type === "tool_result" || block === typed) add(block, at, block === typed);
    }
  }
  return blocks;
};

const toBlock = (block: WireBlock, isPrompt: boolean): Block | undefined => {
  switch (block.type) {
    case "text":
      if (isPrompt) return { kind: "prompt", text: safeText(block.text) };
      return { kind: "answer", text: safeText(block.text), isDone: true };
    case "thinking":
      return { kind: "thinking", text: safeText(block.thinking), isDone: true };
    case "tool_use": {
      const call: CallBlock = {
        ...{ kind: "call", callId: block.id, tool: safeLine(block.name), args: parseArgs(block.input) },
        // Until its result is read.
        ...{ state: "ended", output: "", startedAt: 0, fault: "interrupted" },
      };
      return call;
    }
    default:
      return undefined;
  }
};

const parseArgs = (input: string): JsonObject => {
  try {
    const value: unknown = JSON.parse(input);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as JsonObject) : {};
  } catch {
    return {};
  }
};
