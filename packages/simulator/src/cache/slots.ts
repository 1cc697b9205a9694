/** Which slot takes a prompt, and how much of the prompt is already there?
 *  Invariant: a slot serves one request at a time; it contains its last prompt and the answer to it, and no other slot
 *  can use that.
 *  Elsewhere: who waits for a slot (../server.ts). */

import { commonTokens, type RenderedBlock } from "../prompt/index.ts";
import type { SlotRules } from "../rules/index.ts";
import type { Miss } from "./plan.ts";

type Slot = { tape: readonly RenderedBlock[]; busy: boolean; usedAt: number };

export type SlotLease = {
  readonly read: number;
  readonly expected: number;
  readonly miss: Miss | undefined;
  /** Returns the slot with its new content. */
  readonly leave: (tape: readonly RenderedBlock[]) => void;
};

export class Slots {
  readonly #slots: readonly Slot[];
  #uses = 0;
  #freed = Promise.withResolvers<void>();

  constructor(count: number) {
    this.#slots = Array.from({ length: count }, () => ({ tape: [], busy: false, usedAt: 0 }));
  }

  /** Resolves when a slot may have become free; undefined if one is free. */
  whenFree(): Promise<void> | undefined {
    return this.#slots.some(({ busy }) => !busy) ? undefined : this.#freed.promise;
  }

  take(prompt: readonly RenderedBlock[], { similarity }: SlotRules, wanted?: number): SlotLease {
    const tokens = prompt.at(-1)?.end ?? 0;
    // The last token of a prompt is always computed.
    const candidates = this.#slots.map((slot, number) => ({
      slot,
      number,
      common: Math.max(0, Math.min(tokens - 1, commonTokens(slot.tape, prompt))),
    }));
    const free = candidates.filter(({ slot }) => !slot.busy);
    const similar = free.filter(({ common }) => common > similarity * tokens).sort((a, b) => b.common - a.common);
    const oldest = free.toSorted((a, b) => a.slot.usedAt - b.slot.usedAt);
    const chosen = free.find(({ number }) => number === wanted) ?? similar[0] ?? oldest[0];
    const best = candidates.reduce((a, b) => (b.common > a.common ? b : a));
    if (chosen === undefined)
      return { read: 0, expected: best.common, miss: otherSlotMiss(best), leave: () => undefined };
    const { slot, common } = chosen;
    slot.busy = true;
    this.#uses += 1;
    slot.usedAt = this.#uses;
    return {
      read: common,
      expected: best.common,
      miss: best.common > common ? otherSlotMiss(best) : undefined,
      leave: (tape) => {
        slot.tape = tape;
        slot.busy = false;
        const freed = this.#freed;
        this.#freed = Promise.withResolvers<void>();
        freed.resolve();
      },
    };
  }
}

const otherSlotMiss = ({ number, common, slot }: { number: number; common: number; slot: Slot }): Miss => ({
  cause: "in another slot",
  words: `${common} tokens of this prompt are in slot ${number}${slot.busy ? ", which was busy" : ""}; slots share nothing`,
});
