/** Anthropic Messages, answers: how the provider spells them, by hand, and what they say.
 *  Elsewhere: what is done with them (protocol-suite.ts), requests and errors (anthropic.test.ts). */

import type { ModelResponse, Usage } from "../../src/index.ts";
import type { AnswerFixture, Conformance } from "./protocol-suite.ts";

type SentFrame = AnswerFixture["frames"][number];

const MODEL = "claude-sonnet-5";
const ID = "msg_01";

/** Every frame names its own type twice: in the event and in its data. */
export const frame = (type: string, fields: string): SentFrame => ({
  event: type,
  data: `{"type":"${type}"${fields && `,${fields}`}}`,
});

export const started = (
  usage = `{"input_tokens":10,"output_tokens":1}`,
  more = "",
  ending = `"stop_reason":null,"stop_sequence":null`,
): SentFrame =>
  frame(
    "message_start",
    `"message":{"id":"${ID}","type":"message","role":"assistant","model":"${MODEL}","content":[],${ending},"usage":${usage}${more}}`,
  );

export const blockStart = (index: number, block: string): SentFrame =>
  frame("content_block_start", `"index":${index},"content_block":${block}`);
export const delta = (index: number, fields: string): SentFrame =>
  frame("content_block_delta", `"index":${index},"delta":{${fields}}`);
export const blockStop = (index: number): SentFrame => frame("content_block_stop", `"index":${index}`);
export const messageDelta = (fields: string, usage = `{"output_tokens":8}`): SentFrame =>
  frame("message_delta", `"delta":{${fields}},"usage":${usage}`);
export const messageStop = frame("message_stop", "");
export const ping = frame("ping", "");

const ended = `"stop_reason":"end_turn","stop_sequence":null`;
export const closing: readonly SentFrame[] = [messageDelta(ended), messageStop];

/** The same answer in one piece: blocks in the provider's own spelling. */
export const wholeBody = (
  blocks: readonly string[],
  { ending = ended, usage = `{"input_tokens":10,"output_tokens":8}`, more = "" } = {},
): string =>
  `{"id":"${ID}","type":"message","role":"assistant","model":"${MODEL}","content":[${blocks.join(",")}],${ending},"usage":${usage}${more}}`;

const plainUsage: Usage = { plain: 10, read: 0, written: {}, output: 8 };

const saying = (
  content: ModelResponse["message"]["content"],
  changed: Partial<Omit<ModelResponse, "message">> = {},
): ModelResponse => ({
  id: ID,
  model: MODEL,
  message: { role: "assistant", content },
  stop: "end",
  usage: plainUsage,
  ...changed,
});

const textAnswer: AnswerFixture = {
  frames: [
    started(),
    blockStart(0, `{"type":"text","text":""}`),
    ping,
    delta(0, `"type":"text_delta","text":"Hé"`),
    delta(0, `"type":"text_delta","text":"llo \\ud83d"`),
    delta(0, `"type":"text_delta","text":"\\ude00\\u0000 \\"q\\""`),
    blockStop(0),
    ...closing,
  ],
  whole: wholeBody([`{"type":"text","text":"Hé\\u006clo 😀\\u0000 \\"q\\""}`]),
  response: saying([{ type: "text", text: 'Héllo 😀\u0000 "q"' }]),
  resent: `{"type":"text","text":"Héllo 😀\\u0000 \\"q\\""}`,
};

/** Spacing, key order, number and escape forms that no encoder of ours would write. */
const oddInput = `{ "path" : "src/\\u00e9.ts",\n\t"depth":1.0e+2 , "big":12345678901234567890,"b":1,"a":[ -0.0,1E3 ] }`;
const otherInput = `{"command":"ls  -l","timeout":0.50}`;

const pieces = (index: number, json: string, size: number): readonly SentFrame[] =>
  (json.match(new RegExp(`[^]{1,${size}}`, "gu")) ?? []).map((piece) =>
    delta(index, `"type":"input_json_delta","partial_json":${JSON.stringify(piece)}`),
  );

const [reads, runs, empty] = [
  pieces(1, oddInput, 7),
  pieces(2, otherInput, 5),
  [delta(3, `"type":"input_json_delta","partial_json":""`)],
];

