/** OpenAI Responses, answers: how the provider spells them, by hand, and what they say.
 *  Elsewhere: what is done with them (protocol-suite.ts), requests and errors (responses-conformance.ts). */

import type { Block, ModelResponse, Usage } from "../../src/index.ts";
import type { AnswerFixture, Conformance } from "./protocol-suite.ts";

type SentFrame = AnswerFixture["frames"][number];

const MODEL = "gpt-6-sol";
const ID = "resp_01";

export const frame = (type: string, fields: string): SentFrame => ({
  event: type,
  data: `{"type":"${type}","sequence_number":4,${fields}}`,
});

type Ending = {
  readonly status?: string;
  readonly details?: string;
  readonly usage?: string;
  readonly more?: string;
};

const plainReport = `{"input_tokens":10,"input_tokens_details":{"cached_tokens":0},"output_tokens":8,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":18}`;

/** The answer in one piece: items in the provider's own spelling. */
export const wholeBody = (
  items: readonly string[],
  { status = "completed", details = "null", usage = plainReport, more = "" }: Ending = {},
): string =>
  `{"id":"${ID}","object":"response","created_at":1763000000,"status":"${status}","error":null,"incomplete_details":${details},"model":"${MODEL}","output":[${items.join(",")}],"parallel_tool_calls":true,"store":false,"usage":${usage}${more}}`;

export const started: SentFrame = frame(
  "response.created",
  `"response":${wholeBody([], { status: "in_progress", usage: "null" })}`,
);
const inProgress = frame(
  "response.in_progress",
  `"response":${wholeBody([], { status: "in_progress", usage: "null" })}`,
);
export const added = (index: number, item: string): SentFrame =>
  frame("response.output_item.added", `"output_index":${index},"item":${item}`);
export const done = (index: number, item: string): SentFrame =>
  frame("response.output_item.done", `"output_index":${index},"item":${item}`);
export const delta = (index: number, kind: string, piece: string): SentFrame =>
  grew(index, kind, `"content_index":0,"delta":${piece}`);
const grew = (index: number, kind: string, fields: string): SentFrame =>
  frame(`response.${kind}.delta`, `"item_id":"item_${index}","output_index":${index},${fields}`);
export const ended = (items: readonly string[], ending: Ending = {}): SentFrame =>
  frame(
    ending.status === "incomplete" ? "response.incomplete" : "response.completed",
    `"response":${wholeBody(items, ending)}`,
  );

export const plainUsage: Usage = { plain: 10, read: 0, written: {}, output: 8, thinking: 0 };

const saying = (content: readonly Block[], changed: Partial<Omit<ModelResponse, "message">> = {}): ModelResponse => ({
  id: ID,
  model: MODEL,
  message: { role: "assistant", content },
  stop: "end",
  usage: plainUsage,
  ...changed,
});

/** A message as it begins: empty, and not complete. */
const begunMessage = `{"id":"msg_1","type":"message","status":"in_progress","content":[],"role":"assistant"}`;
const part = `"item_id":"msg_1","output_index":0,"content_index":0,"part":{"type":"output_text","annotations":[],"logprobs":[],"text":""}`;

const hello = `{"id":"msg_1","type":"message","status":"completed", "content":[{"type":"output_text","annotations":[],"logprobs":[],"text":"Hé\\u006clo 😀\\u0000 \\"q\\""}],"role":"assistant"}`;
const textAnswer: AnswerFixture = {
  frames: [
    started,
    inProgress,
    added(0, begunMessage),
    frame("response.content_part.added", part),
    delta(0, "output_text", `"Hé"`),
    delta(0, "output_text", `"llo \\ud83d"`),
    delta(0, "output_text", `"\\ude00\\u0000 \\"q\\""`),
    frame("response.output_text.done", `"item_id":"msg_1","output_index":0,"content_index":0,"text":"…"`),
    frame("response.content_part.done", part),
    done(0, hello),
    ended([hello]),
  ],
  whole: wholeBody([hello]),
  response: saying([{ type: "text", text: 'Héllo 😀\u0000 "q"', raw: hello }]),
  resent: hello,
};

/** Spacing, key order, number and escape forms that no encoder of ours would write. */
const oddInput = `{ "path" : "src/\\u00e9.ts",\n\t"depth":1.0e+2 , "big":12345678901234567890,"b":1,"a":[ -0.0,1E3 ] }`;
const otherInput = `{"command":"ls  -l","timeout":0.50}`;

export const begunCall = (number: number, name: string): string =>
  `{"id":"fc_${number}","type":"function_call","status":"in_progress","arguments":"","call_id":"call_${number}","name":"${name}"}`;
export const call = (number: number, name: string, input: string): string =>
  `{"id":"fc_${number}","type":"function_call","status":"completed","arguments":${JSON.stringify(input)},"call_id":"call_${number}","name":"${name}"}`;

const pieces = (index: number, json: string, size: number): readonly SentFrame[] =>
  (json.match(new RegExp(`[^]{1,${size}}`, "gu")) ?? []).map((piece) =>
    grew(index, "function_call_arguments", `"obfuscation":"x9","delta":${JSON.stringify(piece)}`),
  );

