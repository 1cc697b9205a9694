/** What Gemini is told beside the conversation: which model, how to think, which tools it may call, in which form to
 *  answer.
 *  Invariant: equal settings give equal text, in parent and fork alike.
 *  Elsewhere: where each field stands (gemini-encode.ts). */

import { InputError } from "../errors.ts";
import { type Field, isObject } from "../json.ts";
import type { Json, JsonObject, KeySettings } from "../request.ts";

// --- models ----------------------------------------------------------------------------------------------------------

/** As it stands in an address: with its collection before it, and nothing in it that could lead elsewhere. */
export const resourceOf = (model: string): string => {
  const name = model.includes("/") ? model : `models/${model}`;
  if (!/^\w+\/\w[\w.-]*$/.test(name))
    throw new InputError(
      `"${model}" is no name of a Gemini model: letters, digits, dots and dashes, as in gemini-3.8-flash`,
    );
  return name;
};

/** 2.5 → 205. A name without a number is one that moves with the newest. */
const generation = (model: string): number => {
  const [, major, minor = "0"] = /(?:^|\/)gemini-(\d+)(?:\.(\d+))?(?![\w.])/.exec(model) ?? [];
  return major === undefined ? Number.POSITIVE_INFINITY : Number(major) * 100 + Number(minor);
};

/** From the third generation on thinking has levels, calls are signed and have ids, and results can hold pictures. */
export const isSigned = (model: string): boolean => generation(model) >= 300;

const thinks = (model: string): boolean => generation(model) >= 205;

// --- thinking --------------------------------------------------------------------------------------------------------

/** Words of other providers for more than the most, and for less than the least that every model takes. */
const LEVELS: ReadonlyMap<string, string> = new Map([
  ["none", "LOW"],
  ["xhigh", "HIGH"],
  ["max", "HIGH"],
]);

/** It cannot be switched off here, only be kept low. */
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

/** The larger model refuses none at all. */
const LEAST_OF_PRO = 128;

/** Thinking that is asked for is also shown, as far as this provider shows any. */
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

/** A form that has no name here is not asked for. */
const formatFields = (format: JsonObject | undefined): readonly Field[] => {
  if (format?.type !== "json_schema" && format?.type !== "json_object") return [];
  return [
    ["responseMimeType", "application/json"],
    ["responseJsonSchema", schemaIn(format)],
  ];
};

/** What can change how a prompt is rendered, or may: nobody says what stands in this provider's key. */
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