const toolAnswer: AnswerFixture = {
  frames: [
    started(),
    blockStart(0, `{"type":"text","text":""}`),
    delta(0, `"type":"text_delta","text":"Both."`),
    blockStop(0),
    blockStart(1, `{"type":"tool_use","id":"toolu_1","name":"Read","input":{}}`),
    // Blocks may arrive side by side.
    blockStart(2, `{"type":"tool_use","id":"toolu_2","name":"Bash","input":{}}`),
    ...reads.flatMap((read, at) => [read, ...(runs[at] ? [runs[at]] : [])]),
    blockStop(1),
    blockStop(2),
    blockStart(3, `{"type":"tool_use","id":"toolu_3","name":"Now","input":{}}`),
    ...empty,
    blockStop(3),
    messageDelta(`"stop_reason":"tool_use","stop_sequence":null`),
    messageStop,
  ],
  whole: wholeBody(
    [
      `{"type":"text","text":"Both."}`,
      `{"type":"tool_use","id":"toolu_1","name":"Read","input":${oddInput}}`,
      `{ "input" : ${otherInput}, "type":"tool_use","name":"Bash","id":"toolu_2" }`,
      `{"type":"tool_use","id":"toolu_3","name":"Now","input":{}}`,
    ],
    { ending: `"stop_reason":"tool_use","stop_sequence":null` },
  ),
  response: saying(
    [
      { type: "text", text: "Both." },
      { type: "tool_use", id: "toolu_1", name: "Read", input: oddInput },
      { type: "tool_use", id: "toolu_2", name: "Bash", input: otherInput },
      { type: "tool_use", id: "toolu_3", name: "Now", input: "{}" },
    ],
    { stop: "tool-use" },
  ),
  resent: [
    `{"type":"text","text":"Both."}`,
    `{"type":"tool_use","id":"toolu_1","name":"Read","input":${oddInput}}`,
    `{"type":"tool_use","id":"toolu_2","name":"Bash","input":${otherInput}}`,
    `{"type":"tool_use","id":"toolu_3","name":"Now","input":{}}`,
  ].join(","),
};

const thinkingAnswer: AnswerFixture = {
  frames: [
    started(),
    blockStart(0, `{"type":"thinking","thinking":"","signature":""}`),
    delta(0, `"type":"thinking_delta","thinking":"First "`),
    delta(0, `"type":"thinking_delta","thinking":"this."`),
    delta(0, `"type":"signature_delta","signature":"EqQB+/"`),
    delta(0, `"type":"signature_delta","signature":"w=="`),
    blockStop(0),
    // Thinking may be left out and only its signature sent.
    blockStart(1, `{"type":"thinking","thinking":"","signature":""}`),
    delta(1, `"type":"signature_delta","signature":"Zm9v"`),
    blockStop(1),
    messageDelta(
      ended,
      `{"input_tokens":10,"output_tokens":30,"output_tokens_details":{"thinking_tokens":22},"iterations":null}`,
    ),
    messageStop,
  ],
  whole: wholeBody(
    [
      `{"type":"thinking","thinking":"First this.","signature":"EqQB+/w=="}`,
      `{"type":"thinking","thinking":"","signature":"Zm9v"}`,
    ],
    { usage: `{"input_tokens":10,"output_tokens":30,"output_tokens_details":{"thinking_tokens":22}}` },
  ),
  response: saying(
    [
      { type: "thinking", thinking: "First this.", signature: "EqQB+/w==" },
      { type: "thinking", thinking: "", signature: "Zm9v" },
    ],
    { usage: { plain: 10, read: 0, written: {}, output: 30, thinking: 22 } },
  ),
  resent: `{"type":"thinking","thinking":"First this.","signature":"EqQB+/w=="},{"type":"thinking","thinking":"","signature":"Zm9v"}`,
};

const redacted = `{"type":"redacted_thinking","data":"EmwKAhgBEgy3va3pzix/LafPsn4a"}`;
const redactedAnswer: AnswerFixture = {
  frames: [started(), blockStart(0, redacted), blockStop(0), ...closing],
  whole: wholeBody([redacted]),
  response: saying([{ type: "redacted_thinking", data: "EmwKAhgBEgy3va3pzix/LafPsn4a" }]),
  resent: redacted,
};

