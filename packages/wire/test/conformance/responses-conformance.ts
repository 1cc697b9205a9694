/** OpenAI Responses, requests and errors: how they are spelled, by hand.
 *  Elsewhere: answers (responses-answers.ts), what is done with them (protocol-suite.ts). */

import fc from "fast-check";
import { type Block, type Head, openaiResponses, text, toolResult, userText } from "../../src/index.ts";
import { openaiFailures, openaiHeaders } from "./openai-failures.ts";
import type { Conformance } from "./protocol-suite.ts";
import {
  added,
  answers,
  begunCall,
  delta,
  done,
  ended,
  frame,
  started,
  stops,
  wholeBody,
} from "./responses-answers.ts";
import {
  anyInput,
  anyText,
  ask,
  callsTwo,
  cutInto,
  everySetting,
  linkedPicture,
  picture,
  readsFiles,
  twoParagraphs,
} from "./said.ts";

const model = "gpt-6-sol";
const bare: Head = { model, tools: [], system: [], settings: {} };
const older: Head = { ...bare, model: "gpt-5.5" };
/** What follows the input of a request that asks for nothing special, on a model with breakpoints. */
const asked = `"max_output_tokens":64,"store":false,"include":["reasoning.encrypted_content"],"prompt_cache_options":{"mode":"explicit"}}`;
const askedOlder = `"max_output_tokens":64,"store":false,"include":["reasoning.encrypted_content"]}`;

const hi = `{"type":"message","role":"user","content":[{"type":"input_text","text":"Hi"}]}`;
const twoCalls = `{"type":"function_call","call_id":"call_1","name":"Read","arguments":"{}"},{"type":"function_call","call_id":"call_2","name":"Read","arguments":"{\\"a\\": 1}"}`;

