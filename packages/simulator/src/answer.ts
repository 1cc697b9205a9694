/** What is an answer, before it is encoded for a wire format?
 *  Invariant: pure; blocks have the form of the Messages API; ids are derived from what is known, so two equal runs
 *  give equal ids.
 *  Elsewhere: how it looks in each format (wires/), writing it to a socket (serve-answer.ts), deciding it
 *  (script.ts). */

import { hash } from "node:crypto";
import type { Json, JsonObject, Usage } from "@prefork/wire";
import { countedBlock } from "./prompt/index.ts";
import type { AnswerBlock, SimAnswer } from "./script.ts";
import type { TokenRule } from "./tokens.ts";

export type SentBlock = JsonObject;

export type SimMessage = {
  readonly id: string;
  readonly model: string;
  readonly content: readonly SentBlock[];
  readonly stopReason: string;
  readonly stopSequence: string | null;
  readonly usage: Usage;
  readonly diagnostics: Json;
  /** Output tokens of each block. */
  readonly blockTokens: readonly number[];
  /** Tool inputs that are sent verbatim, by index of their block. */
  readonly rawInputs: ReadonlyMap<number, string>;
  /** On the simulator's clock. */
  readonly createdMs: number;
};

export type MessageTerms = {
  readonly sequence: number;
  readonly requestedModel: string;
  readonly promptUsage: Usage;
  readonly diagnostics: Json;
  readonly tokenRule: TokenRule;
  readonly sign: (thinking: string) => string;
  readonly messageId: string;
  /** The beginning of call ids. */
  readonly callId: string;
  readonly encodableBlocks: ReadonlySet<string>;
  readonly createdMs: number;
};

/** An id in the provider's form, derived from what is known: two equal runs give equal ids. */
export const stableId = (prefix: string, sequence: number, content: string): string =>
  `${prefix}_sim${sequence}_${hash("sha256", `${sequence} ${content}`).slice(0, 16)}`;

const sent = (block: AnswerBlock, index: number, terms: MessageTerms): SentBlock => {
  const { type } = block;
  if (
    !terms.encodableBlocks.has(type) &&
    !(terms.encodableBlocks.has("*_tool_result") && type.endsWith("_tool_result"))
  )
    throw new TypeError(`answer.content[${index}].type: ${type} cannot be said on this wire`);
  switch (type) {
    case "text":
      return { type: "text", text: block.text as string, citations: (block as { citations?: Json }).citations ?? null };
    case "thinking": {
      const { thinking, signature } = block as { thinking: string; signature?: string };
      return { type: "thinking", thinking, signature: signature ?? terms.sign(thinking) };
    }
    case "tool_use":
    case "server_tool_use": {
      const { name, input = {}, id } = block as { name: string; input?: JsonObject; id?: string };
      const prefix = type === "tool_use" ? terms.callId : "srvtoolu";
      const content = `${index} ${name} ${JSON.stringify(input)}`;
      return { type, id: id ?? stableId(prefix, terms.sequence, content), name, input, caller: { type: "direct" } };
    }
    default:
      return block as JsonObject;
  }
};

export const messageOf = (answer: SimAnswer, terms: MessageTerms): SimMessage => {
  const content = answer.content.map((block, index) => sent(block, index, terms));
  const tokens = content.map((block) => terms.tokenRule(countedBlock(block)));
  const thinking = content.reduce((sum, { type }, at) => sum + (type === "thinking" ? (tokens[at] ?? 0) : 0), 0);
  const output = answer.outputTokens ?? tokens.reduce((sum, count) => sum + count, 0);
  const calls = content.some(({ type }) => type === "tool_use");
  return {
    id: terms.messageId,
    model: answer.model ?? terms.requestedModel,
    content,
    stopReason: answer.stopReason ?? (calls ? "tool_use" : "end_turn"),
    stopSequence: answer.stopSequence ?? null,
    usage: { ...terms.promptUsage, output, thinking },
    diagnostics: terms.diagnostics,
    blockTokens: tokens,
    rawInputs: new Map(
      answer.content.flatMap((block, index) => {
        const raw = (block as { inputJson?: string }).inputJson;
        return raw === undefined ? [] : [[index, raw] as const];
      }),
    ),
    createdMs: terms.createdMs,
  };
};

/** A call's input as it is sent. */
export const inputText = (message: SimMessage, index: number): string =>
  message.rawInputs.get(index) ?? JSON.stringify(message.content[index]?.input ?? {});

const PIECE_LENGTH = 48;

/** The text that one event adds. Cut between code points, so that it never contains half a character. */
export function* piecesOf(text: string): Generator<string> {
  let start = 0;
  while (start < text.length) {
    let end = Math.min(start + PIECE_LENGTH, text.length);
    if (end < text.length && /[\uD800-\uDBFF]/.test(text[end - 1] ?? "")) end += 1;
    yield text.slice(start, end);
    start = end;
  }
}