const query = `{ "query": "prompt  cache", "max" : 1.0}`;
const searched = (input: string): string =>
  `{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":${input},"caller":{"type":"direct"}}`;
const found = `{"type":"web_search_tool_result", "tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","url":"https:\\/\\/example.com","page_age":null,"encrypted_content":"a+b=="}]}`;
const compacted = (content: string, sealed: string): string =>
  `{"type":"compaction","content":${content},"encrypted_content":${sealed}}`;

const ownBlocksAnswer: AnswerFixture = {
  frames: [
    started(),
    blockStart(0, searched("{}")),
    ...pieces(0, query, 4),
    blockStop(0),
    blockStart(1, found),
    blockStop(1),
    blockStart(2, compacted("null", "null")),
    delta(2, `"type":"compaction_delta","content":"So \\u0066ar: é","encrypted_content":"c2Vh"`),
    blockStop(2),
    ...closing,
  ],
  whole: wholeBody([searched(query), found, compacted(`"So \\u0066ar: é"`, `"c2Vh"`)]),
  response: saying([
    { type: "provider", kind: "server_tool_use", json: searched(query) },
    { type: "provider", kind: "web_search_tool_result", json: found },
    { type: "provider", kind: "compaction", json: compacted(`"So \\u0066ar: é"`, `"c2Vh"`) },
  ]),
  resent: `${searched(query)},${found},${compacted(`"So \\u0066ar: é"`, `"c2Vh"`)}`,
};

const cites = [
  `{"type":"char_location","cited_text":"oaks","document_index":0, "document_title":null,"start_char_index":0,"end_char_index":4.0}`,
  `{"type":"web_search_result_location","url":"https:\\/\\/example.com","title":"T","encrypted_index":"x==","cited_text":"é"}`,
] as const;
const cited = `{"type":"text","text":"Oaks grow.","citations":[${cites.join(",")}]}`;
const citedAnswer: AnswerFixture = {
  frames: [
    started(),
    blockStart(0, `{"type":"text","text":"","citations":[]}`),
    delta(0, `"type":"citations_delta","citation":${cites[0]}`),
    delta(0, `"type":"text_delta","text":"Oaks grow."`),
    delta(0, `"type":"citations_delta","citation":${cites[1]}`),
    blockStop(0),
    ...closing,
  ],
  whole: wholeBody([cited]),
  response: saying([{ type: "text", text: "Oaks grow.", citations: cites }]),
  resent: cited,
};

/** The opening report has the split by lifetime, the closing one only a total; what it adds is 5m. */
const partsAnswer: AnswerFixture = {
  frames: [
    started(
      `{"input_tokens":12,"cache_creation_input_tokens":700,"cache_read_input_tokens":46000,"cache_creation":{"ephemeral_5m_input_tokens":200,"ephemeral_1h_input_tokens":500},"output_tokens":1}`,
    ),
    messageDelta(
      ended,
      `{"input_tokens":15,"cache_creation_input_tokens":950,"cache_read_input_tokens":46700,"output_tokens":40,"output_tokens_details":null}`,
    ),
    messageStop,
  ],
  whole: wholeBody([], {
    usage: `{"input_tokens":15,"cache_creation_input_tokens":950,"cache_read_input_tokens":46700,"cache_creation":{"ephemeral_5m_input_tokens":450,"ephemeral_1h_input_tokens":500},"output_tokens":40}`,
  }),
  response: saying([], { usage: { plain: 15, read: 46_700, written: { "5m": 450, "1h": 500 }, output: 40 } }),
  resent: "",
};

