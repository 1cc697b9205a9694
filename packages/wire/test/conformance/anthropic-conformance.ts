/** Anthropic Messages, requests and errors: how they are spelled, by hand.
 *  Elsewhere: answers (anthropic-answers.ts), what is done with them (protocol-suite.ts). */

import fc from "fast-check";
import { anthropic, type Block, type Head, type Message, text, toolResult, userText } from "../../src/index.ts";
import {
  answers,
  blockStart,
  blockStop,
  closing,
  delta,
  frame,
  messageDelta,
  messageStop,
  started,
  stops,
  wholeBody,
} from "./anthropic-answers.ts";
import type { Conformance } from "./protocol-suite.ts";
import {
  anyInput,
  anyText,
  ask,
  cutInto,
  everySetting,
  linkedPicture,
  picture,
  readsFiles,
  twoParagraphs,
} from "./said.ts";

const model = "claude-sonnet-5";
const bare: Head = { model, tools: [], system: [], settings: {} };
const head: Head = {
  model,
  tools: [{ type: "function", name: "Read", description: "Reads.", inputSchema: { type: "object" } }],
  system: [text("You are a test.")],
  settings: {},
};

const malformed: Conformance["malformed"] = {
  "a frame that is not JSON": [started(), { event: "content_block_start", data: `{"type":"content_block_st` }],
  "a frame that is no object": [started(), { event: "message_delta", data: `["message_delta"]` }],
  "a delta for a block that never started": [started(), delta(3, `"type":"text_delta","text":"x"`)],
  "a delta for a block that has ended": [
    started(),
    blockStart(0, `{"type":"text","text":""}`),
    blockStop(0),
    delta(0, `"type":"text_delta","text":"x"`),
  ],
  "a block started twice": [
    started(),
    blockStart(0, `{"type":"text","text":""}`),
    blockStart(0, `{"type":"text","text":""}`),
  ],
  "a block without a number": [started(), frame("content_block_start", `"content_block":{"type":"text","text":""}`)],
  "a block start without a block": [started(), frame("content_block_start", `"index":0`)],
  "the end of a block that never started": [started(), blockStop(0)],
  "an end without a stop reason": [started(), messageDelta(`"stop_reason":null`), messageStop],
};

