/** Chat Completions as OpenAI speaks it, against the suite that every protocol passes. */

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  fold,
  type Head,
  ModelError,
  type ModelEvent,
  openaiChat,
  text,
  toolResult,
  userText,
} from "../../src/index.ts";
import { type ChatSubject, chatConformance, chatWords } from "./chat-fixtures.ts";
import { conformanceSuite } from "./protocol-suite.ts";
import { ask, callsTwo, everySetting, linkedPicture, picture, readsFiles, twoParagraphs } from "./said.ts";

const model = "gpt-6-sol";
const bare: Head = { model, tools: [], system: [], settings: {} };
const asked = `"max_completion_tokens":64,"store":false,"prompt_cache_options":{"mode":"explicit"}}`;
const hi = `{"role":"user","content":[{"type":"text","text":"Hi"}]}`;

const twoCalls = `{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"Read","arguments":"{}"}},{"id":"call_2","type":"function","function":{"name":"Read","arguments":"{\\"a\\": 1}"}}]}`;

const encoded: ChatSubject["encoded"] = {
  "the settings of the cache key, each in its place": {
    head: {
      model,
      tools: [readsFiles, { type: "provider", name: "own", json: `{ "type":"custom","custom":{"name":"own"} }` }],
      system: twoParagraphs,
      settings: {
        ...everySetting,
        outputFormat: { type: "json_schema", schema: {}, name: "shape", strict: true },
      },
    },
    messages: [userText("Hi")],
    closing: ask,
    body: `{"model":"gpt-6-sol","prompt_cache_key":"session-1","service_tier":"flex","reasoning_effort":"high","verbosity":"low","response_format":{"type":"json_schema","json_schema":{"name":"shape","schema":{},"strict":true}},"tool_choice":{"type":"function","function":{"name":"Read"}},"parallel_tool_calls":false,"temperature":1,"top_p":0.9,"stop":["###"],"tools":[{"type":"function","function":{"name":"Read","description":"Reads \\"files\\".","parameters":{"type":"object","properties":{"b":{"type":"string"},"a":{}}}}},{ "type":"custom","custom":{"name":"own"} }],"messages":[{"role":"developer","content":[{"type":"text","text":"One."},{"type":"text","text":"Two."}]},${hi}],${asked}`,
  },
  "an older model, where caching needs no word and results are bare text": {
    head: { ...bare, model: "gpt-5.5", settings: { thinking: { type: "disabled" } } },
    messages: [
      userText("Hi"),
      callsTwo,
      { role: "user", content: [toolResult("call_1", "one"), toolResult("call_2", "")] },
    ],
    closing: { maxTokens: 0, stream: true, userId: "user-1", diagnoseAgainst: "resp_01" },
    body: `{"model":"gpt-5.5","reasoning_effort":"none","messages":[${hi},${twoCalls},{"role":"tool","tool_call_id":"call_1","content":"one"},{"role":"tool","tool_call_id":"call_2","content":""}],"max_completion_tokens":1,"stream":true,"stream_options":{"include_usage":true},"store":false,"safety_identifier":"user-1"}`,
  },
  "images and documents": {
    head: bare,
    messages: [
      {
        role: "user",
        content: [
          picture,
          linkedPicture,
          { type: "document", source: { kind: "file", fileId: "file_1" }, title: "Plan" },
          { type: "document", source: { kind: "text", text: "words" }, title: "Plan" },
          { type: "document", source: { kind: "base64", mediaType: "application/pdf", data: "JVBE" }, title: "a.pdf" },
        ],
      },
    ],
    closing: ask,
    body: `{"model":"gpt-6-sol","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBO"}},{"type":"image_url","image_url":{"url":"https://example.com/a.png"}},{"type":"file","file":{"file_id":"file_1"}},{"type":"text","text":"Plan\\n\\nwords"},{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,JVBE"}}]}],${asked}`,
  },
  "results with pictures, which stand after all results of their turn": {
    head: bare,
    messages: [
      userText("Hi"),
      callsTwo,
      {
        role: "user",
        content: [
          {
            type: "tool_result",
            toolUseId: "call_1",
            content: [picture],
          },
          {
            type: "tool_result",
            toolUseId: "call_2",
            content: [text("no such file"), { type: "document", source: { kind: "text", text: "words" } }],
            isError: true,
          },
          text("Look."),
        ],
      },
    ],
    closing: ask,
    body: `{"model":"gpt-6-sol","messages":[${hi},${twoCalls},{"role":"tool","tool_call_id":"call_1","content":[{"type":"text","text":"(The picture stands in the next message.)"}]},{"role":"tool","tool_call_id":"call_2","content":[{"type":"text","text":"no such file"},{"type":"text","text":"words"}]},{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBO"}},{"type":"text","text":"Look."}]}],${asked}`,
  },
  "a note inside the conversation": {
    head: bare,
    messages: [userText("Hi"), { role: "system", content: [text("The date has changed.")] }],
    closing: ask,
    body: `{"model":"gpt-6-sol","messages":[${hi},{"role":"developer","content":[{"type":"text","text":"The date has changed."}]}],${asked}`,
  },
  "calls without an answer, answered by the constant, and text after them": {
    head: bare,
    messages: [userText("Hi"), callsTwo, { role: "user", content: [text("and?"), toolResult("call_2", "two")] }],
    closing: ask,
    body: `{"model":"gpt-6-sol","messages":[${hi},${twoCalls},{"role":"tool","tool_call_id":"call_2","content":[{"type":"text","text":"two"}]},{"role":"tool","tool_call_id":"call_1","content":[{"type":"text","text":"No result stands here: this call is handled in the background."}]},{"role":"user","content":[{"type":"text","text":"and?"}]}],${asked}`,
  },
  "a directive inside the last result": {
    head: bare,
    messages: [
      userText("Hi"),
      callsTwo,
      {
        role: "user",
        content: [
          toolResult("call_1", "one"),
          { type: "tool_result", toolUseId: "call_2", content: [text("two"), text("Do it.")] },
        ],
      },
    ],
    closing: ask,
    body: `{"model":"gpt-6-sol","messages":[${hi},${twoCalls},{"role":"tool","tool_call_id":"call_1","content":[{"type":"text","text":"one"}]},{"role":"tool","tool_call_id":"call_2","content":[{"type":"text","text":"two"},{"type":"text","text":"Do it."}]}],${asked}`,
  },
  "an answer of another provider, in this format's order": {
    head: bare,
    messages: [
      userText("Hi"),
      {
        role: "assistant",
        content: [
          { type: "thinking", thinking: "hm", signature: "EqQB" },
          { type: "tool_use", id: "toolu_1", name: "Read", input: `{"path":` },
          text("First. "),
          text("Then."),
        ],
      },
      { role: "user", content: [toolResult("toolu_1", "ok")] },
    ],
    closing: ask,
    body: `{"model":"gpt-6-sol","messages":[${hi},{"role":"assistant","content":"First. Then.","tool_calls":[{"id":"toolu_1","type":"function","function":{"name":"Read","arguments":"{}"}}]},{"role":"tool","tool_call_id":"toolu_1","content":[{"type":"text","text":"ok"}]}],${asked}`,
  },
  "an answer that ended inside its reasoning": {
    head: bare,
    messages: [
      userText("Hi"),
      { role: "assistant", content: [{ type: "redacted_thinking", data: "Emw" }] },
      userText("Hi"),
    ],
    closing: ask,
    body: `{"model":"gpt-6-sol","messages":[${hi},{"role":"assistant","content":"(This answer was cut off before anything was said.)"},${hi}],${asked}`,
  },
};

