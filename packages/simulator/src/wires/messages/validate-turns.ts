/** Do the turns follow each other as the provider requires?
 *  Invariant: consecutive turns of one role count as one, as they do in the prompt; every call is answered in the next
 *  turn.
 *  Elsewhere: the form of each block (validate-content.ts). */

import type { JsonObject } from "@prefork/wire";
import { listOf, objectOf, type ReadMessage, readMessages, stringOf } from "../../body.ts";
import type { AcceptanceRules } from "../../rules/index.ts";
import { first, firstRepeated } from "../../shape.ts";

type Turn = { readonly role: string; readonly at: number; readonly blocks: readonly JsonObject[] };

const placeOf = (at: number): string => `messages.${at}`;

export const checkTurns = (body: JsonObject, accepts: AcceptanceRules): string | undefined => {
  const messages = readMessages(body);
  if (messages.length === 0) return "messages: at least one message is required";
  if (messages.length > 100_000) return "messages: at most 100000 messages are allowed";
  return (
    first(messages, (message, at) => checkMessage({ message, at, messages, body })) ??
    checkSystemMessages(messages, accepts) ??
    checkPairing(mergedTurns(messages)) ??
    checkEnd(messages, accepts)
  );
};

type Place = {
  readonly message: ReadMessage;
  readonly at: number;
  readonly messages: readonly ReadMessage[];
  readonly body: JsonObject;
};

const checkMessage = ({ message, at, messages, body }: Place): string | undefined => {
  const { role, blocks } = message;
  if (role !== "user" && role !== "assistant" && role !== "system")
    return `messages: Unexpected role "${role}". Allowed roles are "user" or "assistant"`;
  if (at === 0 && role === "assistant") return 'messages: first message must use the "user" role';
  const isLastAssistant = at === messages.length - 1 && role === "assistant";
  const carriesSettings = objectOf(listOf(body.messages)[at]).output_config !== undefined;
  const empty = blocks.length === 0 || blocks.every(({ block, bare }) => bare && block.text === "");
  if (empty && !isLastAssistant && !(role === "system" && carriesSettings))
    return `${placeOf(at)}: all messages must have non-empty content except for the optional final assistant message`;
  const emptyText = blocks.some(({ block, bare }) => !bare && block.type === "text" && block.text === "");
  if (emptyText) return "messages: text content blocks must be non-empty";
  return first(blocks, ({ block }, index) =>
    misplacedBlock(role, stringOf(block.type), `${placeOf(at)}.content.${index}`),
  );
};

const assistantOnly = new Set(["tool_use", "thinking", "redacted_thinking", "server_tool_use"]);

const misplacedBlock = (role: string, type: string, place: string): string | undefined => {
  if (role === "system" && type !== "text" && type !== "tool_removal" && type !== "tool_addition")
    return `${place}: system messages may only contain text`;
  if (role === "user" && assistantOnly.has(type))
    return `${place}: \`${type}\` blocks can only be in \`assistant\` messages`;
  if (role === "assistant" && type === "tool_result")
    return `${place}: \`tool_result\` blocks can only be in \`user\` messages`;
  return undefined;
};

const checkSystemMessages = (messages: readonly ReadMessage[], accepts: AcceptanceRules): string | undefined =>
  first(messages, (message, at) => {
    if (message.role !== "system") return undefined;
    if (accepts.systemMessages === "unsupported-role") return "role 'system' is not supported on this model";
    if (accepts.systemMessages === "unexpected-role")
      return 'messages: Unexpected role "system". The Messages API accepts a top-level `system` parameter, not "system" as an input message role.';
    if (at === 0)
      return "messages.0: use the top-level 'system' parameter for the initial system prompt; a system message must follow a user message";
    const before = messages[at - 1];
    const after = messages[at + 1];
    if (before?.role === "system") return `${placeOf(at)}: two system messages must not follow each other`;
    if (before?.role === "assistant" && !endsInServerToolUse(before))
      return `${placeOf(at)}: a system message must follow a user message or an assistant message that ends in a server tool use`;
    if (after !== undefined && after.role !== "assistant")
      return `${placeOf(at)}: a system message must be last or be followed by an assistant message`;
    return undefined;
  });

