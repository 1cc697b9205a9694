/** What does the simulated model answer?
 *  Invariant: an answer is a function of the request alone; ids are filled in later and never random.
 *  Elsewhere: how an answer becomes events (answer.ts), loading a script from a file (load-script.ts). */

import type { Json, JsonObject } from "@prefork/wire";
import { listOf, objectOf, readMessages, readResultContent, stringOf } from "./body.ts";
import type { WireName } from "./rules/index.ts";

/** A block of a message or of the system text; other members are passed through unchanged. */
export type SimBlock = JsonObject & {
  readonly type: string;
  readonly text?: string;
  /** For a call. */
  readonly id?: string;
  readonly name?: string;
  readonly input?: JsonObject;
  /** For a result. */
  readonly tool_use_id?: string;
};

export type SimMessage = JsonObject & {
  readonly role: "user" | "assistant" | "system";
  readonly content: string | readonly SimBlock[];
};

/** A body of the Messages API; other parameters are passed through unchanged. */
export type SimBody = JsonObject & {
  readonly model: string;
  readonly max_tokens?: number; // always present on the Messages API
  readonly messages: readonly SimMessage[];
  readonly system?: string | readonly SimBlock[];
  readonly tools?: readonly (JsonObject & { readonly name: string })[];
};

export type SimRequest = {
  /** The request after the provider has accepted it, in the form of the Messages API whatever the wire format, so that
   *  one script works in every format. On the Messages API it is the parsed body. */
  readonly body: SimBody;
  /** Lower-case names, without credentials. */
  readonly headers: Readonly<Record<string, string>>;
  readonly model: string;
  readonly wire?: WireName; // default: messages
  /** The parsed body, if the wire format is not the Messages API. */
  readonly sent?: JsonObject;
};

export type AnswerBlock =
  | { readonly type: "text"; readonly text: string; readonly citations?: readonly JsonObject[] }
  /** Without a signature the simulator makes one that it can check later. */
  | { readonly type: "thinking"; readonly thinking: string; readonly signature?: string }
  | { readonly type: "redacted_thinking"; readonly data: string }
  | {
      readonly type: "tool_use" | "server_tool_use";
      readonly name: string;
      /** Required without `inputJson`. A whole answer contains it, and it is what is counted. Default: {}. */
      readonly input?: JsonObject;
      readonly id?: string;
      /** Streamed verbatim instead of `input`: odd spacing, unusual number forms, broken JSON. */
      readonly inputJson?: string;
    }
  /** A server tool's result, in the provider's own form. */
  | { readonly type: `${string}_tool_result`; readonly [field: string]: Json };

export type StopReason =
  | "end_turn"
  | "max_tokens"
  | "stop_sequence"
  | "tool_use"
  | "pause_turn"
  | "refusal"
  | "model_context_window_exceeded";

export type SimAnswer = {
  readonly content: readonly AnswerBlock[];
  readonly stopReason?: StopReason; // default: tool_use if a tool is called, else end_turn
  readonly stopSequence?: string;
  readonly outputTokens?: number; // default: counted by the token rule
  readonly model?: string; // default: the model that was asked for
  /** Content waits for this after the first event, to keep a stream open as long as a test needs. */
  readonly hold?: Promise<unknown>;
};

/** The first event waits for the promise, so a script also decides when an entry becomes readable. */
export type SimScript = (request: SimRequest) => SimAnswer | Promise<SimAnswer>;

export const say = (text: string): SimAnswer => ({ content: [{ type: "text", text }] });

export type ToolCall = {
  readonly name: string;
  readonly input?: JsonObject;
  readonly id?: string;
  readonly inputJson?: string;
};

/** Calls the tools in parallel, after some text if any is given. */
export const callTools = (calls: readonly ToolCall[], text?: string): SimAnswer => ({
  content: [
    ...(text === undefined ? [] : [{ type: "text" as const, text }]),
    ...calls.map((call) => ({ type: "tool_use" as const, ...call, input: call.input ?? {} })),
  ],
});

/** The same answer with thinking before it. */
export const think = (thinking: string, answer: SimAnswer): SimAnswer => ({
  ...answer,
  content: [{ type: "thinking", thinking }, ...answer.content],
});

export const defaultScript: SimScript = ({ model }) => say(`This is the Prefork simulator answering as ${model}.`);

/** Answers with the last text the user sent. */
export const echo: SimScript = (request) => say(lastUserText(request) || "(no text)");

export const lastUserText = (request: SimRequest): string => {
  const user = readMessages(request.body).findLast(({ role }) => role === "user");
  return stringOf(user?.blocks.findLast(({ block }) => block.type === "text")?.block.text);
};

export type SeenToolResult = { readonly toolUseId: string; readonly text: string; readonly isError: boolean };

/** The results in the last message; empty if the model is not inside a tool loop. */
export const toolResults = (request: SimRequest): readonly SeenToolResult[] =>
  (readMessages(request.body).at(-1)?.blocks ?? [])
    .filter(({ block }) => block.type === "tool_result")
    .map(({ block }) => ({
      toolUseId: stringOf(block.tool_use_id),
      text: readResultContent(block)
        .map((part) => stringOf(part.block.text))
        .join(""),
      isError: block.is_error === true,
    }));

export const toolNames = (request: SimRequest): readonly string[] =>
  listOf(request.body.tools).map((tool) => stringOf(objectOf(tool).name));
