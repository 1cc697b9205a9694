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