const encoded: Conformance["encoded"] = {
  "the settings of the cache key, each in its place": {
    head: {
      model,
      tools: [
        readsFiles,
        { type: "provider", name: "web_search", json: `{ "type":"web_search_20250305","name":"web_search" }` },
      ],
      system: twoParagraphs,
      settings: { ...everySetting, serviceTier: "auto" },
    },
    messages: [userText("Hi")],
    closing: ask,
    body: `{"model":"claude-sonnet-5","thinking":{"type":"enabled","budget_tokens":2048},"output_config":{"effort":"high","format":{"type":"json_schema","schema":{}}},"tool_choice":{"type":"tool","name":"Read","disable_parallel_tool_use":true},"temperature":1,"top_p":0.9,"top_k":40,"stop_sequences":["###"],"speed":"fast","service_tier":"auto","context_management":{"edits":[]},"tools":[{"name":"Read","description":"Reads \\"files\\".","input_schema":{"type":"object","properties":{"b":{"type":"string"},"a":{}}}},{ "type":"web_search_20250305","name":"web_search" }],"system":[{"type":"text","text":"One."},{"type":"text","text":"Two."}],"messages":[{"role":"user","content":[{"type":"text","text":"Hi"}]}],"max_tokens":64}`,
  },
  "images and documents from every source": {
    head: bare,
    messages: [
      {
        role: "user",
        content: [
          picture,
          linkedPicture,
          { type: "document", source: { kind: "file", fileId: "file_1" }, title: "Plan" },
          { type: "document", source: { kind: "text", text: "words" } },
        ],
      },
    ],
    closing: ask,
    body: `{"model":"claude-sonnet-5","messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBO"}},{"type":"image","source":{"type":"url","url":"https://example.com/a.png"}},{"type":"document","source":{"type":"file","file_id":"file_1"},"title":"Plan"},{"type":"document","source":{"type":"text","media_type":"text/plain","data":"words"}}]}],"max_tokens":64}`,
  },
  "results with images and errors, and one without content": {
    head: bare,
    messages: [
      userText("Look"),
      {
        role: "assistant",
        content: ["toolu_1", "toolu_2", "toolu_3"].map((id) => ({ type: "tool_use", id, name: "Read", input: "{}" })),
      },
      {
        role: "user",
        content: [
          {
            type: "tool_result",
            toolUseId: "toolu_1",
            content: [text("seen"), picture, { type: "document", source: { kind: "text", text: "words" } }],
          },
          { type: "tool_result", toolUseId: "toolu_2", content: [text("no such file")], isError: true },
          { type: "tool_result", toolUseId: "toolu_3", content: [] },
        ],
      },
    ],
    closing: ask,
    body: `{"model":"claude-sonnet-5","messages":[{"role":"user","content":[{"type":"text","text":"Look"}]},{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"Read","input":{}},{"type":"tool_use","id":"toolu_2","name":"Read","input":{}},{"type":"tool_use","id":"toolu_3","name":"Read","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":[{"type":"text","text":"seen"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBO"}},{"type":"document","source":{"type":"text","media_type":"text/plain","data":"words"}}]},{"type":"tool_result","tool_use_id":"toolu_2","content":[{"type":"text","text":"no such file"}],"is_error":true},{"type":"tool_result","tool_use_id":"toolu_3"}]}],"max_tokens":64}`,
  },
  "a system note inside the conversation": {
    head: bare,
    messages: [userText("Hi"), { role: "system", content: [text("The date has changed.")] }],
    closing: { maxTokens: 0, stream: false },
    body: `{"model":"claude-sonnet-5","messages":[{"role":"user","content":[{"type":"text","text":"Hi"}]},{"role":"system","content":[{"type":"text","text":"The date has changed."}]}],"max_tokens":0}`,
  },
  "a request for cache diagnostics": {
    head: bare,
    messages: [userText("Hi")],
    closing: { maxTokens: 64, stream: true, diagnoseAgainst: "msg_01" },
    body: `{"model":"claude-sonnet-5","messages":[{"role":"user","content":[{"type":"text","text":"Hi"}]}],"max_tokens":64,"stream":true,"diagnostics":{"previous_message_id":"msg_01"}}`,
  },
  "a request for cache diagnostics without a baseline": {
    head: bare,
    messages: [userText("Hi")],
    closing: { ...ask, diagnoseAgainst: null },
    body: `{"model":"claude-sonnet-5","messages":[{"role":"user","content":[{"type":"text","text":"Hi"}]}],"max_tokens":64,"diagnostics":{"previous_message_id":null}}`,
  },
  "calls without an answer, answered by the constant": {
    head: bare,
    messages: [
      userText("Look"),
      {
        role: "assistant",
        content: [
          { type: "tool_use", id: "toolu_1", name: "Read", input: "{}" },
          { type: "tool_use", id: "toolu_2", name: "Read", input: "{}" },
        ],
      },
      { role: "user", content: [text("and?"), toolResult("toolu_2", "two")] },
    ],
    closing: ask,
    body: `{"model":"claude-sonnet-5","messages":[{"role":"user","content":[{"type":"text","text":"Look"}]},{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"Read","input":{}},{"type":"tool_use","id":"toolu_2","name":"Read","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_2","content":[{"type":"text","text":"two"}]},{"type":"tool_result","tool_use_id":"toolu_1","content":[{"type":"text","text":"No result stands here: this call is handled in the background."}]},{"type":"text","text":"and?"}]}],"max_tokens":64}`,
  },
};

const told = (type: string, message: string): string =>
  `{"type":"error","error":{"type":"${type}","message":"${message}"},"request_id":"req_1"}`;

const failures: Conformance["failures"] = {
  "an invalid request cannot be retried": {
    response: { status: 400, headers: {}, body: told("invalid_request_error", "messages.0: bad") },
    message: "invalid_request_error: messages.0: bad",
    reason: { kind: "invalid-request", status: 400 },
    retryable: false,
    requestId: "req_1",
  },
  "a wrong key cannot be retried": {
    response: { status: 401, headers: {}, body: told("authentication_error", "invalid x-api-key") },
    message: "authentication_error: invalid x-api-key",
    reason: { kind: "authentication", status: 401 },
    retryable: false,
    requestId: "req_1",
  },
  "an empty account is a matter of permission": {
    response: { status: 402, headers: {}, body: told("billing_error", "no credit") },
    message: "billing_error: no credit (request id req_1)",
    reason: { kind: "permission", status: 402 },
    retryable: false,
    requestId: "req_1",
  },
  "a rate limit says how long to wait": {
    response: { status: 429, headers: { "retry-after": "7" }, body: told("rate_limit_error", "slower") },
    message: "rate_limit_error: slower",
    reason: { kind: "rate-limited", status: 429, retryAfterMs: 7_000 },
    retryable: true,
    requestId: "req_1",
  },
  "milliseconds go before seconds": {
    response: {
      status: 529,
      headers: { "retry-after": "7", "retry-after-ms": "1500" },
      body: told("overloaded_error", "Overloaded"),
    },
    message: "overloaded_error: Overloaded",
    reason: { kind: "overloaded", status: 529, retryAfterMs: 1_500 },
    retryable: true,
    requestId: "req_1",
  },
  "a wait given as a date counts from the answer's own date": {
    response: {
      status: 503,
      headers: { "retry-after": "Thu, 01 Jan 2026 00:01:30 GMT", date: "Thu, 01 Jan 2026 00:01:00 GMT" },
      body: "",
    },
    message: "HTTP 503: no body",
    reason: { kind: "overloaded", status: 503, retryAfterMs: 30_000 },
    retryable: true,
  },
  "a wait that makes no sense is none": {
    response: {
      status: 500,
      headers: { "retry-after": "soon", "retry-after-ms": "Infinity", "request-id": "req_2" },
      body: "<html>no</html>",
    },
    message: "HTTP 500: <html>no</html>",
    reason: { kind: "server", status: 500 },
    retryable: true,
    requestId: "req_2",
  },
  "what the provider calls final is not retried": {
    response: { status: 529, headers: { "x-should-retry": "false" }, body: told("overloaded_error", "Overloaded") },
    message: "overloaded_error: Overloaded",
    reason: { kind: "overloaded", status: 529 },
    retryable: false,
    requestId: "req_1",
  },
  "an error inside a stream is known by its type": {
    response: { status: 200, headers: {}, body: told("rate_limit_error", "slower") },
    message: "rate_limit_error: slower",
    reason: { kind: "rate-limited", status: 429 },
    retryable: true,
    requestId: "req_1",
  },
  "an unknown error inside a stream is the server's": {
    response: { status: 200, headers: {}, body: `{"error":{"message":"odd"}}` },
    message: "odd",
    reason: { kind: "server", status: 500 },
    retryable: true,
  },
};