const endsInServerToolUse = (message: ReadMessage): boolean => message.blocks.at(-1)?.block.type === "server_tool_use";

const mergedTurns = (messages: readonly ReadMessage[]): readonly Turn[] => {
  const turns: (Turn & { readonly blocks: JsonObject[] })[] = [];
  for (const [at, { role, blocks }] of messages.entries()) {
    if (turns.at(-1)?.role !== role) turns.push({ role, at, blocks: [] });
    for (const { block } of blocks) turns.at(-1)?.blocks.push(block);
  }
  return turns;
};

const idsOf = (turn: Turn | undefined, type: string, field: string): readonly string[] =>
  (turn?.blocks ?? []).filter((block) => block.type === type).map((block) => stringOf(block[field]));

const checkPairing = (turns: readonly Turn[]): string | undefined => {
  const before = new Set<string>();
  return first(turns, (turn, index) => {
    const previous = turns[index - 1];
    const called = idsOf(turn, "tool_use", "id");
    const answered = new Set(idsOf(turns[index + 1], "tool_result", "tool_use_id"));
    if (firstRepeated(called) !== undefined || called.some((id) => before.has(id)))
      return `${placeOf(turn.at)}: \`tool_use\` ids must be unique`;
    for (const id of called) before.add(id);
    const open = called.filter((id) => !answered.has(id));
    if (open.length > 0)
      return `${placeOf(turn.at)}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${open.join(", ")}. Each \`tool_use\` block must have a corresponding \`tool_result\` block in the next message.`;
    return turn.role === "user" ? checkResults(turn, previous) : undefined;
  });
};

const checkResults = (turn: Turn, previous: Turn | undefined): string | undefined => {
  const calls = new Set(idsOf(previous?.role === "assistant" ? previous : undefined, "tool_use", "id"));
  const results = idsOf(turn, "tool_result", "tool_use_id");
  const stray = results.find((id) => !calls.has(id));
  if (stray !== undefined)
    return `${placeOf(turn.at)}: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${stray}. Each \`tool_result\` block must have a corresponding \`tool_use\` block in the previous message.`;
  const twice = firstRepeated(results);
  if (twice !== undefined)
    return `${placeOf(turn.at)}: each tool_use must have a single result. Found multiple \`tool_result\` blocks with id: ${twice}`;
  const lastResult = turn.blocks.findLastIndex((block) => block.type === "tool_result");
  const firstOther = turn.blocks.findIndex((block) => block.type !== "tool_result");
  if (lastResult >= 0 && firstOther >= 0 && firstOther < lastResult)
    return `${placeOf(turn.at)}: \`tool_result\` blocks must come first in a message that answers tool calls; found \`${stringOf(turn.blocks[firstOther]?.type)}\` before them`;
  if (previous !== undefined && results.length > 0 && firstOther >= 0 && hasOpenServerCall(previous))
    return `${placeOf(turn.at)}: while a \`server_tool_use\` is unresolved the message may only contain \`tool_result\` blocks`;
  return undefined;
};

const hasOpenServerCall = (turn: Turn): boolean => {
  const answered = new Set(turn.blocks.map((block) => stringOf(block.tool_use_id)));
  return idsOf(turn, "server_tool_use", "id").some((id) => !answered.has(id));
};

const checkEnd = (messages: readonly ReadMessage[], accepts: AcceptanceRules): string | undefined => {
  const last = messages.at(-1);
  if (last?.role !== "assistant") return undefined;
  // A paused turn is continued by sending it back unchanged.
  if (last.blocks.some(({ block }) => block.type === "server_tool_use")) return undefined;
  if (!accepts.prefill)
    return "This model does not support assistant message prefill. The conversation must end with a user message.";
  const text = last.blocks.at(-1)?.block;
  return text?.type === "text" && stringOf(text.text).trimEnd() !== stringOf(text.text)
    ? "messages: final assistant content cannot end with trailing whitespace"
    : undefined;
};
