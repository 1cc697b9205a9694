/** Requests to providers of every sort, for the simulator to judge by the rules of each: what the last one of them reads,
 *  and why not more. Many have the structure of requests that agents of others sent, in words of our own. */

import type { ProviderName } from "@prefork/simulator";
import type { XrayCause } from "@prefork/xray";
import { type Block, words } from "./conversation.ts";
import { nothing } from "./pair.ts";

export type Scene = {
  readonly name: string;
  readonly provider: ProviderName;
  readonly path: string;
  /** Sent one after the other; the last one is judged. */
  readonly requests: readonly Block[];
  /** How long after the end of the one before; or while that is still being answered. Default: ten seconds. */
  readonly waitMs?: number | "during";
  readonly cause: XrayCause;
  readonly at?: string;
  readonly read: number;
  readonly lost: number;
};

// --- Chat ------------------------------------------------------------------------------------------------------------

const system = (tokens: number, seed = 1): Block => ({ role: "system", content: words(tokens, seed) });
const asks = (tokens: number, seed: number): Block => ({ role: "user", content: words(tokens, seed) });
const says = (tokens: number, seed: number): Block => ({ role: "assistant", content: words(tokens, seed) });

/** What the simulator answers. */
const DONE: Block = { role: "assistant", content: "Done." };

const DEEPSEEK = { provider: "deepseek", path: "/chat/completions" } as const;
const deepseek = (...messages: readonly Block[]): Block => ({
  model: "deepseek-flash",
  thinking: { type: "disabled" },
  messages,
});
/** 1,280 tokens are twenty units; questions of 640 end at the end of a unit, too. */
const A = system(1_280);
const [B, C, D] = [asks(640, 2), asks(640, 3), asks(640, 4)];

export const deepseekScenes: readonly Scene[] = [
  {
    ...DEEPSEEK,
    name: "near miss: the conversation goes on from a unit that ended with its prompt",
    requests: [deepseek(A, B), deepseek(A, B, DONE, C)],
    cause: nothing,
    read: 1_920,
    lost: 0,
  },
  {
    ...DEEPSEEK,
    name: "the second question behind one beginning: no unit ended there",
    requests: [deepseek(A, B), deepseek(A, C)],
    cause: { kind: "unit-missing", at: "messages[0].content" },
    at: "messages[1].content",
    read: 0,
    lost: 1_280,
  },
  {
    ...DEEPSEEK,
    name: "near miss: the third question reads what the second one was seen to share",
    requests: [deepseek(A, B), deepseek(A, C), deepseek(A, D)],
    cause: nothing,
    at: "messages[1].content",
    read: 1_280,
    lost: 0,
  },
  {
    ...DEEPSEEK,
    name: "near miss: a short question leaves the unit before it whole",
    requests: [deepseek(A, asks(10, 2)), deepseek(A, asks(10, 3))],
    cause: nothing,
    at: "messages[1].content",
    read: 1_280,
    lost: 0,
  },
  {
    ...DEEPSEEK,
    name: "another user: each has a cache of its own",
    requests: [
      { ...deepseek(A, B), user_id: "one" },
      { ...deepseek(A, B, DONE, C), user_id: "two" },
    ],
    cause: { kind: "cache-key", name: "user_id", from: "one", to: "two" },
    at: "user_id",
    read: 0,
    lost: 1_920,
  },
  {
    ...DEEPSEEK,
    name: "the next turn of a quick tool, before its unit is built",
    requests: [deepseek(A, B), deepseek(A, B, DONE, C)],
    waitMs: 300,
    cause: { kind: "raced", afterMs: 1_300, until: "built" },
    read: 0,
    lost: 1_920,
  },
  {
    ...DEEPSEEK,
    name: "thinking switched on",
    requests: [deepseek(A, B), { ...deepseek(A, B, DONE, C), thinking: { type: "enabled" } }],
    cause: { kind: "thinking", from: '{"type":"disabled"}', to: '{"type":"enabled"}' },
    at: "thinking.type",
    read: 0,
    lost: 1_920,
  },
  {
    ...DEEPSEEK,
    name: "another model loses the system text too, which stands first here",
    requests: [deepseek(A, B), { ...deepseek(A, B, DONE, C), model: "deepseek-v4-pro" }],
    cause: { kind: "model", from: "deepseek-flash", to: "deepseek-v4-pro" },
    at: "model",
    read: 0,
    lost: 1_920,
  },
];

// --- DashScope -------------------------------------------------------------------------------------------------------

const DASHSCOPE = { provider: "dashscope", path: "/compatible-mode/v1/chat/completions" } as const;
const control = { cache_control: { type: "ephemeral" } };
const part = (tokens: number, seed: number, more: Block = {}): Block => ({
  type: "text",
  text: words(tokens, seed),
  ...more,
});
const qwen = (...messages: readonly Block[]): Block => ({ model: "qwen3.7-max", messages });
const qwenMarked = (...more: readonly Block[]): Block =>
  qwen({ role: "system", content: [part(1_300, 1, control)] }, ...more);

