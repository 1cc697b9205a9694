/** What has an answer taken, by what was heard of it so far?
 *  Invariant: a provider says what it read when it begins to answer and what it wrote only at the end, so an answer that
 *  broke off took the one and, at the least, all that was seen of the other. Each attempt has a price of its own.
 *  Elsewhere: who listens (turn.ts, ../agent), what is held back for it (account.ts). */

import {
  addUsage,
  costOf,
  type ModelEvent,
  type ModelFacts,
  noUsage,
  promptTokens,
  type Service,
  type Usage,
} from "@prefork/wire";
import { estimateTokens } from "./account.ts";

/** Without a price where none is known. */
export type Priced = { readonly usage: Usage; readonly usd?: number };

export class Heard {
  readonly #lost: Usage[] = [];
  #begun: Usage = noUsage;
  /** Of all kinds, thinking and calls included. */
  #letters = 0;

  hear(event: ModelEvent): void {
    if (event.type === "response_started") {
      this.#lost.push(this.#now);
      this.#begun = event.usage;
      this.#letters = 0;
    } else if (event.type === "text_grew" || event.type === "thinking_grew") this.#letters += event.text.length;
    else if (event.type === "input_grew") this.#letters += event.json.length;
  }

  /** Of the attempts before this one; undefined where nothing was billed. */
  lost(facts: ModelFacts | undefined, service?: Service): Priced | undefined {
    return pricedSum(this.#lost, facts, service);
  }

  /** Of this one too, as far as it came. */
  all(facts: ModelFacts | undefined, service?: Service): Priced | undefined {
    return pricedSum([...this.#lost, this.#now], facts, service);
  }

  get #now(): Usage {
    return { ...this.#begun, output: Math.max(this.#begun.output, estimateTokens(this.#letters)) };
  }
}

const pricedSum = (
  attempts: readonly Usage[],
  facts: ModelFacts | undefined,
  service?: Service,
): Priced | undefined => {
  const usage = attempts.reduce(addUsage, noUsage);
  if (promptTokens(usage) + usage.output === 0) return undefined;
  // One by one: together they may be longer than a prompt of another price.
  const usd = attempts.reduce<number | undefined>((sum, each) => {
    const cost = costOf(each, facts, service)?.total;
    return sum === undefined || cost === undefined ? undefined : sum + cost;
  }, 0);
  return { usage, ...(usd === undefined ? {} : { usd }) };
};
