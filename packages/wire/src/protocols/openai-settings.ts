/** What both OpenAI formats share apart from messages: cache keys, formats, tool choices, and what a model supports.
 *  Invariant: equal settings give equal text, in parent and fork alike.
 *  Elsewhere: where each field goes (openai-responses-encode.ts, openai-chat-encode.ts). */

import { hash } from "node:crypto";
import type { Json, JsonObject, KeySettings, MediaSource, Ttl } from "../request.ts";

const LONGEST_KEY = 64;

/** A longer key would be refused, and if it were cut, two keys could become equal. */
export const cacheKeyText = (key: string | undefined): string | undefined =>
  key === undefined || key.length <= LONGEST_KEY ? key : hash("sha256", key, "hex");

// --- models ----------------------------------------------------------------------------------------------------------

/** 5.6 → 506; undefined for models of other vendors. */
export const gptVersion = (model: string): number | undefined => {
  const [, major, minor = "0"] = /(?:^|\/)gpt-(\d+)(?:\.(\d+))?(?![\w.])/.exec(model) ?? [];
  return major === undefined ? undefined : Number(major) * 100 + Number(minor);
};

/** From GPT-5.6 on, entries are written at breakpoints; before that, wherever the provider chooses. */
export const hasBreakpoints = (model: string): boolean => (gptVersion(model) ?? 0) >= 506;

/** Models that return their reasoning encrypted; others refuse a request for it. */
export const hasSealedReasoning = (model: string): boolean =>
  /(?:^|\/)o\d/.test(model) || ((gptVersion(model) ?? 0) >= 500 && !model.includes("-chat"));

/** Lifetimes here are 30m (the default) and 12h: the shortest that lasts as long as was asked for. */
export const breakpointJson = (ttl: Ttl): string =>
  ttl === "5m" || ttl === "30m"
    ? `,"prompt_cache_breakpoint":{"mode":"explicit"}`
    : `,"prompt_cache_breakpoint":{"mode":"explicit","ttl":"12h"}`;

// --- formats and choices ---------------------------------------------------------------------------------------------

/** A schema needs a name here; it gets one if its author gave none. */
export const formatJson = (format: JsonObject | undefined): JsonObject | undefined => {
  if (format?.type !== "json_schema" || format.json_schema !== undefined) return format;
  const { type, name = "answer", ...rest } = format;
  return { type, name, ...rest };
};

/** `named` encodes the choice of one tool, which differs between the two formats. */
export const toolChoiceJson = ({ toolChoice }: KeySettings, named: (name: string) => JsonObject): Json | undefined => {
  if (toolChoice === undefined) return undefined;
  if (toolChoice.type === "tool") return named(toolChoice.name);
  return toolChoice.type === "any" ? "required" : toolChoice.type;
};

// --- media -----------------------------------------------------------------------------------------------------------

/** A URL that a provider can load from, or the content itself as a data URL. */
export const mediaUrl = (source: MediaSource): string | undefined => {
  if (source.kind === "url") return source.url;
  return source.kind === "base64" ? `data:${source.mediaType};base64,${source.data}` : undefined;
};
