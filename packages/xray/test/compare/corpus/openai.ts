/** Pairs of OpenAI requests, both formats. There is no simulator of their rules to judge them: every figure is written out
 *  by hand from the published ones. */

import type { XrayCause } from "@prefork/xray";
import { type Block, words } from "./conversation.ts";
import { nothing } from "./pair.ts";

export type OpenAiPair = {
  readonly name: string;
  readonly a: Block;
  readonly b: Block;
  readonly cause: XrayCause;
  readonly path?: string;
  readonly kept: number;
  readonly read: number;
  readonly lost: number;
};

// --- Responses: from 5.6 on, entries end at the end of messages -----------------------------------------------------

/** Exactly 500 tokens, as JSON. */
const fn = (name: string): Block => {
  const bare = {
    type: "function",
    name,
    description: "",
    parameters: { type: "object", properties: { path: { type: "string" } } },
  };
  const room = 2_000 - JSON.stringify(bare).length;
  return { ...bare, description: "Works on one file. ".padEnd(room, "Say its path. ").slice(0, room) };
};

const said = (tokens: number, seed: number, more: Block = {}): Block => ({
  type: "input_text",
  text: words(tokens, seed),
  ...more,
});
const user = (...content: readonly Block[]): Block => ({ type: "message", role: "user", content });
const developer = (tokens: number, seed: number): Block => ({ role: "developer", content: words(tokens, seed) });
const answer = (tokens: number, seed: number): Block => ({
  type: "message",
  role: "assistant",
  id: `msg_${seed}`,
  status: "completed",
  content: [{ type: "output_text", text: words(tokens, seed), annotations: [] }],
});
/** 10 tokens of name and arguments. */
const call = (id: string): Block => ({
  type: "function_call",
  id: `fc_${id}`,
  call_id: id,
  name: "read",
  arguments: '{"path":"src/server.ts","limit":1}',
});
const output = (id: string, tokens: number, seed: number): Block => ({
  type: "function_call_output",
  call_id: id,
  output: words(tokens, seed),
});

/** 1,000 of tools, 1,000 of instructions, 300 + 10 + 600 of input: entries end at the prompt's and the result's end. */
const responses: Block = {
  model: "gpt-6-sol",
  prompt_cache_key: "session-1",
  instructions: words(1_000, 1),
  tools: [fn("read"), fn("edit")],
  input: [user(said(300, 2)), call("call_1"), output("call_1", 600, 3)],
};
const KEPT = 2_910;

const inputOf = (body: Block): readonly Block[] => body.input as readonly Block[];
const goOn = (body: Block): Block => ({ ...body, input: [...inputOf(body), answer(80, 4), user(said(60, 5))] });
const next = goOn(responses);
const all = { kept: KEPT, read: 0, lost: KEPT } as const;
const none = { cause: nothing, kept: KEPT, read: KEPT, lost: 0 } as const;
const manyTurns = (count: number): readonly Block[] =>
  Array.from({ length: count }, (_, index) => [answer(10, 100 + index), user(said(10, 200 + index))]).flat();

