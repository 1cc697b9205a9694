/** What does a provider report of a request's tokens on Chat Completions?
 *  Invariant: the prompt figure is a total, with reads and writes inside it; where they stand is in the rules.
 *  Elsewhere: the rules (../../rules). */

import type { Json, JsonObject, Usage } from "@prefork/wire";
import type { ReportRules } from "../../rules/index.ts";

export type UsageTerms = {
  readonly reports: ReportRules;
  /** The client wrote markers. */
  readonly marked: boolean;
};

export const usageBody = (usage: Usage, { reports, marked }: UsageTerms): JsonObject => {
  const written = Object.values(usage.written).reduce((total, tokens) => total + tokens, 0);
  const prompt = usage.plain + usage.read + written;
  const parts: Readonly<Record<string, Json | undefined>> = {
    read: usage.read,
    written,
    missed: prompt - usage.read,
    marked: marked ? "ephemeral" : undefined,
  };
  const base: JsonObject = {
    prompt_tokens: prompt,
    completion_tokens: usage.output,
    total_tokens: prompt + usage.output,
  };
  const details = reports.usage.reduce((body, [path, part]) => placed(body, path.split("."), parts[part]), base);
  return { ...details, completion_tokens_details: { reasoning_tokens: usage.thinking ?? 0 } };
};

const placed = (body: JsonObject, [name = "", ...below]: readonly string[], value: Json | undefined): JsonObject => {
  if (value === undefined) return body;
  return { ...body, [name]: below.length === 0 ? value : placed((body[name] as JsonObject) ?? {}, below, value) };
};

/** What was found, what was computed, what was generated. */
export const timings = (usage: Usage): JsonObject => ({
  cache_n: usage.read,
  prompt_n: usage.plain,
  predicted_n: usage.output,
});
