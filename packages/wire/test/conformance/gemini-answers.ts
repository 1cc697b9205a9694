/** Gemini, answers: how the provider spells them, by hand, and what they say.
 *  Elsewhere: what is done with them (protocol-suite.ts), requests and errors (gemini-conformance.ts). */

import type { Block, ModelResponse, Usage } from "../../src/index.ts";
import type { AnswerFixture, Conformance } from "./protocol-suite.ts";

type SentFrame = AnswerFixture["frames"][number];

const MODEL = "gemini-3.8-flash";
const ID = "Il0taoSYJ5Cez7";

type Ending = { readonly reason?: string; readonly message?: string; readonly usage?: string };

export const plainReport = `{"promptTokenCount":10,"candidatesTokenCount":8,"totalTokenCount":18,"promptTokensDetails":[{"modality":"TEXT","tokenCount":10}]}`;
const promptReport = `{"promptTokenCount":10,"totalTokenCount":10}`;

const body = (candidate: string, usage: string): string =>
  `{"candidates":[${candidate}],"usageMetadata":${usage},"modelVersion":"${MODEL}","responseId":"${ID}"}`;

const candidateOf = (parts: readonly string[], { reason, message }: Ending): string => {
  const content = parts.length > 0 ? `{"parts":[${parts.join(",")}],"role":"model"}` : "{}";
  const told = message === undefined ? "" : `,"finishMessage":"${message}"`;
  return `{"content":${content}${reason === undefined ? "" : `,"finishReason":"${reason}"`}${told},"index":0}`;
};

/** The answer in one piece: parts in the provider's own spelling. */
export const wholeBody = (parts: readonly string[], ending: Ending = {}): string =>
  body(candidateOf(parts, { reason: "STOP", ...ending }), ending.usage ?? plainReport);

export const frame = (data: string): SentFrame => ({ event: "message", data });
export const chunk = (...parts: readonly string[]): SentFrame => frame(body(candidateOf(parts, {}), promptReport));
/** The last chunk, with parts of its own where there are some. */
export const ended = (ending: Ending = {}, ...parts: readonly string[]): SentFrame => frame(wholeBody(parts, ending));

export const plainUsage: Usage = { plain: 10, read: 0, written: {}, output: 8 };

const saying = (content: readonly Block[], changed: Partial<Omit<ModelResponse, "message">> = {}): ModelResponse => ({
  id: ID,
  model: MODEL,
  message: { role: "assistant", content },
  stop: "end",
  usage: plainUsage,
  ...changed,
});

const textAnswer: AnswerFixture = {
  frames: [
    chunk(`{"text":"H\\u00e9"}`),
    chunk(`{"text":"llo \\ud83d"}`),
    ended({}, `{ "text" : "\\ude00\\u0000 \\"q\\"" }`),
  ],
  whole: wholeBody([`{"text":"Héllo 😀\\u0000 \\"q\\""}`]),
  response: saying([{ type: "text", text: 'Héllo 😀\u0000 "q"' }]),
  resent: `{"text":"Héllo 😀\\u0000 \\"q\\""}`,
};

/** Spacing, key order, number and escape forms that no encoder of ours would write. */
const oddInput = `{ "path" : "src/\\u00e9.ts",\t "depth":1.0e+2 , "big":12345678901234567890,"b":1,"a":[ -0.0,1E3 ] }`;
const otherInput = `{"command":"ls  -l","timeout":0.50}`;

const calls = [
  `{"functionCall":{"name":"Read","args":${oddInput},"id":"xk3v"},"thoughtSignature":"CiQB\\u002bz8/=="}`,
  `{ "functionCall" : {"id":"p09q","name":"Bash","args":${otherInput}} }`,
  `{"functionCall":{"name":"Now","id":"m4n5"}}`,
] as const;

const toolAnswer: AnswerFixture = {
  frames: [chunk(`{"text":"Bo"}`), chunk(`{"text":"th."}`, calls[0]), chunk(calls[1], calls[2]), ended()],
  whole: wholeBody([`{"text":"Both."}`, ...calls]),
  response: saying(
    [
      { type: "text", text: "Both." },
      { type: "tool_use", id: "xk3v", name: "Read", input: oddInput, raw: calls[0] },
      { type: "tool_use", id: "p09q", name: "Bash", input: otherInput, raw: calls[1] },
      { type: "tool_use", id: "m4n5", name: "Now", input: "{}", raw: calls[2] },
    ],
    { stop: "tool-use" },
  ),
  resent: [`{"text":"Both."}`, ...calls].join(","),
};

/** The signature of an answer without calls stands on its last part, whose text may be empty. */
const signed = `{"text":"","thoughtSignature":"EjQKMgEM+/w=="}`;
const thoughtReport = `{"promptTokenCount":10,"candidatesTokenCount":8,"thoughtsTokenCount":22,"totalTokenCount":40}`;
const thinkingAnswer: AnswerFixture = {
  frames: [
    chunk(`{"text":"**First**\\n\\n","thought":true}`),
    chunk(`{"text":"this.","thought":true}`),
    chunk(`{"text":"O"}`),
    chunk(`{"text":"k."}`),
    ended({ usage: thoughtReport }, signed),
  ],
  whole: wholeBody([`{"thought": true,"text":"**First**\\n\\nthis."}`, `{"text":"Ok."}`, signed], {
    usage: thoughtReport,
  }),
  response: saying(
    [
      { type: "thinking", thinking: "**First**\n\nthis.", signature: "" },
      { type: "text", text: "Ok." },
      { type: "text", text: "", raw: signed },
    ],
    { usage: { plain: 10, read: 0, written: {}, output: 30, thinking: 22 } },
  ),
  resent: `{"text":"**First**\\n\\nthis.","thought":true},{"text":"Ok."},${signed}`,
};