const both = `{"id":"msg_1","type":"message","status":"completed","content":[{"type":"output_text","annotations":[],"text":"Both."}],"role":"assistant"}`;
const calls = [call(1, "Read", oddInput), call(2, "Bash", otherInput), call(3, "Now", "{}")] as const;
const [reads, runs] = [pieces(1, oddInput, 7), pieces(2, otherInput, 5)];

const toolAnswer: AnswerFixture = {
  frames: [
    started,
    added(0, begunMessage),
    delta(0, "output_text", `"Both."`),
    done(0, both),
    added(1, begunCall(1, "Read")),
    // Calls may arrive side by side.
    added(2, begunCall(2, "Bash")),
    ...reads.flatMap((read, at) => [read, ...(runs[at] ? [runs[at]] : [])]),
    frame("response.function_call_arguments.done", `"item_id":"fc_1","output_index":1,"arguments":"…"`),
    done(1, calls[0]),
    done(2, calls[1]),
    added(3, begunCall(3, "Now")),
    done(3, calls[2]),
    ended([both, ...calls]),
  ],
  whole: wholeBody([both, ...calls]),
  response: saying(
    [
      { type: "text", text: "Both.", raw: both },
      { type: "tool_use", id: "call_1", name: "Read", input: oddInput, raw: calls[0] },
      { type: "tool_use", id: "call_2", name: "Bash", input: otherInput, raw: calls[1] },
      { type: "tool_use", id: "call_3", name: "Now", input: "{}", raw: calls[2] },
    ],
    { stop: "tool-use" },
  ),
  resent: [both, ...calls].join(","),
};

const okay = `{"id":"msg_9","type":"message","status":"completed","content":[{"type":"output_text","annotations":[],"text":"Ok."}],"role":"assistant"}`;
const summed = `{"id":"rs_1","type":"reasoning","encrypted_content":"gAAAAAB+/w==","summary":[{"type":"summary_text","text":"**First**\\n\\nthis."},{"type":"summary_text","text":"Then that."}]}`;
const spoken = `{"id":"rs_2","type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"Aloud."}],"encrypted_content":null}`;
const reasonedReport = `{"input_tokens":10,"input_tokens_details":{"cached_tokens":0},"output_tokens":30,"output_tokens_details":{"reasoning_tokens":22},"total_tokens":40}`;
const thinkingAnswer: AnswerFixture = {
  frames: [
    started,
    added(0, `{"id":"rs_1","type":"reasoning","encrypted_content":"gAAAAA","summary":[]}`),
    frame("response.reasoning_summary_part.added", `"output_index":0,"summary_index":0,"part":{}`),
    grew(0, "reasoning_summary_text", `"summary_index":0,"delta":"**First**\\n\\n"`),
    grew(0, "reasoning_summary_text", `"summary_index":0,"delta":"this."`),
    grew(0, "reasoning_summary_text", `"summary_index":1,"delta":"Then "`),
    grew(0, "reasoning_summary_text", `"summary_index":1,"delta":"that."`),
    done(0, summed),
    added(1, `{"id":"rs_2","type":"reasoning","summary":[]}`),
    delta(1, "reasoning_text", `"Aloud."`),
    done(1, spoken),
    added(2, begunMessage),
    // What no delta said is shown with the end of its item.
    done(2, okay),
    ended([summed, spoken, okay], { usage: reasonedReport }),
  ],
  whole: wholeBody([summed, spoken, okay], { usage: reasonedReport }),
  response: saying(
    [
      {
        type: "thinking",
        thinking: "**First**\n\nthis.\n\nThen that.",
        signature: "gAAAAAB+/w==",
        raw: summed,
      },
      { type: "thinking", thinking: "Aloud.", signature: "", raw: spoken },
      { type: "text", text: "Ok.", raw: okay },
    ],
    { usage: { plain: 10, read: 0, written: {}, output: 30, thinking: 22 } },
  ),
  resent: [summed, spoken, okay].join(","),
};

const sealed = `{"id":"rs_1","type":"reasoning", "encrypted_content":"gAAAAAB+/w==","summary":[]}`;
const sealedAnswer: AnswerFixture = {
  frames: [started, added(0, sealed), done(0, sealed), added(1, begunMessage), done(1, okay), ended([sealed, okay])],
  whole: wholeBody([sealed, okay]),
  response: saying([
    { type: "thinking", thinking: "", signature: "gAAAAAB+/w==", raw: sealed },
    { type: "text", text: "Ok.", raw: okay },
  ]),
  resent: `${sealed},${okay}`,
};

const searched = `{"id":"ws_1","type":"web_search_call","status":"completed", "action":{"type":"search","query":"prompt  cache"}}`;
const compacted = `{"id":"cmp_1","type":"compaction","encrypted_content":"c2Vh\\u002b"}`;
const ownAnswer: AnswerFixture = {
  frames: [
    started,
    added(0, `{"id":"ws_1","type":"web_search_call","status":"in_progress"}`),
    frame("response.web_search_call.searching", `"output_index":0,"item_id":"ws_1"`),
    done(0, searched),
    added(1, compacted),
    done(1, compacted),
    ended([searched, compacted]),
  ],
  whole: wholeBody([searched, compacted]),
  response: saying([
    { type: "provider", kind: "web_search_call", json: searched },
    { type: "provider", kind: "compaction", json: compacted },
  ]),
  resent: `${searched},${compacted}`,
};

