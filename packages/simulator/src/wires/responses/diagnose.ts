/** What does OpenAI itself say about a cache miss, compared with an earlier response?
 *  Invariant: it only compares prompts; if they agree and nothing was read anyway, it cannot say why.
 *  Elsewhere: the simulator's own, fuller explanation (../../ledger.ts). */

import type { Json } from "@prefork/wire";
import type { KeyParameter } from "../../rules/index.ts";
import type { LookedUpRequest, StartedAnswer } from "../../wire.ts";

type Remembered = Pick<StartedAnswer, "partition" | "fingerprint" | "lastHash" | "cached">;

/** Reasons by the parameter whose change they name, in the order of checking. */
const reasons: readonly (readonly [KeyParameter, string])[] = [
  ["model", "model_changed"],
  ["service_tier", "service_tier_changed"],
  ["parallel_tool_calls", "tools_changed"],
  ["output_format", "text_format_changed"],
  ["effort", "reasoning_effort_changed"],
  ["verbosity", "verbosity_changed"],
  ["context_management", "context_compacted"],
];

export class Comparisons {
  readonly #byResponse = new Map<string, Remembered>();

  remember({ messageId, partition, fingerprint, lastHash, cached }: StartedAnswer): void {
    this.#byResponse.set(messageId, { partition, fingerprint, lastHash, cached });
  }

  /** `prompt_cache_diagnostics` of the response; null if it was not requested. */
  compare(baseline: Json | undefined, looked: LookedUpRequest): Json {
    if (typeof baseline !== "string") return null;
    const earlier = this.#byResponse.get(baseline);
    if (earlier === undefined) return { type: "comparison_response_not_found" };
    const reason = changed(earlier, looked);
    if (reason === undefined) return { type: looked.read > 0 ? "cache_hit" : "unavailable" };
    return {
      type: "cache_miss",
      reason,
      cache_missed_tokens: Math.max(0, earlier.cached - looked.read),
      comparison_reusable_tokens: earlier.cached,
    };
  }
}

const changed = (earlier: Remembered, { rendered, partition }: LookedUpRequest): string | undefined => {
  const [before, now] = [earlier.fingerprint, rendered.fingerprint];
  if (earlier.partition !== partition) return "prompt_cache_key_changed";
  const parameter = reasons.find(([name]) => before.parameters[name] !== now.parameters[name]);
  if (parameter !== undefined) return parameter[1];
  if (before.tools !== now.tools) return "tools_changed";
  return rendered.blocks.some(({ hash }) => hash === earlier.lastHash) ? undefined : "input_changed";
};