export const dashscopeScenes: readonly Scene[] = [
  {
    ...DASHSCOPE,
    name: "a sibling after the first event, before the answer is complete",
    requests: [qwenMarked(asks(20, 2)), qwenMarked(asks(20, 3))],
    waitMs: "during",
    cause: { kind: "raced", afterMs: 1_500, until: "complete" },
    at: "messages[1].content",
    read: 0,
    lost: 1_300,
  },
  {
    ...DASHSCOPE,
    name: "near miss: a sibling after the answer is complete",
    requests: [qwenMarked(asks(20, 2)), qwenMarked(asks(20, 3))],
    cause: nothing,
    at: "messages[1].content",
    read: 1_300,
    lost: 0,
  },
  {
    ...DASHSCOPE,
    name: "six minutes later, where no longer lifetime is sold",
    requests: [qwenMarked(asks(20, 2)), qwenMarked(asks(20, 3))],
    waitMs: 6 * 60_000,
    cause: { kind: "expired", ttl: "5m", unusedMs: 6 * 60_000 + 1_000, longest: true },
    at: "messages[1].content",
    read: 0,
    lost: 1_300,
  },
  {
    ...DASHSCOPE,
    name: "near miss: without markers it is cached automatically",
    requests: [qwen(system(1_300), asks(20, 2)), qwen(system(1_300), asks(20, 2), says(7, 8), asks(20, 3))],
    cause: nothing,
    read: 1_320,
    lost: 0,
  },
  {
    ...DASHSCOPE,
    name: "a helper of the same conversation, under another system text",
    requests: [
      qwen(system(1_300), asks(900, 2), says(400, 3), asks(20, 4)),
      qwen(system(1_300, 7), asks(900, 2), says(400, 3), asks(20, 4), says(7, 8), asks(60, 5)),
    ],
    cause: { kind: "system", change: "edited" },
    at: "messages[0].content",
    read: 0,
    lost: 1_320,
  },
];

// --- MiniMax ---------------------------------------------------------------------------------------------------------

const MINIMAX = { provider: "minimax", path: "/anthropic/v1/messages" } as const;
const minimax = (model: string, marker: Block, ...more: readonly Block[]): Block => ({
  model,
  max_tokens: 64,
  system: [part(700, 1, marker)],
  messages: [{ role: "user", content: [part(100, 2)] }, ...more],
});
const minimaxTurn: readonly Block[] = [
  { role: "assistant", content: [part(7, 8)] },
  { role: "user", content: [part(30, 3)] },
];

export const minimaxScenes: readonly Scene[] = [
  {
    ...MINIMAX,
    name: "near miss: the third generation keeps by itself",
    requests: [minimax("MiniMax-M3", {}), minimax("MiniMax-M3", {}, ...minimaxTurn)],
    cause: nothing,
    read: 800,
    lost: 0,
  },
  {
    ...MINIMAX,
    name: "near miss: markers on the third generation say nothing",
    requests: [minimax("MiniMax-M3", control), minimax("MiniMax-M3", control, ...minimaxTurn)],
    cause: nothing,
    read: 800,
    lost: 0,
  },
  {
    ...MINIMAX,
    name: "a marker on the system alone, where the second generation takes it at its word",
    requests: [minimax("MiniMax-M2.7", control), minimax("MiniMax-M2.7", control, ...minimaxTurn)],
    cause: { kind: "marker-missing", in: "a", at: "messages[0].content[0]" },
    read: 700,
    lost: 100,
  },
];

// --- older models of OpenAI ------------------------------------------------------------------------------------------

const LEGACY = { provider: "openai", path: "/v1/chat/completions" } as const;
const fn = (name: string, tokens: number): Block => ({
  type: "function",
  function: {
    name,
    description: words(tokens, 3),
    parameters: { type: "object", properties: { command: { type: "string" } }, required: ["command"] },
  },
});
const legacy = (tools: readonly Block[], ...messages: readonly Block[]): Block => ({
  model: "gpt-5.4",
  tools,
  messages,
});
const turn = [system(1_000), asks(300, 2)] as const;

const calling = (content: string | null): Block => ({
  role: "assistant",
  content,
  tool_calls: [{ id: "call_1", type: "function", function: { name: "bash", arguments: '{"command":"ls"}' } }],
});
const result: Block = { role: "tool", tool_call_id: "call_1", content: words(120, 6) };

export const legacyScenes: readonly Scene[] = [
  {
    ...LEGACY,
    name: "one more tool: no more is lost than whole steps of what was there",
    requests: [
      legacy([fn("bash", 480)], ...turn),
      legacy([fn("bash", 480), fn("grep", 20)], ...turn, says(7, 8), asks(30, 3)),
    ],
    cause: { kind: "tools-added", tools: ["grep"] },
    at: "tools[1]",
    read: 0,
    lost: 1_792,
  },
  {
    ...LEGACY,
    name: "a tool under another name",
    requests: [legacy([fn("bash", 480)], ...turn), legacy([fn("shell", 480)], ...turn, says(7, 8), asks(30, 3))],
    cause: { kind: "tools-changed", tool: "shell", key: "name", was: "bash" },
    at: "tools[0].function.name",
    read: 0,
    lost: 1_792,
  },
  {
    ...LEGACY,
    name: "near miss: no content and empty content of a message with calls",
    requests: [
      legacy([fn("bash", 480)], ...turn, calling(null), result),
      legacy([fn("bash", 480)], ...turn, calling(""), result, says(7, 8), asks(30, 3)),
    ],
    cause: nothing,
    read: 1_920,
    lost: 0,
  },
];
