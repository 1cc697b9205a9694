/** What has an answer taken, by what was heard of it so far?
 *  Invariant: a provider says what it read when it begins to answer and what it wrote only at the end, so an answer that
 *  broke off took the one and, at the least, all that was seen of the other. Where it says both only at the end, what it
 *  read is estimated. Each attempt has a price of its own.
 *  Elsewhere: who listens (turn.ts, compacting.ts), what is held back for it (account.ts). */

import {
  addUsage,
  BYTES_PER_TOKEN,
  completeUsage,
  costOf,
  type ModelEvent,
  type ModelFacts,
  noUsage,
  promptTokens as promptTokensOf,
  type Service,
  type Usage,
} from "@prefork/wire";

/** Without a price where none is known. */
export type Priced = { readonly usage: Usage; readonly usd?: number };

export class Heard {
  readonly #promptTokens: number;
  readonly #lost: Usage[] = [];
  #begun: Usage | undefined;
  /** Of all kinds, thinking and calls included. */
  #bytes = 0;

  /** `promptTokens`: what the prompt takes, where the provider has not said. */
  constructor(promptTokens: number) {
    this.#promptTokens = promptTokens;
  }

  hear(event: ModelEvent): void {
    if (event.type === "response_started") {
      this.#lost.push(this.#now);
      this.#begun = event.usage;
      this.#bytes = 0;
    } else if (event.type === "text_grew" || event.type === "thinking_grew")
      this.#bytes += Buffer.byteLength(event.text);
    else if (event.type === "input_grew") this.#bytes += Buffer.byteLength(event.json);
  }

  /** Of the attempts before this one; undefined where nothing was billed. */
  lost(facts: ModelFacts | undefined, service?: Service): Priced | undefined {
    return pricedSum(this.#lost, facts, service);
  }

  /** Also includes this attempt, as far as it came. */
  all(facts: ModelFacts | undefined, service?: Service): Priced | undefined {
    return pricedSum([...this.#lost, this.#now], facts, service);
  }

  get #now(): Usage {
    if (!this.#begun) return noUsage;
    const seen = Math.ceil(this.#bytes / BYTES_PER_TOKEN);
    const usage = { ...this.#begun, output: Math.max(this.#begun.output, seen) };
    return completeUsage(usage, { prompt: this.#promptTokens, content: 0 });
  }
}

const pricedSum = (
  attempts: readonly Usage[],
  facts: ModelFacts | undefined,
  service?: Service,
): Priced | undefined => {
  const usage = attempts.reduce(addUsage, noUsage);
  if (promptTokensOf(usage) + usage.output === 0) return undefined;
  // One by one: together they may be longer than a prompt of another price.
  const usd = attempts.reduce<number | undefined>((sum, each) => {
    const cost = costOf(each, facts, service)?.total;
    return sum === undefined || cost === undefined ? undefined : sum + cost;
  }, 0);
  return { usage, ...(usd === undefined ? {} : { usd }) };
};