export const responsesPairs: readonly OpenAiPair[] = [
  { name: "near miss: the conversation goes on", a: responses, b: next, ...none },
  {
    name: "a fork with a cache key of its own",
    a: responses,
    b: { ...next, prompt_cache_key: "session-2" },
    cause: { kind: "cache-key", name: "prompt_cache_key", from: "session-1", to: "session-2" },
    path: "prompt_cache_key",
    ...all,
  },
  {
    name: "another service tier",
    a: responses,
    b: { ...next, service_tier: "flex" },
    cause: { kind: "parameter", name: "service_tier", from: "its default", to: "flex" },
    path: "service_tier",
    ...all,
  },
  {
    name: "near miss: the default service tier by its name",
    a: responses,
    b: { ...next, service_tier: "auto" },
    ...none,
  },
  {
    name: "more effort",
    a: { ...responses, reasoning: { effort: "low", summary: "auto" } },
    b: { ...next, reasoning: { effort: "high", summary: "auto" } },
    cause: { kind: "effort", from: "low", to: "high" },
    path: "reasoning.effort",
    ...all,
  },
  {
    name: "another verbosity",
    a: responses,
    b: { ...next, text: { verbosity: "low" } },
    cause: { kind: "parameter", name: "verbosity", from: "its default", to: "low" },
    path: "text.verbosity",
    ...all,
  },
  {
    name: "near miss: summaries of the reasoning only",
    a: responses,
    b: { ...next, reasoning: { summary: "auto" } },
    ...none,
  },
  {
    name: "near miss: tool_choice, temperature, store and metadata",
    a: responses,
    b: { ...next, tool_choice: "none", temperature: 0.3, store: false, metadata: { turn: "2" } },
    ...none,
  },
  {
    name: "tools in another order",
    a: responses,
    b: { ...next, tools: [fn("edit"), fn("read")] },
    cause: { kind: "tools-reordered", tool: "read", from: 0, to: 1 },
    path: "tools[0]",
    ...all,
  },
  {
    name: "the instructions hold the time",
    a: { ...responses, instructions: `${words(990, 1)}Now: 2026-03-01T09:15:02Z in Oslo.   ` },
    b: { ...next, instructions: `${words(990, 1)}Now: 2026-03-01T09:17:44Z in Oslo.   ` },
    cause: { kind: "system", change: "edited", volatile: "date" },
    path: "instructions",
    ...all,
  },
  {
    name: "a result rewritten later",
    a: responses,
    b: { ...next, input: [user(said(300, 2)), call("call_1"), output("call_1", 5, 33), ...inputOf(next).slice(3)] },
    cause: { kind: "message-edited", message: 2, role: "", change: "edited" },
    path: "input[2].output",
    kept: KEPT,
    read: 0,
    lost: 2_310,
  },
  {
    name: "near miss: other ids of the provider's items",
    a: goOn(responses),
    b: goOn({ ...next, input: inputOf(next).map(({ id: _id, status: _status, ...item }) => item) }),
    cause: nothing,
    kept: 3_050,
    read: 3_050,
    lost: 0,
  },
  {
    name: "20 prompts later: still in reach",
    a: responses,
    b: { ...responses, input: [...inputOf(responses), ...manyTurns(20)] },
    ...none,
  },
  {
    name: "21 prompts later: the end of the old result is not looked at",
    a: responses,
    b: { ...responses, input: [...inputOf(responses), ...manyTurns(21)] },
    cause: { kind: "look-back-exceeded", positions: { runs: 21, singly: 21 }, of: "endings" },
    kept: KEPT,
    read: 0,
    lost: KEPT,
  },
  {
    name: "the last message grew: what was its end is none any more",
    a: { ...responses, input: [user(said(300, 2))] },
    b: { ...responses, input: [user(said(300, 2), said(40, 6))] },
    cause: { kind: "marker-missing", in: "b", at: "input[0].content[0]", form: "breakpoint" },
    kept: 2_300,
    read: 0,
    lost: 2_300,
  },
  {
    name: "near miss: the same with an explicit breakpoint",
    a: { ...responses, input: [user(said(300, 2, { prompt_cache_breakpoint: { mode: "explicit" } }))] },
    b: { ...responses, input: [user(said(300, 2, { prompt_cache_breakpoint: { mode: "explicit" } }), said(40, 6))] },
    cause: nothing,
    kept: 2_300,
    read: 2_300,
    lost: 0,
  },
  {
    name: "explicit mode without a breakpoint keeps nothing",
    a: { ...responses, prompt_cache_options: { mode: "explicit" } },
    b: { ...next, prompt_cache_options: { mode: "explicit" } },
    cause: { kind: "marker-missing", in: "a", at: "input[2]", form: "breakpoint" },
    kept: 0,
    read: 0,
    lost: KEPT,
  },
  {
    name: "a string instead of a list: one message of the user",
    a: { ...responses, input: words(300, 2) },
    b: { ...responses, input: [user(said(300, 2)), answer(80, 4), user(said(60, 5))] },
    cause: nothing,
    kept: 2_300,
    read: 2_300,
    lost: 0,
  },
  {
    name: "near miss: developer messages at the start, another conversation behind them",
    a: { model: "gpt-6-sol", input: [developer(1_200, 7), user(said(300, 2))] },
    b: { model: "gpt-6-sol", input: [developer(1_200, 7), user(said(300, 8))] },
    cause: { kind: "marker-missing", in: "a", at: "input[0].content", form: "breakpoint" },
    path: "input[1].content[0].text",
    kept: 1_500,
    read: 0,
    lost: 1_200,
  },
];

// --- Chat: up to 5.5 all of a prompt is kept, in steps ---------------------------------------------------------------

const chatTool = (name: string): Block => {
  const { type: _type, ...inner } = fn(name);
  return { type: "function", function: inner };
};

/** 1,000 and a few of tools, 1,000 of system, 300 + 9 + 600 of messages. */
const chat: Block = {
  model: "gpt-5",
  tools: [chatTool("read"), chatTool("edit")],
  messages: [
    { role: "system", content: words(1_000, 1) },
    { role: "user", content: words(300, 2) },
    {
      role: "assistant",
      content: null,
      tool_calls: [
        {
          id: "call_1",
          type: "function",
          function: { name: "read", arguments: '{"path":"src/server.ts","limit":40}' },
        },
      ],
    },
    { role: "tool", tool_call_id: "call_1", content: words(600, 3) },
  ],
};
const turns = chat.messages as readonly Block[];
const chatNext: Block = {
  ...chat,
  messages: [
    ...turns,
    { role: "assistant", content: words(80, 4) },
    { role: "user", content: [{ type: "text", text: words(60, 5) }] },
  ],
};
const with1 = (body: Block, index: number, message: Block): Block => ({
  ...body,
  messages: (body.messages as readonly Block[]).toSpliced(index, 1, message),
});

