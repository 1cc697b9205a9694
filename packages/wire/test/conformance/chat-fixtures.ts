/** Chat Completions, answers and what is made by chance: how any endpoint that speaks it spells them, by hand.
 *  Invariant: what endpoints differ in is given by each of them, as literals.
 *  Elsewhere: what is done with them (protocol-suite.ts), OpenAI's own (chat.test.ts), the others (profiles.test.ts). */

import fc from "fast-check";
import type { Block, Head, Message, ModelResponse, Protocol, Usage } from "../../src/index.ts";
import { openaiFailures, openaiHeaders } from "./openai-failures.ts";
import type { AnswerFixture, Conformance } from "./protocol-suite.ts";
import { anyInput, anyText, cutInto } from "./said.ts";

type SentFrame = AnswerFixture["frames"][number];

/** One endpoint, as far as it differs from the others. */
export type ChatSubject = {
  readonly protocol: Protocol;
  readonly head: Head;
  readonly encoded: Conformance["encoded"];
  readonly outsideKey: Conformance["outsideKey"];
  /** A report of usage with reads and writes, and what it means. */
  readonly parts: { readonly report: string; readonly usage: Usage };
  /** Under which name it shows its reasoning, and under which it gets that back; absent: it does not. */
  readonly shown?: "reasoning_content" | "reasoning";
  readonly resent?: "reasoning_content" | "reasoning" | "reasoning_details";
};

const ID = "chatcmpl-1";
const plainReport = `{"prompt_tokens":10,"completion_tokens":8,"total_tokens":18}`;
const plainUsage: Usage = { plain: 10, read: 0, written: {}, output: 8 };

/** What an answer is made of before it is put into chunks or one piece. */
export const chatWords = (model: string) => {
  const frame = (data: string): SentFrame => ({ event: "message", data });
  const chunk = (delta: string, finish = "null", more = ""): SentFrame =>
    frame(
      `{"id":"${ID}","object":"chat.completion.chunk","created":1763000000,"model":"${model}","choices":[{"index":0,"delta":{${delta}},"logprobs":null,"finish_reason":${finish}}]${more}}`,
    );
  const reported = (usage = plainReport): SentFrame =>
    frame(
      `{"id":"${ID}","object":"chat.completion.chunk","created":1763000000,"model":"${model}","choices":[],"usage":${usage}}`,
    );
  const done = frame("[DONE]");
  return {
    frame,
    chunk,
    reported,
    done,
    opening: chunk(`"role":"assistant","content":""`),
    ending: (finish: string, usage?: string): readonly SentFrame[] => [chunk("", `"${finish}"`), reported(usage), done],
    whole: (message: string, finish: string, usage = plainReport): string =>
      `{"id":"${ID}","object":"chat.completion","created":1763000000,"model":"${model}","choices":[{"index":0,"message":{"role":"assistant",${message}},"logprobs":null,"finish_reason":${finish}}],"usage":${usage}}`,
  };
};

// --- answers ---------------------------------------------------------------------------------------------------------

/** Spacing, key order, number and escape forms that no encoder of ours would write. */
const oddInput = `{ "path" : "src/\\u00e9.ts",\n\t"depth":1.0e+2 , "big":12345678901234567890,"b":1,"a":[ -0.0,1E3 ] }`;
const otherInput = `{"command":"ls  -l","timeout":0.50}`;

const called = (id: string, name: string, input: string): string =>
  `{"id":"${id}","type":"function","function":{"name":"${name}","arguments":${JSON.stringify(input)}}}`;
const callStart = (index: number, id: string, name: string): string =>
  `"tool_calls":[{"index":${index},"id":"${id}","type":"function","function":{"name":"${name}","arguments":""}}]`;
const callGrowth = (index: number, piece: string): string =>
  `"tool_calls":[{"index":${index},"function":{"arguments":${JSON.stringify(piece)}}}]`;
const cut = (json: string, size: number): readonly string[] => json.match(new RegExp(`[^]{1,${size}}`, "gu")) ?? [];

const thinkingOf = (said: string, resent: ChatSubject["resent"]): Block => ({
  type: "thinking",
  thinking: said,
  signature: "",
  ...(resent === "reasoning_details" ? { raw: detailsJson(said) } : {}),
});

const detailsJson = (said: string): string =>
  `[{"type":"reasoning.text","text":${JSON.stringify(said)},"format":"unknown","index":0}]`;

/** Reasoning as it is shown, with the details beside it where the endpoint wants those back. */
const shownJson = (
  said: string,
  { shown = "reasoning_content", resent }: Pick<ChatSubject, "shown" | "resent">,
): string =>
  `"${shown}":${JSON.stringify(said)}${resent === "reasoning_details" ? `,"reasoning_details":${detailsJson(said)}` : ""}`;