conformanceSuite(
  chatConformance({
    protocol: openaiChat,
    head: {
      model,
      tools: [{ type: "function", name: "Read", description: "Reads.", inputSchema: { type: "object" } }],
      system: [text("You are a test.")],
      settings: {},
    },
    encoded,
    outsideKey: {
      closing: { maxTokens: 9, stream: true, userId: "user-1", diagnoseAgainst: "resp_01" },
      fields: [
        "messages",
        "max_completion_tokens",
        "stream",
        "stream_options",
        "store",
        "prompt_cache_options",
        "safety_identifier",
      ],
    },
    parts: {
      report: `{"prompt_tokens":47665,"completion_tokens":40,"total_tokens":47705,"prompt_tokens_details":{"cached_tokens":46700,"cache_write_tokens":950,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}}`,
      usage: { plain: 15, read: 46_700, written: { "30m": 950 }, output: 40, thinking: 0 },
    },
  }),
);

// --- what only some endpoints do -------------------------------------------------------------------------------------

const { chunk, frame, opening, ending, whole, done } = chatWords(model);

const read = (frames: readonly { readonly event: string; readonly data: string }[]): readonly ModelEvent[] => {
  let state = openaiChat.initial;
  return frames.flatMap((sent) => {
    const [next, events] = openaiChat.step(state, sent);
    state = next;
    return events;
  });
};

