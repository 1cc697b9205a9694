/** Would the provider accept this request, and if not, with which error?
 *  Invariant: the first fault in the body's own order is reported, in one line that names the location.
 *  Elsewhere: blocks (validate-content.ts), turns (validate-turns.ts), settings by model (validate-model.ts). */

import type { JsonObject } from "@prefork/wire";
import { dotted, isObject, listOf, objectOf, readMessages, readSystem, stringOf } from "../../body.ts";
import type { AcceptanceRules } from "../../rules/index.ts";
import { type Checker, first, firstRepeated, type Shape } from "../../shape.ts";
import { BINDING_BETA } from "./bound-thinking.ts";
import {
  isAnything,
  isBoolean,
  isDictionary,
  isIntegerFrom,
  isListOf,
  isNumber,
  isOneOf,
  isShallow,
  isShape,
  isString,
} from "./complaints.ts";
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
    block_binding: isShape({ optional: { prefix_mismatch_behavior: isOneOf("error", "drop_block") } }),
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

export type ValidationTerms = {
  readonly accepts: AcceptanceRules;
  readonly betas: readonly string[];
  readonly target: "message" | "count";
};

export const checkRequest = (body: JsonObject, { accepts, betas, target }: ValidationTerms): string | undefined =>
  isShallow(body, "") ??
  (target === "message" ? isMessageRequest : isCountRequest)(knownFields(body, accepts), "") ??
  checkBetaFields(body, betas) ??
  checkTools(body) ??
  checkMarkedText(body) ??
  checkTurns(body, accepts) ??
  checkModelSettings(body, accepts);

/** Some endpoints that speak this format ignore unknown fields. */
const knownFields = (body: JsonObject, { unknownFields }: AcceptanceRules): JsonObject => {
  if (unknownFields === "refused") return body;
  const known = { ...messageShape.required, ...messageShape.optional };
  return Object.fromEntries(Object.entries(body).filter(([name]) => Object.hasOwn(known, name)));
};

const checkBetaFields = (body: JsonObject, betas: readonly string[]): string | undefined =>
  isObject(objectOf(body.thinking).block_binding) && !betas.includes(BINDING_BETA)
    ? `thinking.block_binding: Extra inputs are not permitted without the beta ${BINDING_BETA}`
    : undefined;

const checkTools = (body: JsonObject): string | undefined => {
  const names = listOf(body.tools).map((tool) => stringOf(objectOf(tool).name));
  return firstRepeated(names.filter((name) => name !== "")) === undefined
    ? undefined
    : "tools: Tool names must be unique.";
};

/** An empty text block has nothing to cache, so the provider refuses a marker on it. */
const checkMarkedText = (body: JsonObject): string | undefined =>
  first([...readSystem(body), ...readMessages(body).flatMap((message) => message.blocks)], ({ block, path }) =>
    block.type === "text" && block.text === "" && isObject(block.cache_control)
      ? `${dotted(path)}: cache_control cannot be set for empty text blocks`
      : undefined,
  ) ??
  first(readSystem(body), ({ block, bare }) =>
    !bare && block.text === "" ? "system: text content blocks must be non-empty" : undefined,
  );
