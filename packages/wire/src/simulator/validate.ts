/** Would the provider accept this request, and if not, with which error?
 *  Invariant: the first fault in the body's own order is reported, in one line that names the place.
 *  Elsewhere: blocks (validate-content.ts), turns (validate-turns.ts), settings by model (validate-model.ts). */

import type { JsonObject } from "../request.ts";
import { isObject, listOf, objectOf, readMessages, readSystem, stringOf } from "./body.ts";
import type { AcceptanceRules } from "./rules.ts";
import type { Checker, Shape } from "./shape.ts";
import {
  first,
  isAnything,
  isBoolean,
  isDictionary,
  isIntegerFrom,
  isListOf,
  isNumber,
  isOneOf,
  isShape,
  isString,
} from "./shape.ts";
import { isCacheControl, isContent, isSystem, isTool } from "./validate-content.ts";
import { checkModelSettings } from "./validate-model.ts";
import { checkTurns } from "./validate-turns.ts";

const isMessage: Checker = isShape({
  required: { role: isString, content: isContent },
  optional: { output_config: isDictionary, clear_at: isString },
});

const isToolChoice: Checker = (value, place) => {
  const type = isObject(value) ? value.type : undefined;
  const parallel = { disable_parallel_tool_use: isBoolean };
  if (type === "tool")
    return isShape({ required: { type: isString, name: isString }, optional: parallel })(value, place);
  return isShape({ required: { type: isOneOf("auto", "any", "tool", "none") }, optional: parallel })(value, place);
};

const isThinkingConfig: Checker = isShape({
  required: { type: isOneOf("enabled", "disabled", "adaptive", "between_tools") },
  optional: {
    budget_tokens: isIntegerFrom(0),
    display: isOneOf("summarized", "omitted"),
    block_binding: isDictionary,
  },
});

const isOutputConfig: Checker = isShape({
  optional: {
    effort: isOneOf("low", "medium", "high", "xhigh", "max"),
    format: isDictionary,
    task_budget: isDictionary,
  },
});

const prompt: Shape = {
  required: { model: isString, messages: isListOf(isMessage) },
  optional: {
    cache_control: isCacheControl,
    context_management: isDictionary,
    mcp_servers: isListOf(isDictionary),
    output_config: isOutputConfig,
    output_format: isDictionary,
    speed: isOneOf("standard", "fast"),
    system: isSystem,
    thinking: isThinkingConfig,
    tool_choice: isToolChoice,
    tools: isListOf(isTool),
    user_profile_id: isString,
    workspace_id: isString,
  },
};

const messageShape: Shape = {
  required: { model: isString, max_tokens: isIntegerFrom(0), messages: isListOf(isMessage) },
  optional: {
    ...prompt.optional,
    compaction: isDictionary,
    container: isAnything,
    diagnostics: isShape({ optional: { previous_message_id: isString } }),
    fallbacks: isAnything,
    inference_geo: isString,
    metadata: isShape({ optional: { user_id: isString } }),
    service_tier: isOneOf("auto", "standard_only"),
    stop_sequences: isListOf(isString),
    stream: isBoolean,
    temperature: isNumber,
    thread: isDictionary,
    top_k: isIntegerFrom(0),
    top_p: isNumber,
  },
};

const isMessageRequest = isShape(messageShape);
const isCountRequest = isShape(prompt);

export type ValidationTarget = "message" | "count";

export const checkRequest = (
  body: JsonObject,
  accepts: AcceptanceRules,
  target: ValidationTarget = "message",
): string | undefined =>
  (target === "message" ? isMessageRequest : isCountRequest)(body, "") ??
  checkTools(body) ??
  checkMarkedText(body) ??
  checkTurns(body, accepts) ??
  checkModelSettings(body, accepts);

const checkTools = (body: JsonObject): string | undefined => {
  const names = listOf(body.tools).map((tool) => stringOf(objectOf(tool).name));
  return names.some((name, index) => name !== "" && names.indexOf(name) !== index)
    ? "tools: Tool names must be unique."
    : undefined;
};

/** An empty text block has nothing to cache, and the provider refuses to pretend otherwise. */
const checkMarkedText = (body: JsonObject): string | undefined =>
  first([...readSystem(body), ...readMessages(body).flatMap((message) => message.blocks)], ({ block, path }) =>
    block.type === "text" && block.text === "" && isObject(block.cache_control)
      ? `${path.replaceAll("[", ".").replaceAll("]", "")}: cache_control cannot be set for empty text blocks`
      : undefined,
  ) ??
  first(readSystem(body), ({ block, bare }) =>
    !bare && block.text === "" ? "system: text content blocks must be non-empty" : undefined,
  );
