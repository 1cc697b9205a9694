/** What does the provider itself say about a cache miss, against an earlier response?
 *  Invariant: it compares prompts only; expiry and races are not its business.
 *  Elsewhere: the simulator's own, fuller account (../../ledger.ts). */

import type { Json, JsonObject } from "../../../request.ts";
import { isObject } from "../../body.ts";
import type { Rendered } from "../../prompt/index.ts";

type Remembered = {
  readonly partition: string;
  readonly fingerprint: Rendered["fingerprint"];
  readonly lastHash: string;
  readonly cached: number;
};

export type Diagnosed = {
  readonly body: JsonObject;
  readonly rendered: Rendered;
  readonly partition: string;
  readonly read: number;
};

export class Diagnoses {
  readonly #byMessage = new Map<string, Remembered>();

  remember(messageId: string, remembered: Remembered): void {
    this.#byMessage.set(messageId, remembered);
  }

  /** The `diagnostics` field of the answer: null without a request for it, a baseline or a difference. */
  diagnose({ body, rendered, partition, read }: Diagnosed): Json {
    const asked = body.diagnostics;
    const baseline = isObject(asked) ? asked.previous_message_id : undefined;
    if (typeof baseline !== "string") return null;
    const earlier = this.#byMessage.get(baseline);
    if (earlier === undefined || earlier.partition !== partition)
      return { cache_miss_reason: { type: "previous_message_not_found" } };
    const type = changed(earlier, rendered);
    if (type === undefined) return null;
    if (type === "unavailable") return { cache_miss_reason: { type } };
    return { cache_miss_reason: { type, cache_missed_input_tokens: Math.max(0, earlier.cached - read) } };
  }
}

const changed = (earlier: Remembered, { fingerprint, blocks }: Rendered): string | undefined => {
  if (earlier.fingerprint.model !== fingerprint.model) return "model_changed";
  if (earlier.fingerprint.tools !== fingerprint.tools) return "tools_changed";
  if (earlier.fingerprint.system !== fingerprint.system) return "system_changed";
  if (earlier.fingerprint.parameters !== fingerprint.parameters) return "unavailable";
  return blocks.some(({ hash }) => hash === earlier.lastHash) ? undefined : "messages_changed";
};
