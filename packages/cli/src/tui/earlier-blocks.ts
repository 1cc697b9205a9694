/** The earlier conversation of a session that is resumed, from its journal.
 *  Invariant: reads only; what a rewind left is not shown, and what a new epoch repeats is shown once; prompts are what the
 *  user typed, not what we added to them; the latest blocks are enough, and a journal that cannot be read only means an
 *  empty screen.
 *  Elsewhere: blocks of what happens now (state: events.ts), the journal (@prefork/runtime/observe). */

import { lineUpTo } from "@prefork/runtime/internal";
import { readFamily, readSession, type SessionReading, type SessionStore } from "@prefork/runtime/observe";
import type { JsonObject, Block as WireBlock } from "@prefork/wire";
import { type Block, type CallBlock, safeLine, safeText } from "./state/index.ts";

const MAX_BLOCKS = 200;

type Entries = SessionReading["reading"]["entries"];

export type EarlierConversation = { readonly blocks: readonly Block[]; readonly usd: number };

export const readEarlier = async (store: SessionStore, id: string): Promise<EarlierConversation> => {
  const { reading, replayed } = await readSession(store, id);
  return { blocks: toBlocks(reading.entries), usd: replayed.usd };
};

/** Only what was said before this moment, with what the session and its forks had cost by then. */
export const readEarlierThan = async (store: SessionStore, id: string, at: number): Promise<EarlierConversation> => {
  const { reading } = await readSession(store, id);
  const { rows } = await readFamily(store, id);
  return {
    blocks: toBlocks(reading.entries.filter((entry) => entry.at < at)),
    usd: rows.filter((row) => row.at < at).reduce((sum, { usd = 0 }) => sum + usd, 0),
  };
};

const toBlocks = (entries: Entries): readonly Block[] => {
  const calls = new Map<string, number>();
  const blocks: Block[] = [];
  const add = (block: WireBlock, isPrompt: boolean): void => {
    if (block.type === "tool_result") {
      const index = calls.get(block.toolUseId);
      const call = index === undefined ? undefined : blocks[index];
      if (index === undefined || call?.kind !== "call") return;
      const output = block.content.map((part) => (part.type === "text" ? part.text : `[${part.type}]`)).join("\n");
      blocks[index] = { ...call, output: safeText(output), ...(block.isError ? { fault: "failed" } : {}) };
      return;
    }
    const shown = toBlock(block, isPrompt);
    if (!shown) return;
    if (shown.kind === "call") calls.set(shown.callId, blocks.length);
    blocks.push(shown);
  };
  const isOnLine = lineUpTo(entries, entries.at(-1)?.seq ?? 0);
  let isRepeated = false;
  for (const { entry, seq } of entries) {
    if (!isOnLine(seq)) continue;
    // A new epoch repeats what it keeps, up to its first request; what the user types meanwhile is new.
    if (entry.kind === "epoch") isRepeated = entry.reason !== "start";
    if (entry.kind === "request") isRepeated = false;
    if (isRepeated && !("source" in entry && entry.source === "prompt")) continue;
    if (entry.kind === "message" && entry.message.role === "assistant")
      for (const block of entry.message.content) add(block, false);
    else if (entry.kind === "message" || entry.kind === "blocks") {
      const content = entry.kind === "message" ? entry.message.content : entry.blocks;
      const typed = entry.source === "prompt" ? content.findLast(({ type }) => type === "text") : undefined;
      for (const block of content) if (block.type === "tool_result" || block === typed) add(block, block === typed);
    }
  }
  return blocks.slice(-MAX_BLOCKS);
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
        ...{ state: "ended", output: "", startedAt: 0 },
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