const anyBlock: fc.Arbitrary<Block> = fc.oneof(
  anyText.map(text),
  fc
    .tuple(anyText, fc.base64String())
    .map(([thinking, signature]) => ({ type: "thinking" as const, thinking, signature })),
  fc.base64String().map((data) => ({ type: "redacted_thinking" as const, data })),
  fc
    .tuple(fc.uuid(), fc.constantFrom("Read", "Bash"), anyInput)
    .map(([id, name, input]) => ({ type: "tool_use" as const, id: `toolu_${id}`, name, input })),
  anyInput.map((input) => ({
    type: "provider" as const,
    kind: "server_tool_use",
    json: `{"type":"server_tool_use","id":"srvtoolu_1", "name":"web_search","input":${input}}`,
  })),
);

/** The provider's spelling of a block, by another hand than the encoder's. */
const spelled = (block: Block): string => {
  if (block.type === "provider") return block.json;
  if (block.type !== "tool_use") return JSON.stringify(block);
  const { input, ...rest } = block;
  return `{"input":${input},${JSON.stringify(rest).slice(1)}`;
};

const streamedBlock = (block: Block, index: number, cut: number): Conformance["malformed"][string] => {
  const grow = (type: string, key: string, value: string) =>
    cutInto(value, cut).map((piece) => delta(index, `"type":"${type}","${key}":${JSON.stringify(piece)}`));
  switch (block.type) {
    case "text":
      return [blockStart(index, `{"type":"text","text":""}`), ...grow("text_delta", "text", block.text)];
    case "thinking":
      return [
        blockStart(index, `{"type":"thinking","thinking":"","signature":""}`),
        ...grow("thinking_delta", "thinking", block.thinking),
        ...grow("signature_delta", "signature", block.signature),
      ];
    case "tool_use":
      return [
        blockStart(index, spelled({ ...block, input: "{}" })),
        ...grow("input_json_delta", "partial_json", block.input),
      ];
    default:
      return [blockStart(index, spelled(block))];
  }
};

export const anthropicConformance: Conformance = {
  protocol: anthropic,
  head,
  answers,
  stops,
  malformed,
  malformedWhole: {
    "half of its JSON": wholeBody([]).slice(0, 60),
    "no stop reason": wholeBody([], { ending: `"stop_reason":null` }),
    "something that is no object": `"ok"`,
  },
  encoded,
  outsideKey: {
    closing: { maxTokens: 9, stream: true, userId: "user-1", diagnoseAgainst: null },
    fields: ["messages", "max_tokens", "stream", "metadata", "diagnostics"],
  },
  failures,
  headers: {
    "an API key and betas": {
      credential: { kind: "api-key", value: "key" },
      betas: ["one-2026-01-01", "two-2026-02-02"],
      headers: {
        "content-type": "application/json",
        "anthropic-version": "2023-06-01",
        "anthropic-beta": "one-2026-01-01,two-2026-02-02",
        "x-api-key": "key",
      },
    },
    "a bearer token": {
      credential: { kind: "bearer", value: "token" },
      betas: [],
      headers: {
        "content-type": "application/json",
        "anthropic-version": "2023-06-01",
        authorization: "Bearer token",
      },
    },
  },
  spell: {
    whole: ({ content }: Message) => wholeBody(content.map(spelled)),
    frames: ({ content }: Message, cut) => [
      started(),
      ...content.flatMap((block, index) => [...streamedBlock(block, index, cut), blockStop(index)]),
      ...closing,
    ],
  },
  anyContent: fc.array(anyBlock, { minLength: 1, maxLength: 5 }),
};