export const chatPairs: readonly OpenAiPair[] = [
  {
    name: "near miss: the conversation goes on",
    a: chat,
    b: chatNext,
    cause: nothing,
    kept: 2_816,
    read: 2_816,
    lost: 0,
  },
  {
    name: "another question: read up to the letter, in steps of 128",
    a: chat,
    b: { ...chat, messages: [turns[0] ?? {}, { role: "user", content: words(300, 44) }] },
    cause: nothing,
    path: "messages[1].content",
    kept: 2_816,
    read: 1_920,
    lost: 0,
  },
  {
    name: "today's date in the system message",
    a: with1(chat, 0, { role: "system", content: `${words(500, 1)}Today is 2026-03-01.${words(495, 9)}` }),
    b: with1(chatNext, 0, { role: "system", content: `${words(500, 1)}Today is 2026-03-02.${words(495, 9)}` }),
    cause: { kind: "system", change: "edited", volatile: "date" },
    path: "messages[0].content",
    kept: 2_816,
    read: 1_408,
    lost: 1_408,
  },
  {
    name: "a tool's description changed",
    a: chat,
    b: {
      ...chatNext,
      tools: [
        chatTool("read"),
        { type: "function", function: { ...(chatTool("edit").function as Block), description: "Changes files." } },
      ],
    },
    cause: { kind: "tools-changed", tool: "edit", key: "function.description" },
    path: "tools[1].function.description",
    kept: 2_816,
    read: 0,
    lost: 2_304,
  },
  {
    name: "new ids for every call",
    a: chat,
    b: with1(
      with1(chatNext, 2, {
        role: "assistant",
        content: null,
        tool_calls: [
          {
            id: "call_9",
            type: "function",
            function: { name: "read", arguments: '{"path":"src/server.ts","limit":40}' },
          },
        ],
      }),
      3,
      { role: "tool", tool_call_id: "call_9", content: words(600, 3) },
    ),
    cause: { kind: "message-edited", message: 2, role: "assistant", change: "edited" },
    path: "messages[2].tool_calls[0].id",
    kept: 2_816,
    read: 2_304,
    lost: 512,
  },
  {
    name: "an exchange left out",
    a: chatNext,
    b: {
      ...chatNext,
      messages: [
        turns[0] ?? {},
        turns[1] ?? {},
        { role: "assistant", content: words(80, 4) },
        { role: "user", content: words(60, 5) },
      ],
    },
    cause: { kind: "message-removed", message: 2, role: "assistant", count: 2 },
    path: "messages[2]",
    kept: 2_944,
    read: 2_304,
    lost: 128,
  },
  {
    name: "too short to be kept",
    a: {
      model: "gpt-5",
      messages: [
        { role: "system", content: words(200, 1) },
        { role: "user", content: "Who?" },
      ],
    },
    b: {
      model: "gpt-5",
      messages: [
        { role: "system", content: words(200, 1) },
        { role: "user", content: "Where?" },
      ],
    },
    cause: { kind: "below-minimum", minimum: 1_024, tokens: 201 },
    path: "messages[1].content",
    kept: 0,
    read: 0,
    lost: 128,
  },
  {
    name: "near miss: other members in no key",
    a: chat,
    b: {
      ...chatNext,
      max_completion_tokens: 9,
      temperature: 0.1,
      stream_options: { include_usage: true },
      tool_choice: "auto",
      user: "u",
    },
    cause: nothing,
    kept: 2_816,
    read: 2_816,
    lost: 0,
  },
  {
    name: "near miss: parallel calls, said as they are by default",
    a: chat,
    b: { ...chatNext, parallel_tool_calls: true },
    cause: nothing,
    kept: 2_816,
    read: 2_816,
    lost: 0,
  },
  {
    name: "one call at a time",
    a: chat,
    b: { ...chatNext, parallel_tool_calls: false },
    cause: { kind: "parameter", name: "parallel_tool_calls", from: "its default", to: "false" },
    path: "parallel_tool_calls",
    kept: 2_816,
    read: 0,
    lost: 2_816,
  },
  {
    name: "a gateway's markers on a Chat body: only what is marked is kept",
    a: {
      model: "anthropic/claude-sonnet-5",
      messages: [
        { role: "system", content: [{ type: "text", text: words(1_200, 1), cache_control: { type: "ephemeral" } }] },
        { role: "user", content: words(300, 2) },
      ],
    },
    b: {
      model: "anthropic/claude-sonnet-5",
      messages: [
        { role: "system", content: [{ type: "text", text: words(1_200, 1), cache_control: { type: "ephemeral" } }] },
        { role: "user", content: words(300, 2) },
        { role: "assistant", content: words(20, 3) },
        { role: "user", content: words(30, 4) },
      ],
    },
    cause: { kind: "marker-missing", in: "a", at: "messages[1].content" },
    kept: 1_200,
    read: 1_200,
    lost: 300,
  },
];