const answersOf = ({ head: { model }, parts, shown, resent }: ChatSubject): Conformance["answers"] => {
  const { chunk, opening, ending, whole, reported, done } = chatWords(model);
  const saying = (content: readonly Block[], changed: Partial<ModelResponse> = {}): ModelResponse => ({
    id: ID,
    model,
    message: { role: "assistant", content },
    stop: "end",
    usage: plainUsage,
    ...changed,
  });
  const [reads, runs] = [cut(oddInput, 7), cut(otherInput, 5)];
  const calls = [
    called("call_1", "Read", oddInput),
    called("call_2", "Bash", otherInput),
    called("call_3", "Now", "{}"),
  ];
  const reasoned = `{"prompt_tokens":10,"completion_tokens":30,"completion_tokens_details":{"reasoning_tokens":22},"total_tokens":40}`;
  const backwards = resent === "reasoning_details" ? detailsJson("First this.") : `"First this."`;
  const thinkingAnswer: AnswerFixture = {
    frames: [
      opening,
      chunk(shownJson("First ", { ...(shown ? { shown } : {}), ...(resent ? { resent } : {}) })),
      chunk(shownJson("this.", { ...(shown ? { shown } : {}), ...(resent ? { resent } : {}) })),
      chunk(`"content":"Ok."`),
      ...ending("stop", reasoned),
    ],
    whole: whole(
      `${shownJson("First this.", { ...(shown ? { shown } : {}), ...(resent ? { resent } : {}) })},"content":"Ok."`,
      `"stop"`,
      reasoned,
    ),
    response: saying([thinkingOf("First this.", resent), { type: "text", text: "Ok." }], {
      usage: { plain: 10, read: 0, written: {}, output: 30, thinking: 22 },
    }),
    resent: `{"role":"assistant",${resent ? `"${resent}":${backwards},` : ""}"content":"Ok."`,
  };
  return {
    text: {
      frames: [
        opening,
        chunk(`"content":"Hé"`),
        chunk(`"content":"llo \\ud83d"`),
        chunk(`"content":"\\ude00\\u0000 \\"q\\""`),
        ...ending("stop"),
      ],
      whole: whole(`"content":"Hé\\u006clo 😀\\u0000 \\"q\\"","refusal":null,"annotations":[]`, `"stop"`),
      response: saying([{ type: "text", text: 'Héllo 😀\u0000 "q"' }]),
      resent: `{"role":"assistant","content":"Héllo 😀\\u0000 \\"q\\""`,
    },
    "parallel tool calls": {
      frames: [
        opening,
        chunk(`"content":"Both."`),
        chunk(callStart(0, "call_1", "Read")),
        // Calls may arrive side by side.
        chunk(callStart(1, "call_2", "Bash")),
        ...reads.flatMap((read, at) => [
          chunk(callGrowth(0, read)),
          ...(runs[at] === undefined ? [] : [chunk(callGrowth(1, runs[at]))]),
        ]),
        chunk(callStart(2, "call_3", "Now")),
        ...ending("tool_calls"),
      ],
      whole: whole(`"content":"Both.","tool_calls":[${calls.join(", ")}]`, `"tool_calls"`),
      response: saying(
        [
          { type: "text", text: "Both." },
          { type: "tool_use", id: "call_1", name: "Read", input: oddInput },
          { type: "tool_use", id: "call_2", name: "Bash", input: otherInput },
          { type: "tool_use", id: "call_3", name: "Now", input: "{}" },
        ],
        { stop: "tool-use" },
      ),
      resent: `"content":"Both.","tool_calls":[${calls.join(",")}`,
    },
    thinking: shown ? thinkingAnswer : { absent: "reasoning is not shown in this format" },
    "redacted thinking": { absent: "reasoning is shown, or not sent at all" },
    "the provider's own blocks": { absent: "all tools of this format are called by us" },
    citations: { absent: "they are in no field that goes back" },
    "usage reported in parts": {
      frames: [opening, chunk("", `"stop"`), reported(parts.report), done],
      whole: whole(`"content":null`, `"stop"`, parts.report),
      response: saying([], { usage: parts.usage }),
      resent: "",
    },
    "usage of several rounds": { absent: "usage is told once, for all that was billed" },
    "a refusal": {
      frames: [opening, chunk(`"refusal":"Not "`), chunk(`"refusal":"this."`), ...ending("stop")],
      whole: whole(`"content":null,"refusal":"Not this."`, `"stop"`),
      response: saying([{ type: "text", text: "Not this." }], { stop: "refusal", stopDetail: "Not this." }),
      resent: `{"role":"assistant","content":"Not this."`,
    },
    "a cache miss explained": { absent: "only Responses has diagnostics" },
    "a cache miss not explained yet": { absent: "only Responses has diagnostics" },
    "nothing at all": {
      frames: [opening, ...ending("length")],
      whole: whole(`"content":""`, `"length"`),
      response: saying([], { stop: "max-tokens" }),
      resent: "",
    },
  };
};

