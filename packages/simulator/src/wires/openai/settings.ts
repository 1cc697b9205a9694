/** What do OpenAI's formats say about caching, and about other things that change a prompt?
 *  Invariant: what a model does not support is refused here by its rules, never by its name. An automatic entry ends
 *  only after a user message, a group of results, or the opening instructions.
 *  Elsewhere: where the fields are (../chat, ../responses), what becomes of them (../../cache). */

import type { Json, JsonObject, Ttl } from "@prefork/wire";
import { isObject, objectOf, type ReadBlock, type ReadMessage, stringOf } from "../../body.ts";
import type { CachingSettings } from "../../cache/index.ts";
import { invalid, type Refusal } from "../../errors.ts";
import { mergeTurns } from "../../neutral.ts";
import type { ReadPrompt } from "../../prompt/index.ts";
import type { CacheRules, ModelRules } from "../../rules/index.ts";
import { unsupported } from "./complaints.ts";

/** The lifetime of markers that name none. */
export const requestTtl = (body: JsonObject, rules: CacheRules): Ttl =>
  (objectOf(body.prompt_cache_options).ttl as Ttl | undefined) ?? rules.defaultTtl;

/** The marker on a content part: OpenAI's own, or the one that others took from Anthropic. */
export const markerOn = (part: JsonObject, body: JsonObject, rules: CacheRules): { readonly marker?: Ttl } => {
  const { prompt_cache_breakpoint: breakpoint, cache_control: control } = part;
  const isOwn = rules.endings !== "none";
  const mark = isOwn ? breakpoint : control;
  if (rules.markers === "ignored" || !isObject(mark)) return {};
  return { marker: isOwn ? ((mark.ttl as Ttl | undefined) ?? requestTtl(body, rules)) : rules.defaultTtl };
};

export const cachingOf = (body: JsonObject, rules: CacheRules, markers: number): CachingSettings => {
  const options = objectOf(body.prompt_cache_options);
  const cacheScope = rules.apart === "none" ? "" : stringOf(body[rules.apart]);
  const slot = body.id_slot;
  return {
    markers,
    mode: options.mode === "explicit" ? "explicit" : "implicit",
    ttl: requestTtl(body, rules),
    ...(typeof body.prompt_cache_retention === "string" ? { retention: body.prompt_cache_retention } : {}),
    ...(cacheScope === "" ? {} : { cacheScope }),
    ...(body.cache_prompt === false || (body.prompt_logprobs ?? null) !== null ? { off: true } : {}),
    ...(typeof slot === "number" && slot >= 0 ? { slot } : {}),
  };
};

const LONGEST_KEY = 64;

/** Refuses caching options that this model does not have. */
export const checkCaching = (body: JsonObject, { accepts, cache }: ModelRules): Refusal | undefined => {
  if (accepts.unknownFields === "ignored") return undefined;
  const { prompt_cache_key: key, prompt_cache_options: options, prompt_cache_retention: retention } = body;
  if (typeof key === "string" && key.length > LONGEST_KEY)
    return invalid(
      `Invalid 'prompt_cache_key': string too long. Expected a string with maximum length ${LONGEST_KEY}, but got a string with length ${key.length} instead.`,
      { param: "prompt_cache_key", code: "string_above_max_length" },
    );
  if (isObject(options) && !accepts.cacheOptions) return unsupported("prompt_cache_options");
  const names = cache.automatic === "none" ? ["24h"] : Object.keys(cache.automatic.retention);
  if (typeof retention === "string" && !names.includes(retention))
    return invalid(
      `Invalid value: '${retention}'. Supported values are: ${names.map((name) => `'${name}'`).join(", ")}.`,
      {
        param: "prompt_cache_retention",
        code: "invalid_value",
      },
    );
  return undefined;
};

/** A breakpoint on a model that does not support it. */
export const checkBreakpoint = (part: JsonObject, place: string, { accepts }: ModelRules): Refusal | undefined =>
  isObject(part.prompt_cache_breakpoint) && !accepts.cacheOptions && accepts.unknownFields === "refused"
    ? unsupported(`${place}.prompt_cache_breakpoint`)
    : undefined;

export const checkEffort = (effort: Json | undefined, param: string, { accepts }: ModelRules): Refusal | undefined =>
  effort === "none" && !accepts.effortNone
    ? invalid(`Unsupported value: '${param}' does not support 'none' with this model.`, {
        param,
        code: "unsupported_value",
      })
    : undefined;

// --- turns -----------------------------------------------------------------------------------------------------------

/** The opening instructions, and the turns after them with their ends. */
export const partTurns = (
  turns: readonly ReadMessage[],
  instructions: readonly ReadBlock[] = [],
): Pick<ReadPrompt, "system" | "messages"> => {
  const opening = turns.findIndex(({ role }) => role !== "system");
  const head = turns.slice(0, opening < 0 ? turns.length : opening);
  const rest = turns.slice(head.length);
  return {
    system: withEnding([...instructions, ...head.flatMap(({ blocks }) => blocks)]),
    messages: mergeTurns(
      rest.map((turn, index) =>
        isEnding(turn, rest[index + 1]) ? { ...turn, blocks: withEnding(turn.blocks) } : turn,
      ),
    ),
  };
};

const isEnding = (turn: ReadMessage, next: ReadMessage | undefined): boolean =>
  turn.role === "user" && !(isResult(turn) && next !== undefined && isResult(next));

const isResult = ({ blocks }: ReadMessage): boolean => blocks.at(-1)?.block.type === "tool_result";

const withEnding = (blocks: readonly ReadBlock[]): readonly ReadBlock[] =>
  blocks.map((read, index) => (index === blocks.length - 1 ? { ...read, ending: true } : read));

export const markersIn = ({ system, messages }: ReadPrompt): number =>
  [...system, ...messages.flatMap(({ blocks }) => blocks)].filter(({ marker }) => marker !== undefined).length;
