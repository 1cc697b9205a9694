/** Does this model accept these settings?
 *  Invariant: differences between models are read from the acceptance rules, never from the name.
 *  Elsewhere: the rules (../../rules), types of the settings (validate.ts). */

import type { JsonObject } from "@prefork/wire";
import { isObject, listOf, objectOf, stringOf } from "../../body.ts";
import type { AcceptanceRules, ThinkingType } from "../../rules/index.ts";

const efforts = ["low", "medium", "high", "xhigh", "max"];

export const checkModelSettings = (body: JsonObject, accepts: AcceptanceRules): string | undefined =>
  checkThinking(body, accepts) ?? checkSampling(body, accepts) ?? checkToolChoice(body, accepts) ?? checkPrewarm(body);

const checkThinking = (body: JsonObject, accepts: AcceptanceRules): string | undefined => {
  const thinking = body.thinking;
  if (!isObject(thinking)) return undefined;
  const type = stringOf(thinking.type) as ThinkingType;
  if (!accepts.thinkingTypes.includes(type))
    return `thinking.type: \`${type}\` is not supported on this model; use ${accepts.thinkingTypes.map((name) => `\`${name}\``).join(" or ")}`;
  const effort = stringOf(objectOf(body.output_config).effort) || "high";
  const limit = accepts.disabledThinkingUpTo;
  if (type === "disabled" && limit !== undefined && efforts.indexOf(effort) > efforts.indexOf(limit))
    return `thinking.type: \`disabled\` is only supported up to effort \`${limit}\` on this model`;
  if (type !== "enabled") return undefined;
  const budget = thinking.budget_tokens;
  const limitTokens = body.max_tokens;
  if (!Number.isInteger(budget)) return "thinking.enabled.budget_tokens: Field required";
  if ((budget as number) < 1_024)
    return "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024";
  return typeof limitTokens === "number" && limitTokens > 0 && (budget as number) >= limitTokens
    ? "`max_tokens` must be greater than `thinking.budget_tokens`"
    : undefined;
};

const checkSampling = (body: JsonObject, accepts: AcceptanceRules): string | undefined => {
  if (accepts.samplingParameters) return undefined;
  const changed = [
    ...(typeof body.temperature === "number" && body.temperature !== 1 ? ["temperature"] : []),
    ...(typeof body.top_p === "number" && body.top_p !== 1 ? ["top_p"] : []),
    ...(typeof body.top_k === "number" ? ["top_k"] : []),
  ];
  return changed.length === 0
    ? undefined
    : `${changed[0]}: non-default sampling parameters are not supported on this model`;
};

const checkToolChoice = (body: JsonObject, accepts: AcceptanceRules): string | undefined => {
  const choice = body.tool_choice;
  if (!isObject(choice)) return undefined;
  const names = listOf(body.tools).map((tool) => stringOf(objectOf(tool).name));
  if (names.length === 0 && choice.type !== "none") return "tool_choice: may only be specified while providing tools";
  const forced = choice.type === "any" || choice.type === "tool";
  if (forced && !accepts.forcedToolChoice)
    return `tool_choice.type: \`${stringOf(choice.type)}\` is not supported on this model`;
  return choice.type === "tool" && !names.includes(stringOf(choice.name))
    ? `tool_choice: tool '${stringOf(choice.name)}' not found in provided tools`
    : undefined;
};

/** `max_tokens: 0` fills the cache without an answer, so it cannot be combined with anything that shapes an answer. */
const checkPrewarm = (body: JsonObject): string | undefined => {
  if (body.max_tokens !== 0) return undefined;
  const type = objectOf(body.tool_choice).type;
  if (body.stream === true) return "max_tokens: 0 is not supported with `stream: true`";
  if (objectOf(body.thinking).type === "enabled") return "max_tokens: 0 is not supported with `thinking.type: enabled`";
  if (isObject(objectOf(body.output_config).format) || isObject(body.output_format))
    return "max_tokens: 0 is not supported with `output_config.format`";
  return type === "any" || type === "tool"
    ? `max_tokens: 0 is not supported with \`tool_choice.type: ${type}\``
    : undefined;
};