const encoded: Conformance["encoded"] = {
  "the settings of the cache key, each in its place": {
    head: {
      model,
      tools: [readsFiles, { type: "provider", name: "web_search", json: `{ "type":"web_search" }` }],
      system: twoParagraphs,
      settings: everySetting,
    },
    messages: [userText("Hi")],
    closing: ask,
    body: `{"model":"gpt-6-sol","prompt_cache_key":"session-1","service_tier":"flex","reasoning":{"effort":"high","summary":"auto"},"text":{"format":{"type":"json_schema","name":"answer","schema":{}},"verbosity":"low"},"tool_choice":{"type":"function","name":"Read"},"parallel_tool_calls":false,"temperature":1,"top_p":0.9,"tools":[{"type":"function","name":"Read","description":"Reads \\"files\\".","parameters":{"type":"object","properties":{"b":{"type":"string"},"a":{}}},"strict":false},{ "type":"web_search" }],"input":[{"type":"message","role":"developer","content":[{"type":"input_text","text":"One."},{"type":"input_text","text":"Two."}]},${hi}],${asked}`,
  },
  "a head without a system prompt, and a key that is too long": {
    head: {
      ...older,
      tools: [{ type: "function", name: "Now", description: "", inputSchema: {} }],
      settings: { cacheKey: "k".repeat(65), thinking: { type: "disabled" }, toolChoice: { type: "any" } },
    },
    messages: [userText("Hi")],
    closing: ask,
    body: `{"model":"gpt-5.5","prompt_cache_key":"f39cdc2584758c99cf81c1f41d2572f54e17066afffc9d187aeafe5f7cbe2122","reasoning":{"effort":"none"},"tool_choice":"required","tools":[{"type":"function","name":"Now","description":"","parameters":{},"strict":false}],"input":[${hi}],${askedOlder}`,
  },
  "a model that neither reasons nor has breakpoints": {
    head: { ...bare, model: "gpt-4.1-2025-04-14" },
    messages: [userText("Hi")],
    closing: { maxTokens: 3, stream: true, userId: "user-1", diagnoseAgainst: "resp_01" },
    body: `{"model":"gpt-4.1-2025-04-14","input":[${hi}],"max_output_tokens":16,"stream":true,"store":false,"safety_identifier":"user-1"}`,
  },
  "images and documents from every source": {
    head: bare,
    messages: [
      {
        role: "user",
        content: [
          picture,
          linkedPicture,
          { type: "image", source: { kind: "file", fileId: "file_0" } },
          { type: "document", source: { kind: "file", fileId: "file_1" }, title: "Plan" },
          { type: "document", source: { kind: "text", text: "words" }, title: "Plan" },
          { type: "document", source: { kind: "url", url: "https://example.com/a.pdf" } },
          { type: "document", source: { kind: "base64", mediaType: "application/pdf", data: "JVBE" } },
        ],
      },
    ],
    closing: ask,
    body: `{"model":"gpt-6-sol","input":[{"type":"message","role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,iVBO"},{"type":"input_image","image_url":"https://example.com/a.png"},{"type":"input_image","file_id":"file_0"},{"type":"input_file","file_id":"file_1"},{"type":"input_text","text":"Plan\\n\\nwords"},{"type":"input_file","file_url":"https://example.com/a.pdf"},{"type":"input_file","filename":"document","file_data":"data:application/pdf;base64,JVBE"}]}],${asked}`,
  },
  "results as parts, with images and errors, and one without content": {
    head: bare,
    messages: [
      userText("Hi"),
      {
        role: "assistant",
        content: ["call_1", "call_2", "call_3"].map((id) => ({ type: "tool_use", id, name: "Read", input: "{}" })),
      },
      {
        role: "user",
        content: [
          {
            type: "tool_result",
            toolUseId: "call_1",
            content: [text("seen"), picture, { type: "document", source: { kind: "text", text: "words" } }],
          },
          { type: "tool_result", toolUseId: "call_2", content: [text("no such file")], isError: true },
          { type: "tool_result", toolUseId: "call_3", content: [] },
        ],
      },
    ],
    closing: ask,
    body: `{"model":"gpt-6-sol","input":[${hi},{"type":"function_call","call_id":"call_1","name":"Read","arguments":"{}"},{"type":"function_call","call_id":"call_2","name":"Read","arguments":"{}"},{"type":"function_call","call_id":"call_3","name":"Read","arguments":"{}"},{"type":"function_call_output","call_id":"call_1","output":[{"type":"input_text","text":"seen"},{"type":"input_image","image_url":"data:image/png;base64,iVBO"},{"type":"input_text","text":"words"}]},{"type":"function_call_output","call_id":"call_2","output":[{"type":"input_text","text":"no such file"}]},{"type":"function_call_output","call_id":"call_3","output":""}],${asked}`,
  },
  "results as bare text where no breakpoint can go": {
    head: older,
    messages: [
      userText("Hi"),
      callsTwo,
      { role: "user", content: [toolResult("call_1", "one"), toolResult("call_2", "")] },
    ],
    closing: ask,
    body: `{"model":"gpt-5.5","input":[${hi},${twoCalls},{"type":"function_call_output","call_id":"call_1","output":"one"},{"type":"function_call_output","call_id":"call_2","output":""}],${askedOlder}`,
  },
  "a note inside the conversation": {
    head: bare,
    messages: [userText("Hi"), { role: "system", content: [text("The date has changed.")] }],
    closing: ask,
    body: `{"model":"gpt-6-sol","input":[${hi},{"type":"message","role":"developer","content":[{"type":"input_text","text":"The date has changed."}]}],${asked}`,
  },
  "a request that only fills the cache": {
    head: bare,
    messages: [userText("Hi")],
    closing: { maxTokens: 0, stream: false },
    body: `{"model":"gpt-6-sol","input":[${hi}],"store":false,"include":["reasoning.encrypted_content"],"prompt_cache_options":{"mode":"explicit","prewarm":true}}`,
  },
  "a request for cache diagnostics": {
    head: bare,
    messages: [userText("Hi")],
    closing: { maxTokens: 64, stream: true, diagnoseAgainst: "resp_01" },
    body: `{"model":"gpt-6-sol","input":[${hi}],"max_output_tokens":64,"stream":true,"store":false,"include":["reasoning.encrypted_content"],"prompt_cache_options":{"mode":"explicit","comparison_response_id":"resp_01"}}`,
  },
  "a request for cache diagnostics without a baseline, which is none": {
    head: bare,
    messages: [userText("Hi")],
    closing: { ...ask, diagnoseAgainst: null },
    body: `{"model":"gpt-6-sol","input":[${hi}],${asked}`,
  },
  "calls without an answer, answered by the constant, and text after them": {
    head: bare,
    messages: [userText("Hi"), callsTwo, { role: "user", content: [text("and?"), toolResult("call_2", "two")] }],
    closing: ask,
    body: `{"model":"gpt-6-sol","input":[${hi},${twoCalls},{"type":"function_call_output","call_id":"call_2","output":[{"type":"input_text","text":"two"}]},{"type":"function_call_output","call_id":"call_1","output":[{"type":"input_text","text":"No result stands here: this call is handled in the background."}]},{"type":"message","role":"user","content":[{"type":"input_text","text":"and?"}]}],${asked}`,
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
    body: `{"model":"gpt-6-sol","input":[${hi},${twoCalls},{"type":"function_call_output","call_id":"call_1","output":[{"type":"input_text","text":"one"}]},{"type":"function_call_output","call_id":"call_2","output":[{"type":"input_text","text":"two"},{"type":"input_text","text":"Do it."}]}],${asked}`,
  },
  "an answer of another provider, less what only that one can read": {
    head: bare,
    messages: [
      userText("Hi"),
      {
        role: "assistant",
        content: [
          { type: "thinking", thinking: "hm", signature: "EqQB", raw: `{"type":"thinking","thinking":"hm"}` },
          { type: "redacted_thinking", data: "Emw" },
          { type: "text", text: "Yes.", raw: `{"type":"text","text":"Yes."}` },
          { type: "tool_use", id: "toolu_1", name: "Read", input: `{"path":` },
        ],
      },
    ],
    closing: ask,
    body: `{"model":"gpt-6-sol","input":[${hi},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Yes."}]},{"type":"function_call","call_id":"toolu_1","name":"Read","arguments":"{}"},{"type":"function_call_output","call_id":"toolu_1","output":[{"type":"input_text","text":"No result stands here: this call is handled in the background."}]}],${asked}`,
  },
  "an answer that ended inside its reasoning": {
    head: bare,
    messages: [
      userText("Hi"),
      {
        role: "assistant",
        content: [{ type: "thinking", thinking: "", signature: "g", raw: `{"type":"reasoning","summary":[]}` }],
      },
      userText("Hi"),
    ],
    closing: ask,
    body: `{"model":"gpt-6-sol","input":[${hi},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"(This answer was cut off before anything was said.)"}]},${hi}],${asked}`,
  },
};

