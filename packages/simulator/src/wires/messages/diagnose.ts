/** What does the provider itself say about a cache miss, compared with an earlier response?
 *  Invariant: it only compares prompts; expiry and races are not considered.
 *  Elsewhere: the simulator's own, fuller explanation (../../ledger.ts). */

import type { Json } from "@prefork/wire";
import type { Fingerprint } from "../../prompt/index.ts";
import type { LookedUpRequest, StartedAnswer } from "../../wire.ts";

type Remembered = Pick<StartedAnswer, "partition" | "fingerprint" | "lastHash" | "cached">;

export class Diagnoses {
  readonly #byMessage = new Map<string, Remembered>();

  remember({ messageId, partition, fingerprint, lastHash, cached }: StartedAnswer): void {
    this.#byMessage.set(messageId, { partition, fingerprint, lastHash, cached });
  }

  /** The `diagnostics` field of the answer: null if it was not requested, or without a baseline or a difference. */
  diagnose(baseline: Json | undefined, looked: LookedUpRequest): Json {
    if (typeof baseline !== "string") return null;
    const earlier = this.#byMessage.get(baseline);
    if (earlier === undefined || earlier.partition !== looked.partition)
      return { cache_miss_reason: { type: "previous_message_not_found" } };
    const type = changed(earlier, looked);
    if (type === undefined) return null;
    if (type === "unavailable") return { cache_miss_reason: { type } };
    return { cache_miss_reason: { type, cache_missed_input_tokens: Math.max(0, earlier.cached - looked.read) } };
  }
}

const changed = (earlier: Remembered, { rendered: { fingerprint, blocks } }: LookedUpRequest): string | undefined => {
  const differs = (...names: readonly (keyof Fingerprint["parameters"])[]): boolean =>
    names.some((name) => earlier.fingerprint.parameters[name] !== fingerprint.parameters[name]);
  if (differs("model", "speed")) return "model_changed";
  if (earlier.fingerprint.tools !== fingerprint.tools) return "tools_changed";
  if (earlier.fingerprint.system !== fingerprint.system) return "system_changed";
  const others = new Set(Object.keys({ ...earlier.fingerprint.parameters, ...fingerprint.parameters }));
  if (differs(...(others as Set<keyof Fingerprint["parameters"]>))) return "unavailable";
  return blocks.some(({ hash }) => hash === earlier.lastHash) ? undefined : "messages_changed";
};