/** A compaction's own tokens are in no total: only the sum of the rounds is what is billed. */
const rounds = `"iterations":[{"type":"compaction","input_tokens":100,"output_tokens":20,"cache_read_input_tokens":50000,"cache_creation_input_tokens":300,"cache_creation":{"ephemeral_5m_input_tokens":300,"ephemeral_1h_input_tokens":0}},{"type":"message","input_tokens":7,"output_tokens":33,"cache_read_input_tokens":900,"cache_creation_input_tokens":60,"cache_creation":{"ephemeral_5m_input_tokens":10,"ephemeral_1h_input_tokens":50}}]`;
const roundsAnswer: AnswerFixture = {
  frames: [
    started(),
    messageDelta(
      ended,
      `{"input_tokens":7,"cache_creation_input_tokens":60,"cache_read_input_tokens":900,"output_tokens":33,"output_tokens_details":{"thinking_tokens":11},${rounds}}`,
    ),
    messageStop,
  ],
  whole: wholeBody([], {
    usage: `{"input_tokens":7,"cache_creation_input_tokens":60,"cache_read_input_tokens":900,"output_tokens":33,"output_tokens_details":{"thinking_tokens":11},${rounds}}`,
  }),
  response: saying([], {
    usage: { plain: 107, read: 50_900, written: { "5m": 310, "1h": 50 }, output: 53, thinking: 11 },
  }),
  resent: "",
};

const details = `{"type":"refusal","category":"cyber","explanation":"Not this."}`;
const refusing = `"stop_reason":"refusal","stop_sequence":null,"stop_details":${details}`;
const refusalAnswer: AnswerFixture = {
  frames: [
    started(),
    blockStart(0, `{"type":"text","text":""}`),
    delta(0, `"type":"text_delta","text":"I can"`),
    blockStop(0),
    messageDelta(refusing),
    messageStop,
  ],
  whole: wholeBody([`{"type":"text","text":"I can"}`], { ending: refusing }),
  response: saying([{ type: "text", text: "I can" }], { stop: "refusal", stopDetail: details }),
  resent: `{"type":"text","text":"I can"}`,
};

const diagnosed = (reason: string, diagnosis: NonNullable<ModelResponse["diagnosis"]>): AnswerFixture => {
  const more = `,"diagnostics":{"cache_miss_reason":${reason}}`;
  return {
    frames: [started(undefined, more), ...closing],
    whole: wholeBody([], { more }),
    response: saying([], { diagnosis }),
    resent: "",
  };
};

export const answers: Conformance["answers"] = {
  text: textAnswer,
  "parallel tool calls": toolAnswer,
  thinking: thinkingAnswer,
  "redacted thinking": redactedAnswer,
  "the provider's own blocks": ownBlocksAnswer,
  citations: citedAnswer,
  "usage reported in parts": partsAnswer,
  "usage of several rounds": roundsAnswer,
  "a refusal": refusalAnswer,
  "a cache miss explained": diagnosed(`{"type":"messages_changed","cache_missed_input_tokens":4200}`, {
    status: "missed",
    cause: "messages_changed",
    missedTokens: 4_200,
  }),
  "a cache miss not explained yet": diagnosed("null", { status: "pending" }),
  "nothing at all": {
    frames: [
      started(),
      messageDelta(`"stop_reason":"max_tokens","stop_sequence":null`, `{"output_tokens":0}`),
      messageStop,
    ],
    whole: wholeBody([], {
      ending: `"stop_reason":"max_tokens","stop_sequence":null`,
      usage: `{"input_tokens":10,"output_tokens":0}`,
    }),
    response: saying([], { stop: "max-tokens", usage: { ...plainUsage, output: 0 } }),
    resent: "",
  },
};

const stopping = (ending: string, detail?: string): Conformance["stops"]["end"] => ({
  frames: [started(), messageDelta(ending), messageDelta(`"container":null`), messageStop],
  whole: wholeBody([], { ending }),
  ...(detail === undefined ? {} : { detail }),
});

export const stops: Conformance["stops"] = {
  end: stopping(ended),
  "tool-use": stopping(`"stop_reason":"tool_use","stop_sequence":null`),
  "max-tokens": stopping(`"stop_reason":"max_tokens","stop_sequence":null`),
  "stop-sequence": stopping(`"stop_reason":"stop_sequence","stop_sequence":"\\n###"`, "\n###"),
  pause: stopping(`"stop_reason":"pause_turn","stop_sequence":null`),
  refusal: stopping(`"stop_reason":"refusal","stop_sequence":null,"stop_details":null`),
  "context-full": stopping(`"stop_reason":"model_context_window_exceeded","stop_sequence":null`),
  other: stopping(`"stop_reason":"daydreaming","stop_sequence":null`, "daydreaming"),
};