const begun = `{"id":"msg_1","type":"message","status":"in_progress","content":[],"role":"assistant"}`;

const malformed: Conformance["malformed"] = {
  "a frame that is not JSON": [started, { event: "response.output_item.added", data: `{"type":"response.outp` }],
  "a frame that is no object": [started, { event: "response.completed", data: `["response.completed"]` }],
  "a delta for an item that never started": [started, delta(3, "output_text", `"x"`)],
  "a delta for an item that is done": [started, added(0, begun), done(0, begun), delta(0, "output_text", `"x"`)],
  "an item started twice": [started, added(0, begun), added(0, begun)],
  "an item without a number": [started, frame("response.output_item.added", `"item":${begun}`)],
  "an item start without an item": [started, frame("response.output_item.added", `"output_index":0`)],
  "the end of an item that never started": [started, done(0, begun)],
  "an end without a status": [started, frame("response.completed", `"response":{"id":"resp_01"}`)],
  "an end inside an item": [started, added(0, begun), ended([])],
};

// --- by chance -------------------------------------------------------------------------------------------------------

const anyBlock: fc.Arbitrary<Block> = fc.oneof(
  anyText.map((said) => ({
    type: "text" as const,
    text: said,
    raw: `{"id":"msg_1", "type":"message","status":"completed","content":[{"type":"output_text","annotations":[],"text":${JSON.stringify(said)}}],"role":"assistant"}`,
  })),
  fc.tuple(anyText, fc.base64String()).map(([thinking, signature]) => ({
    type: "thinking" as const,
    thinking,
    signature,
    raw: `{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":${JSON.stringify(thinking)}}],"encrypted_content":"${signature}"}`,
  })),
  fc.tuple(fc.uuid(), fc.constantFrom("Read", "Bash"), anyInput).map(([id, name, input]) => ({
    type: "tool_use" as const,
    id,
    name,
    input,
    raw: `{"type":"function_call","id":"fc_1","call_id":"${id}","name":"${name}","arguments":${JSON.stringify(input)},"status":"completed"}`,
  })),
  anyInput.map((input) => ({
    type: "provider" as const,
    kind: "mcp_call",
    json: `{"type":"mcp_call","id":"mcp_1", "arguments":${JSON.stringify(input)}}`,
  })),
);

const itemOf = (block: Block): string => {
  if (block.type === "provider") return block.json;
  return "raw" in block ? (block.raw ?? "") : "";
};

const streamedItem = (block: Block, index: number, cut: number): Conformance["malformed"][string] => {
  const grow = (kind: string, value: string) =>
    cutInto(value, cut).map((piece) => delta(index, kind, JSON.stringify(piece)));
  switch (block.type) {
    case "text":
      return [added(index, begun), ...grow("output_text", block.text)];
    case "thinking":
      return [
        added(index, `{"type":"reasoning","id":"rs_1","summary":[]}`),
        ...grow("reasoning_summary_text", block.thinking),
      ];
    case "tool_use":
      return [added(index, begunCall(1, block.name)), ...grow("function_call_arguments", block.input)];
    default:
      return [added(index, itemOf(block))];
  }
};

export const responsesConformance: Conformance = {
  protocol: openaiResponses,
  head: {
    model,
    tools: [{ type: "function", name: "Read", description: "Reads.", inputSchema: { type: "object" } }],
    system: [text("You are a test.")],
    settings: {},
  },
  answers,
  stops,
  malformed,
  malformedWhole: {
    "half of its JSON": wholeBody([]).slice(0, 60),
    "no status": wholeBody([], { status: "" }),
    "something that is no object": `"ok"`,
  },
  encoded,
  outsideKey: {
    closing: { maxTokens: 99, stream: true, userId: "user-1", diagnoseAgainst: "resp_01" },
    fields: ["input", "max_output_tokens", "stream", "store", "include", "prompt_cache_options", "safety_identifier"],
  },
  failures: openaiFailures,
  headers: openaiHeaders,
  spell: {
    whole: ({ content }) => wholeBody(content.map(itemOf)),
    frames: ({ content }, cut) => [
      started,
      ...content.flatMap((block, index) => [...streamedItem(block, index, cut), done(index, itemOf(block))]),
      ended(content.map(itemOf)),
    ],
  },
  anyContent: fc.array(anyBlock, { minLength: 1, maxLength: 5 }),
};