const cited = `{"id":"msg_1","type":"message","status":"completed","content":[{"type":"output_text","annotations":[{"type":"url_citation","url":"https:\\/\\/example.com","title":"T","start_index":0,"end_index":4.0}],"text":"Oaks grow."}],"role":"assistant"}`;
const citedAnswer: AnswerFixture = {
  frames: [
    started,
    added(0, begunMessage),
    delta(0, "output_text", `"Oaks grow."`),
    frame("response.output_text.annotation.added", `"output_index":0,"annotation_index":0,"annotation":{}`),
    done(0, cited),
    ended([cited]),
  ],
  whole: wholeBody([cited]),
  response: saying([{ type: "text", text: "Oaks grow.", raw: cited }]),
  resent: cited,
};

/** The total holds what was read and what was written, and what was written is told by lifetime. */
const parts = `{"input_tokens":47665,"input_tokens_details":{"cached_tokens":46700,"cache_write_tokens":950,"cache_write_tokens_details":{"ttl_30m_tokens":450,"ttl_12h_tokens":500}},"output_tokens":40,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":47705}`;
const partsAnswer: AnswerFixture = {
  frames: [started, ended([], { usage: parts })],
  whole: wholeBody([], { usage: parts }),
  response: saying([], {
    usage: { plain: 15, read: 46_700, written: { "12h": 500, "30m": 450 }, output: 40, thinking: 0 },
  }),
  resent: "",
};

const refusing = `{"id":"msg_1","type":"message","status":"completed","content":[{"type":"refusal","refusal":"Not this."}],"role":"assistant"}`;
const refusalAnswer: AnswerFixture = {
  frames: [
    started,
    added(0, begunMessage),
    delta(0, "refusal", `"Not "`),
    delta(0, "refusal", `"this."`),
    done(0, refusing),
    ended([refusing]),
  ],
  whole: wholeBody([refusing]),
  response: saying([{ type: "text", text: "Not this.", raw: refusing }], {
    stop: "refusal",
    stopDetail: "Not this.",
  }),
  resent: refusing,
};

const missed = `,"prompt_cache_diagnostics":{"type":"cache_miss","reason":"prompt_cache_key_changed","comparison_reusable_tokens":1280,"cache_missed_tokens":1280}`;
const unavailable = `,"prompt_cache_diagnostics":{"type":"unavailable"}`;
const cutOff: Ending = { status: "incomplete", details: `{"reason":"max_output_tokens"}` };
const noOutput = `{"input_tokens":10,"input_tokens_details":{"cached_tokens":0},"output_tokens":0,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":10}`;

export const answers: Conformance["answers"] = {
  text: textAnswer,
  "parallel tool calls": toolAnswer,
  thinking: thinkingAnswer,
  "redacted thinking": sealedAnswer,
  "the provider's own blocks": ownAnswer,
  citations: citedAnswer,
  "usage reported in parts": partsAnswer,
  "usage of several rounds": { absent: "usage is told once, for all that was billed" },
  "a refusal": refusalAnswer,
  "a cache miss explained": {
    frames: [started, ended([], { more: missed })],
    whole: wholeBody([], { more: missed }),
    response: saying([], {
      diagnosis: { status: "missed", cause: "prompt_cache_key_changed", missedTokens: 1_280 },
    }),
    resent: "",
  },
  "a cache miss not explained yet": {
    frames: [started, ended([], { more: unavailable })],
    whole: wholeBody([], { more: unavailable }),
    response: saying([], { diagnosis: { status: "pending" } }),
    resent: "",
  },
  "nothing at all": {
    frames: [started, ended([], { ...cutOff, usage: noOutput })],
    whole: wholeBody([], { ...cutOff, usage: noOutput }),
    response: saying([], { stop: "max-tokens", usage: { ...plainUsage, output: 0 } }),
    resent: "",
  },
};

const stopping = (ending: Ending, detail?: string): Conformance["stops"]["end"] => ({
  frames: [started, ended([], ending)],
  whole: wholeBody([], ending),
  ...(detail === undefined ? {} : { detail }),
});

const because = (reason: string): Ending => ({ status: "incomplete", details: `{"reason":"${reason}"}` });

export const stops: Conformance["stops"] = {
  end: stopping({}),
  "tool-use": {
    frames: [started, added(0, calls[2]), done(0, calls[2]), ended([calls[2]])],
    whole: wholeBody([calls[2]]),
  },
  "max-tokens": stopping(cutOff),
  "stop-sequence": { absent: "this format has no stop sequences" },
  pause: { absent: "a turn is never paused" },
  refusal: stopping(because("content_filter"), "content_filter"),
  "context-full": { absent: "a prompt too long is an error before the answer" },
  other: stopping(because("daydreaming"), "daydreaming"),
};