const stopsOf = (model: string): Conformance["stops"] => {
  const { opening, ending, whole } = chatWords(model);
  const stopping = (finish: string, detail?: string): Conformance["stops"]["end"] => ({
    frames: [opening, ...ending(finish)],
    whole: whole(`"content":null`, `"${finish}"`),
    ...(detail === undefined ? {} : { detail }),
  });
  return {
    end: stopping("stop"),
    "tool-use": stopping("tool_calls"),
    "max-tokens": stopping("length"),
    "stop-sequence": { absent: "it is not told from an end" },
    pause: { absent: "a turn is never paused" },
    refusal: stopping("content_filter", "content_filter"),
    "context-full": stopping("model_context_window_exceeded"),
    other: stopping("daydreaming", "daydreaming"),
  };
};

const malformedOf = (model: string): Conformance["malformed"] => {
  const { chunk, frame, opening, done, reported } = chatWords(model);
  return {
    "a chunk that is not JSON": [opening, frame(`{"id":"chatcm`)],
    "a chunk that is no object": [opening, frame(`["choices"]`)],
    "a call that has no name": [opening, chunk(`"tool_calls":[{"index":0,"id":"call_1","function":{}}]`)],
    "arguments of a call that never began": [opening, chunk(callGrowth(1, "{"))],
    "an end without a stop reason": [opening, chunk(`"content":"x"`), reported(), done],
    "an end and nothing else": [done],
  };
};

// --- by chance -------------------------------------------------------------------------------------------------------

/** In the one order this format has: reasoning, text, calls. */
const anyContentOf = ({ shown, resent }: ChatSubject): fc.Arbitrary<readonly Block[]> => {
  const anyThinking = anyText.map((said) => thinkingOf(said, resent));
  const anyCall = fc
    .tuple(fc.uuid(), fc.constantFrom("Read", "Bash"), anyInput)
    .map(([id, name, input]) => ({ type: "tool_use" as const, id, name, input }));
  return fc
    .tuple(
      fc.array(anyThinking, { maxLength: shown ? 1 : 0 }),
      fc.array(
        anyText.map((text) => ({ type: "text" as const, text })),
        { maxLength: 1 },
      ),
      fc.array(anyCall, { maxLength: 3 }),
    )
    .map(([thinking, said, calls]): readonly Block[] => [...thinking, ...said, ...calls])
    .filter((content) => content.length > 0);
};

const spellOf = (subject: ChatSubject): Conformance["spell"] => {
  const { chunk, opening, ending, whole } = chatWords(subject.head.model);
  const member = (block: Block): readonly string[] => {
    if (block.type === "thinking") return [shownJson(block.thinking, subject)];
    return block.type === "text" ? [`"content":${JSON.stringify(block.text)}`] : [];
  };
  const calls = (content: Message["content"]) => content.flatMap((block) => (block.type === "tool_use" ? [block] : []));
  const finish = (content: Message["content"]): string => (calls(content).length > 0 ? "tool_calls" : "stop");
  return {
    whole: ({ content }) => {
      const listed = calls(content).map(({ id, name, input }) => called(id, name, input));
      const members = [
        ...content.flatMap(member),
        ...(listed.length > 0 ? [`"tool_calls":[${listed.join(",")}]`] : []),
      ];
      return whole(members.join(","), `"${finish(content)}"`);
    },
    frames: ({ content }, size) => [
      opening,
      ...content.flatMap((block) => {
        if (block.type === "thinking")
          return cutInto(block.thinking, size).map((piece) => chunk(shownJson(piece, subject)));
        if (block.type === "text")
          return cutInto(block.text, size).map((piece) => chunk(`"content":${JSON.stringify(piece)}`));
        return [];
      }),
      ...calls(content).flatMap(({ id, name, input }, index) => [
        chunk(callStart(index, id, name)),
        ...cutInto(input, size).map((piece) => chunk(callGrowth(index, piece))),
      ]),
      ...ending(finish(content)),
    ],
  };
};

export const chatConformance = (subject: ChatSubject): Conformance => {
  const { protocol, head, encoded, outsideKey } = subject;
  const { whole } = chatWords(head.model);
  return {
    protocol,
    head,
    answers: answersOf(subject),
    stops: stopsOf(head.model),
    malformed: malformedOf(head.model),
    malformedWhole: {
      "half of its JSON": whole(`"content":""`, `"stop"`).slice(0, 60),
      "no stop reason": whole(`"content":"x"`, "null"),
      "something that is no object": `"ok"`,
    },
    encoded,
    outsideKey,
    failures: openaiFailures,
    headers: openaiHeaders,
    spell: spellOf(subject),
    anyContent: anyContentOf(subject),
  };
};
