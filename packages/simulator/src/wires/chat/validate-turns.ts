/** Do the messages follow each other as the provider requires?
 *  Invariant: every call is answered by a tool message before anyone else speaks, and no tool message is without a
 *  call.
 *  Elsewhere: the form of each message (validate.ts). */

import type { JsonObject } from "@prefork/wire";
import { listOf, objectOf, stringOf } from "../../body.ts";
import { invalid, type Refusal } from "../../errors.ts";
import type { ModelRules } from "../../rules/index.ts";
import { first } from "../../shape.ts";

export const checkTurns = (body: JsonObject, rules: ModelRules): Refusal | undefined => {
  const messages = listOf(body.messages).map(objectOf);
  if (messages.length === 0)
    return invalid(
      "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array.",
      {
        param: "messages",
        code: "empty_array",
      },
    );
  return (
    first(messages, (message, at) => checkMessage(message, at, messages)) ??
    (rules.accepts.reasoningBack ? checkReasoning(body, messages) : undefined)
  );
};

const callIds = (message: JsonObject | undefined): readonly string[] =>
  listOf(message?.tool_calls).map((call) => stringOf(objectOf(call).id));

const checkMessage = (message: JsonObject, at: number, messages: readonly JsonObject[]): Refusal | undefined => {
  if (message.role === "tool") return checkResult(message, at, messages);
  if (message.role !== "assistant") return undefined;
  const calls = callIds(message);
  const hasContent = typeof message.content === "string" || listOf(message.content).length > 0;
  if (!hasContent && calls.length === 0 && typeof message.refusal !== "string")
    return invalid(
      `Invalid value for 'content': expected a string, got null. An assistant message needs content or tool_calls.`,
      { param: `messages[${at}].content` },
    );
  const answered = new Set(resultsAfter(at, messages));
  const open = calls.filter((id) => !answered.has(id));
  return open.length === 0
    ? undefined
    : invalid(
        `An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: ${open.join(", ")}`,
        { param: `messages[${at}].tool_calls` },
      );
};

/** The ids that tool messages answer, up to the next message of another role. */
const resultsAfter = (at: number, messages: readonly JsonObject[]): readonly string[] => {
  const end = messages.findIndex((message, index) => index > at && message.role !== "tool");
  return messages.slice(at + 1, end < 0 ? undefined : end).map((message) => stringOf(message.tool_call_id));
};

const checkResult = (message: JsonObject, at: number, messages: readonly JsonObject[]): Refusal | undefined => {
  const speaker = messages.findLastIndex((before, index) => index < at && before.role !== "tool");
  const id = stringOf(message.tool_call_id);
  if (callIds(messages[speaker]).length === 0)
    return invalid("messages with role 'tool' must be a response to a preceding message with 'tool_calls'.", {
      param: `messages[${at}].role`,
    });
  if (!callIds(messages[speaker]).includes(id))
    return invalid(`Invalid parameter: 'tool_call_id' of '${id}' not found in 'tool_calls' of previous message.`, {
      param: `messages[${at}].tool_call_id`,
    });
  const twice = messages.slice(speaker + 1, at).some((before) => before.tool_call_id === id);
  return twice
    ? invalid(`Invalid parameter: duplicate 'tool_call_id' of '${id}'.`, { param: `messages[${at}].tool_call_id` })
    : undefined;
};

/** In thinking mode the provider requires the reasoning before its calls to be sent back, even if it is empty. */
const checkReasoning = (body: JsonObject, messages: readonly JsonObject[]): Refusal | undefined =>
  objectOf(body.thinking).type !== "disabled" &&
  messages.some((message) => callIds(message).length > 0 && typeof message.reasoning_content !== "string")
    ? invalid("The `reasoning_content` in the thinking mode must be passed back to the API.")
    : undefined;
