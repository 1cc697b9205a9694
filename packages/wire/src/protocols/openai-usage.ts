/** How OpenAI and compatible endpoints report a request's tokens, in parts that never overlap.
 *  Invariant: their prompt figure is a total; whatever they report, plain + read + written is that total and no part is
 *  below zero.
 *  Elsewhere: which endpoint reports in which fields (profiles.ts). */

import type { JsonObject, Ttl } from "../request.ts";
import type { Usage } from "../response.ts";
import { asObject, asTokens, flagOddFigures } from "./reading.ts";

/** Paths of keys; the first path with a figure counts. */
export type FigurePaths = readonly (readonly string[])[];

/** Where an endpoint reports each figure. */
export type UsagePaths = {
  readonly total: FigurePaths;
  readonly read: FigurePaths;
  /** Cache writes, by lifetime. */
  readonly written: readonly (readonly [Ttl, FigurePaths])[];
  readonly output: FigurePaths;
  readonly thinking: FigurePaths;
};

const figureAt = (reported: JsonObject, [key = "", ...below]: readonly string[]): number | undefined =>
  below.length === 0 ? asTokens(reported[key]) : figureAt(asObject(reported[key]), below);

const figure = (reported: JsonObject, candidates: FigurePaths): number | undefined =>
  candidates.map((path) => figureAt(reported, path)).find((tokens) => tokens !== undefined);

export const readTotals = (reported: JsonObject, paths: UsagePaths): Usage => {
  const total = figure(reported, paths.total) ?? 0;
  const read = Math.min(total, figure(reported, paths.read) ?? 0);
  const written: Partial<Record<Ttl, number>> = {};
  let left = total - read;
  for (const [ttl, candidates] of paths.written) {
    // A later lifetime may report the sum of all, so what earlier ones reported is not counted again.
    const before = total - read - left;
    const tokens = Math.min(left, Math.max(0, (figure(reported, candidates) ?? 0) - before));
    if (tokens > 0) written[ttl] = tokens;
    left -= tokens;
  }
  const thinking = figure(reported, paths.thinking);
  const output = figure(reported, paths.output) ?? 0;
  const usage = { plain: left, read, written, output, ...(thinking === undefined ? {} : { thinking }) };
  return flagOddFigures(usage, reported);
};

export const responsesUsage: UsagePaths = {
  total: [["input_tokens"]],
  read: [["input_tokens_details", "cached_tokens"]],
  written: [
    ["12h", [["input_tokens_details", "cache_write_tokens_details", "ttl_12h_tokens"]]],
    ["30m", [["input_tokens_details", "cache_write_tokens"]]],
  ],
  output: [["output_tokens"]],
  thinking: [["output_tokens_details", "reasoning_tokens"]],
};

export const chatUsage: UsagePaths = {
  total: [["prompt_tokens"]],
  read: [["prompt_tokens_details", "cached_tokens"]],
  written: [["30m", [["prompt_tokens_details", "cache_write_tokens"]]]],
  output: [["completion_tokens"]],
  thinking: [["completion_tokens_details", "reasoning_tokens"]],
};
