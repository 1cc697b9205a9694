/** Is a thinking block sent back as it was made, and, where the model demands it, behind the same conversation?
 *  Invariant: only signatures the simulator made are judged; foreign ones pass, since nobody here can check them.
 *  Elsewhere: which models bind thinking (rules.ts), leaving out earlier thinking (render.ts). */

import { hash } from "node:crypto";
import type { Json, JsonObject } from "../request.ts";
import { listOf, objectOf, readMessages, readSystem, stringOf } from "./body.ts";
import { canonical, fieldsOf } from "./render-block.ts";

const OWN = "sim1";

const digest = (text: string): string => hash("sha256", text).slice(0, 20);

/** Signs thinking made in answer to this request. */
export const signerFor = (body: JsonObject, bound: boolean): ((thinking: string) => string) => {
  const conversation = bound ? conversationBefore(body, listOf(body.messages).length) : "free";
  return (thinking) => `${OWN}.${conversation}.${digest(thinking)}`;
};

/** What stands before a message, without thinking: removing thinking from the front is allowed. */
const conversationBefore = (body: JsonObject, messageIndex: number): string => {
  const tools = listOf(body.tools).filter((tool) => objectOf(tool).defer_loading !== true);
  const system = readSystem(body).map(({ block }) => canonical(block));
  const turns = readMessages(body)
    .slice(0, messageIndex)
    .flatMap(({ role, blocks }) =>
      blocks
        .filter(({ block }) => !stringOf(block.type).endsWith("thinking"))
        .map(({ block }) => [
          role,
          stringOf(block.type),
          ...fieldsOf(block).map(({ name, value }) => `${name}=${value}`),
        ]),
    );
  return digest(JSON.stringify([canonical(tools as Json), system, turns]));
};

export const checkThinkingBlocks = (body: JsonObject, bound: boolean): string | undefined => {
  for (const [index, message] of readMessages(body).entries()) {
    const own = message.blocks
      .map(({ block }, at) => ({ block, at, signature: stringOf(block.signature).split(".") }))
      .filter(({ block, signature }) => block.type === "thinking" && signature[0] === OWN);
    const changed = own.find(({ block, signature }) => signature[2] !== digest(stringOf(block.thinking)));
    if (changed !== undefined)
      return `messages.${index}.content.${changed.at}: Invalid \`signature\` in \`thinking\` block`;
    if (!bound || own.length === 0) continue;
    const conversation = conversationBefore(body, index);
    const foreign = own.find(({ signature }) => signature[1] !== "free" && signature[1] !== conversation);
    if (foreign !== undefined)
      return `messages.${index}.content.${foreign.at}: Invalid signature in thinking block. The block is bound to a different conversation.`;
  }
  return undefined;
};

/** Thinking that came with calls, until the calls are answered: it must come back with them. */
export class IssuedThinking {
  readonly #byCall = new Map<string, readonly string[]>();

  remember(content: readonly JsonObject[]): void {
    const seals = content.map(sealOf).filter((seal) => seal !== "");
    if (seals.length === 0) return;
    for (const block of content) if (block.type === "tool_use") this.#byCall.set(stringOf(block.id), seals);
  }

  /** Judges the turn whose calls the last user turn answers. */
  check(body: JsonObject, earlierThinking: "keep-all" | "last-turn"): string | undefined {
    if (objectOf(body.thinking).type === "disabled") return undefined;
    const messages = readMessages(body);
    const index = messages.findLastIndex(({ role }) => role === "assistant");
    const answers = messages.slice(index + 1).flatMap(({ blocks }) => blocks);
    const strips = earlierThinking === "last-turn" && answers.some(({ block }) => block.type !== "tool_result");
    if (index < 0 || answers.length === 0 || strips) return undefined;
    const turn = (messages[index]?.blocks ?? []).map(({ block }) => block);
    const present = new Set(turn.map(sealOf));
    const robbed = turn.find((block) => this.#byCall.get(stringOf(block.id))?.some((seal) => !present.has(seal)));
    return robbed === undefined
      ? undefined
      : `messages.${index}: \`thinking\` blocks of the current tool-use turn must be sent back unmodified; missing beside \`tool_use\` ${stringOf(robbed.id)}`;
  }
}

const sealOf = (block: JsonObject): string =>
  block.type === "thinking"
    ? stringOf(block.signature)
    : block.type === "redacted_thinking"
      ? stringOf(block.data)
      : "";
