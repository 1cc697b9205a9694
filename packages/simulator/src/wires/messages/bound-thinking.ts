/** May a thinking block be sent back: unchanged, to the model that made it, after the same conversation?
 *  Invariant: only signatures that the simulator made are checked; foreign ones pass, because they cannot be checked
 *  here.
 *  Elsewhere: which models bind thinking to a conversation (../../rules), dropping blocks from the prompt
 *  (../../prompt). */

import { hash } from "node:crypto";
import type { Json, JsonObject } from "@prefork/wire";
import { dotted, listOf, objectOf, type ReadMessage, readMessages, readSystem, stringOf } from "../../body.ts";
import { canonical, fieldsOf, isThinking } from "../../prompt/index.ts";

/** The beta with which a client chooses what happens to thinking after an edited conversation, and gets a report of
 *  it. */
export const BINDING_BETA = "thinking-binding-controls-2026-08-01";

const OWN = "sim1";
const UNBOUND = "free";

const digest = (text: string): string => hash("sha256", text).slice(0, 20);

type Signature = { readonly model: string; readonly conversation: string; readonly thinking: string };

const signatureText = ({ model, conversation, thinking }: Signature): string =>
  [OWN, digest(model), conversation, digest(thinking)].join(".");

/** Signs thinking that answers this request. */
export const signerFor = (body: JsonObject, bound: boolean): ((thinking: string) => string) => {
  const conversation = bound ? (conversationsBefore(body, readMessages(body)).at(-1) ?? UNBOUND) : UNBOUND;
  return (thinking) => signatureText({ model: stringOf(body.model), conversation, thinking });
};

/** The hash of everything before each message, and before the next one, without thinking: removing thinking is
 *  allowed. */
const conversationsBefore = (body: JsonObject, messages: readonly ReadMessage[]): readonly string[] => {
  const tools = listOf(body.tools).filter((tool) => objectOf(tool).defer_loading !== true);
  const system = readSystem(body).map(({ block }) => canonical(block));
  let chain = digest(JSON.stringify([canonical(tools as Json), system]));
  const before = [chain];
  for (const { role, blocks } of messages) {
    for (const { block } of blocks) {
      if (isThinking(block)) continue;
      const fields = fieldsOf({ block }).map(({ name, value }) => [name, value]);
      chain = digest(JSON.stringify([chain, role, stringOf(block.type), fields]));
    }
    before.push(chain);
  }
  return before;
};

export type DroppedThinking = {
  readonly path: string;
  readonly reason: "model_binding_mismatch" | "prefix_binding_mismatch";
};

/** Thinking to drop from the prompt, or one line that says why the request is refused. */
export const checkThinking = (body: JsonObject, bound: boolean): readonly DroppedThinking[] | string => {
  const messages = readMessages(body);
  const own = messages.some(({ blocks }) => blocks.some(({ block }) => partsOf(block) !== undefined));
  if (!own) return [];
  const drops = objectOf(objectOf(body.thinking).block_binding).prefix_mismatch_behavior === "drop_block";
  const conversations = bound ? conversationsBefore(body, messages) : [];
  const dropped: DroppedThinking[] = [];
  for (const [index, { blocks }] of messages.entries()) {
    let edited = false;
    for (const { block, path } of blocks) {
      // Thinking that follows directly was built on what was dropped, and is dropped too.
      edited &&= isThinking(block);
      const [model, conversation, thinking] = partsOf(block) ?? [];
      if (thinking !== undefined && thinking !== digest(stringOf(block.thinking)))
        return `${dotted(path)}: Invalid \`signature\` in \`thinking\` block`;
      if (model !== undefined && model !== digest(stringOf(body.model))) {
        dropped.push({ path, reason: "model_binding_mismatch" });
        continue;
      }
      edited ||= bound && conversation !== undefined && ![UNBOUND, conversations[index]].includes(conversation);
      if (edited && !drops)
        return `${dotted(path)}: Invalid signature in thinking block. The block is bound to a different conversation.`;
      if (edited) dropped.push({ path, reason: "prefix_binding_mismatch" });
    }
  }
  return dropped;
};

/** Model, conversation and thinking as this simulator signed them. */
const partsOf = (block: JsonObject): readonly string[] | undefined => {
  const [maker, ...parts] = block.type === "thinking" ? stringOf(block.signature).split(".") : [];
  return maker === OWN ? parts : undefined;
};

/** Thinking that came with calls must be sent back with them, until the calls are answered. */
export class IssuedThinking {
  readonly #byCall = new Map<string, readonly string[]>();

  remember(content: readonly JsonObject[]): void {
    const seals = content.map(sealOf).filter((seal) => seal !== "");
    if (seals.length === 0) return;
    for (const block of content) if (block.type === "tool_use") this.#byCall.set(stringOf(block.id), seals);
  }

  /** Checks the turn whose calls the last user turn answers. */
  check(body: JsonObject, earlierThinking: "keep-all" | "last-turn"): string | undefined {
    if (objectOf(body.thinking).type === "disabled") return undefined;
    const messages = readMessages(body);
    const index = messages.findLastIndex(({ role }) => role === "assistant");
    const answers = messages.slice(index + 1).flatMap(({ blocks }) => blocks);
    const strips = earlierThinking === "last-turn" && answers.some(({ block }) => block.type !== "tool_result");
    if (index < 0 || answers.length === 0 || strips) return undefined;
    const turn = (messages[index]?.blocks ?? []).map(({ block }) => block);
    const present = new Set(turn.map(sealOf));
    const stripped = turn.find((block) => this.#byCall.get(stringOf(block.id))?.some((seal) => !present.has(seal)));
    return stripped === undefined
      ? undefined
      : `messages.${index}: \`thinking\` blocks of the current tool-use turn must be sent back unmodified; missing beside \`tool_use\` ${stringOf(stripped.id)}`;
  }
}

const sealOf = (block: JsonObject): string =>
  block.type === "thinking"
    ? stringOf(block.signature)
    : block.type === "redacted_thinking"
      ? stringOf(block.data)
      : "";
