/** What is known of a request beside its body: when it was sent, what its provider counted.
 *  Invariant: parts of a usage never overlap, whoever's words they were in; what is not stated stays absent.
 *  Elsewhere: what it changes (footing.ts). */

import { InputError, type Json, type JsonObject, type Usage } from "@prefork/wire";
import { isObject } from "@prefork/wire/internal";

export type SentFacts = {
  /** As a provider states it will do too. */
  readonly usage?: Usage;
  /** When it was sent, in milliseconds of one clock for all requests. */
  readonly startedAt?: number;
  /** When its answer began, and when it was complete: from one or the other on others can read what it wrote. Never, if
   *  it broke off. */
  readonly firstEventAt?: number;
  readonly endedAt?: number;
  /** Where the body does not name it: as the address said that it was sent to. */
  readonly model?: string;
  /** Compared only where both requests state them. */
  readonly betas?: readonly string[];
};

/** What a caller states, whoever's words its usage is in. */
export const statedFacts = (sent: SentFacts, name: string): SentFacts => {
  if (sent.usage === undefined) return sent;
  const usage = readUsage(sent.usage as unknown as Json);
  if (usage) return { ...sent, usage };
  throw new InputError(
    `${name}: its usage must be { plain, read, written, output } or a usage as its provider stated it`,
  );
};

const numberIn = (object: JsonObject, key: string): number | undefined => {
  const value = object[key];
  return typeof value === "number" && Number.isFinite(value) && value >= 0 ? value : undefined;
};

const objectIn = (object: JsonObject, key: string): JsonObject => {
  const value = object[key];
  return isObject(value) ? value : {};
};

/** A usage as Anthropic, OpenAI (both formats), DeepSeek, Gemini or this package states it; undefined if it is none of
 *  these. */
export const readUsage = (value: Json | undefined): Usage | undefined => {
  if (!isObject(value)) return undefined;
  return ownUsage(value) ?? anthropicUsage(value) ?? openaiUsage(value) ?? geminiUsage(value);
};

const ownUsage = (value: JsonObject): Usage | undefined => {
  const [plain, read] = [numberIn(value, "plain"), numberIn(value, "read")];
  if (plain === undefined || read === undefined) return undefined;
  const stated = objectIn(value, "written");
  const written: Partial<Record<keyof Usage["written"], number>> = {};
  for (const ttl of ["5m", "30m", "1h", "12h"] as const) {
    const tokens = numberIn(stated, ttl);
    if (tokens !== undefined) written[ttl] = tokens;
  }
  return { plain, read, written, output: numberIn(value, "output") ?? 0 };
};

const anthropicUsage = (value: JsonObject): Usage | undefined => {
  const [read, wrote] = [numberIn(value, "cache_read_input_tokens"), numberIn(value, "cache_creation_input_tokens")];
  if (read === undefined && wrote === undefined) return undefined;
  const long = numberIn(objectIn(value, "cache_creation"), "ephemeral_1h_input_tokens") ?? 0;
  return {
    plain: numberIn(value, "input_tokens") ?? 0,
    read: read ?? 0,
    written: { "5m": Math.max(0, (wrote ?? 0) - long), ...(long > 0 ? { "1h": long } : {}) },
    output: numberIn(value, "output_tokens") ?? 0,
  };
};

/** Here the input is the total, and what was read and written is said beside it. */
const openaiUsage = (value: JsonObject): Usage | undefined => {
  const total = numberIn(value, "input_tokens") ?? numberIn(value, "prompt_tokens");
  if (total === undefined) return undefined;
  const details = { ...objectIn(value, "input_tokens_details"), ...objectIn(value, "prompt_tokens_details") };
  const read = numberIn(details, "cached_tokens") ?? numberIn(value, "prompt_cache_hit_tokens") ?? 0;
  const wrote = numberIn(details, "cache_write_tokens") ?? numberIn(details, "cache_creation_input_tokens") ?? 0;
  return {
    plain: Math.max(0, total - read - wrote),
    read,
    written: wrote > 0 ? { "30m": wrote } : {},
    output: numberIn(value, "output_tokens") ?? numberIn(value, "completion_tokens") ?? 0,
  };
};

/** Here too; what the provider's own tools brought in comes on top of it. */
const geminiUsage = (value: JsonObject): Usage | undefined => {
  const said = numberIn(value, "promptTokenCount");
  if (said === undefined) return undefined;
  const total = said + (numberIn(value, "toolUsePromptTokenCount") ?? 0);
  const read = Math.min(total, numberIn(value, "cachedContentTokenCount") ?? 0);
  const output = (numberIn(value, "candidatesTokenCount") ?? 0) + (numberIn(value, "thoughtsTokenCount") ?? 0);
  return { plain: total - read, read, written: {}, output };
};