const sealed = `{ "thought":true,"thoughtSignature":"AbC/+w==" }`;
const sealedAnswer: AnswerFixture = {
  frames: [chunk(sealed), ended({}, `{"text":"Ok."}`)],
  whole: wholeBody([sealed, `{"text":"Ok."}`]),
  response: saying([
    { type: "thinking", thinking: "", signature: "AbC/+w==", raw: sealed },
    { type: "text", text: "Ok." },
  ]),
  resent: `${sealed},{"text":"Ok."}`,
};

const code = `{"executableCode":{"language":"PYTHON","code":"print(1)\\u000a"}}`;
const ran = `{"codeExecutionResult":{"outcome":"OUTCOME_OK", "output":"1"}}`;
const drawn = `{"thoughtSignature":"Zz==","inlineData":{"mimeType":"image/png","data":"iVBO"}}`;
const ownAnswer: AnswerFixture = {
  frames: [chunk(code), chunk(ran, drawn), ended()],
  whole: wholeBody([code, ran, drawn]),
  response: saying([
    { type: "provider", kind: "executableCode", json: code },
    { type: "provider", kind: "codeExecutionResult", json: ran },
    { type: "provider", kind: "inlineData", json: drawn },
  ]),
  resent: [code, ran, drawn].join(","),
};

/** What was read is in the prompt's figure; what the provider's own tools added is not. */
const parts = `{"promptTokenCount":47650,"cachedContentTokenCount":46700,"toolUsePromptTokenCount":15,"candidatesTokenCount":40,"thoughtsTokenCount":22,"totalTokenCount":47727,"cacheTokensDetails":[{"modality":"TEXT","tokenCount":46700}]}`;
const partsUsage: Usage = { plain: 965, read: 46_700, written: {}, output: 62, thinking: 22 };

const filtered: Ending = { reason: "SAFETY", message: "Blocked here." };
const noOutput = `{"promptTokenCount":10,"totalTokenCount":10}`;
const cutOff: Ending = { reason: "MAX_TOKENS", usage: noOutput };
const blocked = `{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"},"usageMetadata":${noOutput},"modelVersion":"${MODEL}","responseId":"${ID}"}`;

export const answers: Conformance["answers"] = {
  text: textAnswer,
  "parallel tool calls": toolAnswer,
  thinking: thinkingAnswer,
  "redacted thinking": sealedAnswer,
  "the provider's own blocks": ownAnswer,
  citations: { absent: "sources stand beside the answer, not in its parts" },
  "usage reported in parts": {
    // Told again with every chunk, and complete only after the reason to stop.
    frames: [
      chunk(`{"text":"Ok."}`),
      ended({ usage: promptReport }),
      frame(`{"usageMetadata":${parts},"modelVersion":"${MODEL}","responseId":"${ID}"}`),
    ],
    whole: wholeBody([`{"text":"Ok."}`], { usage: parts }),
    response: saying([{ type: "text", text: "Ok." }], { usage: partsUsage }),
    resent: `{"text":"Ok."}`,
  },
  "usage of several rounds": { absent: "usage is told once, for all that was billed" },
  "a refusal": {
    frames: [chunk(`{"text":"I"}`), ended(filtered)],
    whole: wholeBody([`{"text":"I"}`], filtered),
    response: saying([{ type: "text", text: "I" }], { stop: "refusal", stopDetail: "SAFETY: Blocked here." }),
    resent: `{"text":"I"}`,
  },
  "a cache miss explained": { absent: "a miss is never explained" },
  "a cache miss not explained yet": { absent: "a miss is never explained" },
  "nothing at all": {
    frames: [ended(cutOff)],
    whole: wholeBody([], cutOff),
    response: saying([], { stop: "max-tokens", usage: { ...plainUsage, output: 0 } }),
    resent: "",
  },
};

const stopping = (ending: Ending, detail?: string): Conformance["stops"]["end"] => ({
  frames: [chunk(`{"text":"Ok."}`), ended(ending)],
  whole: wholeBody([`{"text":"Ok."}`], ending),
  ...(detail === undefined ? {} : { detail }),
});

export const stops: Conformance["stops"] = {
  end: stopping({}),
  "tool-use": { frames: [chunk(calls[2]), ended()], whole: wholeBody([calls[2]]) },
  "max-tokens": stopping({ reason: "MAX_TOKENS" }),
  "stop-sequence": { absent: "it stops at one as at any end" },
  pause: { absent: "a turn is never paused" },
  refusal: { frames: [frame(blocked)], whole: blocked, detail: "PROHIBITED_CONTENT" },
  "context-full": { absent: "a prompt too long is an error before the answer" },
  other: stopping({ reason: "MALFORMED_FUNCTION_CALL", message: "print(" }, "MALFORMED_FUNCTION_CALL: print("),
};
