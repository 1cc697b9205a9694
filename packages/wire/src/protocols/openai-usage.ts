/** What OpenAI and those who speak like it report of a request's tokens, in parts that never overlap.
 *  Invariant: their prompt figure is a total; whatever they report, plain + read + written is that total and no part is
 *  below zero.
 *  Elsewhere: which endpoint says it in which words (profiles.ts). */

import type { JsonObject, Ttl } from "../request.ts";
import type { Usage } from "../response.ts";
import { asObject, asTokens, trusted } from "./reading.ts";

/** Names from the outside in; the first place that has a figure counts. */
export type Places = readonly (readonly string[])[];

/** Where an endpoint says what. */
export type UsageWords = {
  readonly total: Places;
  readonly read: Places;
  /** What was written, by the lifetime that was paid for. */
  readonly written: readonly (readonly [Ttl, Places])[];
  readonly output: Places;
  readonly thinking: Places;
};

const figureAt = (reported: JsonObject, [key = "", ...below]: readonly string[]): number | undefined =>
  below.length === 0 ? asTokens(reported[key]) : figureAt(asObject(reported[key]), below);

const figure = (reported: JsonObject, places: Places): number | undefined =>
  places.map((place) => figureAt(reported, place)).find((found) => found !== undefined);

export const readTotals = (reported: JsonObject, words: UsageWords): Usage => {
  const total = figure(reported, words.total) ?? 0;
  const read = Math.min(total, figure(reported, words.read) ?? 0);
  const written: Partial<Record<Ttl, number>> = {};
  let left = total - read;
  for (const [ttl, places] of words.written) {
    // A later lifetime may report the sum of all: what earlier ones have told of it is not counted again.
    const before = total - read - left;
    const tokens = Math.min(left, Math.max(0, (figure(reported, places) ?? 0) - before));
    if (tokens > 0) written[ttl] = tokens;
    left -= tokens;
  }
  const thinking = figure(reported, words.thinking);
  const output = figure(reported, words.output) ?? 0;
  const usage = { plain: left, read, written, output, ...(thinking === undefined ? {} : { thinking }) };
  return trusted(usage, reported);
};

export const responsesWords: UsageWords = {
  total: [["input_tokens"]],
  read: [["input_tokens_details", "cached_tokens"]],
  written: [
    ["12h", [["input_tokens_details", "cache_write_tokens_details", "ttl_12h_tokens"]]],
    ["30m", [["input_tokens_details", "cache_write_tokens"]]],
  ],
  output: [["output_tokens"]],
  thinking: [["output_tokens_details", "reasoning_tokens"]],
};

export const chatWords: UsageWords = {
  total: [["prompt_tokens"]],
  read: [["prompt_tokens_details", "cached_tokens"]],
  written: [["30m", [["prompt_tokens_details", "cache_write_tokens"]]]],
  output: [["completion_tokens"]],
  thinking: [["completion_tokens_details", "reasoning_tokens"]],
};