test("openai-chat: calls without numbers start with each new id", () => {
  const { response } = fold(
    read([
      opening,
      chunk(`"tool_calls":[{"id":"call_1","type":"function","function":{"name":"Read","arguments":"{\\"a\\""}}]`),
      chunk(`"tool_calls":[{"function":{"arguments":":1}"}}]`),
      chunk(`"tool_calls":[{"id":"call_2","type":"function","function":{"name":"Now","arguments":"{}"}}]`),
      ...ending("stop"),
    ]),
  );
  assert.equal(response.stop, "tool-use", "an end after calls is a call, whatever it is called");
  assert.deepEqual(response.message.content, [
    { type: "tool_use", id: "call_1", name: "Read", input: `{"a":1}` },
    { type: "tool_use", id: "call_2", name: "Now", input: "{}" },
  ]);
});

test("openai-chat: an error inside a stream, or instead of an answer, is thrown", () => {
  const isOverloaded = (error: unknown): boolean =>
    error instanceof ModelError && error.reason.kind === "overloaded" && error.retryable;
  const broken = `{"error":{"code":503,"message":"busy"}}`;
  assert.throws(() => read([opening, frame(broken)]), isOverloaded);
  assert.throws(() => openaiChat.whole(broken), isOverloaded);
  assert.throws(() => read([opening, chunk("", `"insufficient_system_resource"`)]), isOverloaded);
  assert.throws(() => openaiChat.whole(whole(`"content":"x"`, `"insufficient_system_resource"`)), isOverloaded);
});

test("openai-chat: what a gateway sends before the first choice does not start the answer", () => {
  const filtered = frame(`{"id":"","model":"","choices":[],"prompt_filter_results":[]}`);
  assert.deepEqual(read([filtered]), []);
  const { response } = fold(read([filtered, opening, ...ending("stop")]));
  assert.deepEqual([response.id, response.model], ["chatcmpl-1", model]);
});

test("openai-chat: usage may be inside the choice, and other choices are ignored", () => {
  const usage = `{"prompt_tokens":7,"completion_tokens":2}`;
  const { response } = fold(
    read([
      opening,
      frame(`{"id":"chatcmpl-1","model":"${model}","choices":[{"index":1,"delta":{"content":"other"}}]}`),
      frame(
        `{"id":"chatcmpl-1","model":"${model}","choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"stop","usage":${usage}}]}`,
      ),
      done,
    ]),
  );
  assert.deepEqual(response.usage, { plain: 7, read: 0, written: {}, output: 2 });
  assert.deepEqual(response.message.content, [text("x")]);
});
