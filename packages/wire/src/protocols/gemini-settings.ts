/** Gemini's settings next to the conversation: the model, thinking, which tools it may call, the form of the answer.
 *  Invariant: equal settings give equal text, in parent and fork alike.
 *  Elsewhere: where each field goes (gemini-encode.ts). */

import { InputError } from "../errors.ts";
import { type Field, isObject } from "../json.ts";
import type { Json, JsonObject, KeySettings } from "../request.ts";

// --- models ----------------------------------------------------------------------------------------------------------

/** The model as part of an address: with its collection, and without anything that could lead elsewhere. */
export const resourceOf = (model: string): string => {
  const name = model.includes("/") ? model : `models/${model}`;
  if (!/^\w+\/\w[\w.-]*$/.test(name))
    throw new InputError(
      `"${model}" is not a Gemini model name: use letters, digits, dots and dashes, as in gemini-3.8-flash`,
    );
  return name;
};

/** 2.5 → 205. A name without a number is an alias of the newest model. */
const generation = (model: string): number => {
  const [, major, minor = "0"] = /(?:^|\/)gemini-(\d+)(?:\.(\d+))?(?![\w.])/.exec(model) ?? [];
  return major === undefined ? Number.POSITIVE_INFINITY : Number(major) * 100 + Number(minor);
};

/** From the third generation on, thinking has levels, calls are signed and have ids, and results can contain
 *  pictures. */
export const isSigned = (model: string): boolean => generation(model) >= 300;

const thinks = (model: string): boolean => generation(model) >= 205;

// --- thinking --------------------------------------------------------------------------------------------------------

/** Other providers' words for more than the maximum, and for less than the minimum that every model accepts. */
const LEVELS: ReadonlyMap<string, string> = new Map([
  ["none", "LOW"],
  ["xhigh", "HIGH"],
  ["max", "HIGH"],
]);

/** Thinking cannot be switched off here, only kept low. */
const levelOf = ({ thinking, effort }: KeySettings): string | undefined => {
  if (thinking?.type === "disabled") return "LOW";
  return effort === undefined ? undefined : (LEVELS.get(effort) ?? effort.toUpperCase());
};

/** -1 leaves it to the model. */
const budgetOf = ({ thinking }: KeySettings, model: string): number | undefined => {
  if (thinking === undefined) return undefined;
  if (thinking.type === "disabled") return model.includes("-pro") ? LEAST_OF_PRO : 0;
  return thinking.type === "enabled" ? thinking.budgetTokens : -1;
};

/** The larger model does not accept zero. */
const LEAST_OF_PRO = 128;

/** If thinking is asked for, it is also shown, as far as this provider shows it. */
const thinkingJson = (settings: KeySettings, model: string): JsonObject | undefined => {
  if (!thinks(model)) return undefined;
  const { thinking } = settings;
  const [level, budget] = isSigned(model) ? [levelOf(settings)] : [undefined, budgetOf(settings, model)];
  const config = {
    ...(thinking !== undefined && thinking.type !== "disabled" ? { includeThoughts: true } : {}),
    ...(level === undefined ? {} : { thinkingLevel: level }),
    ...(budget === undefined ? {} : { thinkingBudget: budget }),
  };
  return Object.keys(config).length > 0 ? config : undefined;
};

// --- formats and choices ---------------------------------------------------------------------------------------------

const schemaIn = (format: JsonObject): Json | undefined =>
  format.schema ?? (isObject(format.json_schema) ? format.json_schema.schema : undefined);

/** A format that Gemini has no name for is not requested. */
const formatFields = (format: JsonObject | undefined): readonly Field[] => {
  if (format?.type !== "json_schema" && format?.type !== "json_object") return [];
  return [
    ["responseMimeType", "application/json"],
    ["responseJsonSchema", schemaIn(format)],
  ];
};

/** What changes the rendered prompt, or may: this provider does not publish its cache key. */
export const renderFields = (settings: KeySettings, model: string): readonly Field[] => [
  ["thinkingConfig", thinkingJson(settings, model)],
  ...formatFields(settings.outputFormat),
];

export const samplingFields = ({ temperature, topP, topK, stopSequences }: KeySettings): readonly Field[] => [
  ["temperature", temperature],
  ["topP", topP],
  ["topK", topK],
  ["stopSequences", stopSequences],
];

export const toolConfigJson = ({ toolChoice }: KeySettings): JsonObject | undefined => {
  if (toolChoice === undefined) return undefined;
  const config =
    toolChoice.type === "tool"
      ? { mode: "ANY", allowedFunctionNames: [toolChoice.name] }
      : { mode: toolChoice.type.toUpperCase() };
  return { functionCallingConfig: config };
};
