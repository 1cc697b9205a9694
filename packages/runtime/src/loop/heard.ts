/** What has an answer taken, by what was heard of it so far?
 *  Invariant: a provider says what it read when it begins to answer and what it wrote only at the end, so an answer that
 *  broke off took the one and, at the least, all that was seen of the other. Attempts before the last one count too.
 *  Elsewhere: who listens (turn.ts, ../agent), what is billed for it (account.ts). */

import { addUsage, type ModelEvent, noUsage, promptTokens, type Usage } from "@prefork/wire";
import { estimateTokens } from "./account.ts";

export class Heard {
  #lost: Usage = noUsage;
  #begun: Usage = noUsage;
  /** Of all kinds, thinking and calls included. */
  #letters = 0;

  hear(event: ModelEvent): void {
    if (event.type === "response_started") {
      this.#lost = this.all;
      this.#begun = event.usage;
      this.#letters = 0;
    } else if (event.type === "text_grew" || event.type === "thinking_grew") this.#letters += event.text.length;
    else if (event.type === "input_grew") this.#letters += event.json.length;
  }

  /** Of the attempts before this one. */
  get lost(): Usage {
    return this.#lost;
  }

  /** Of this one too, as far as it came. */
  get all(): Usage {
    const output = Math.max(this.#begun.output, estimateTokens(this.#letters));
    return addUsage(this.#lost, { ...this.#begun, output });
  }
}

/** Was anything billed? */
export const isSomething = (usage: Usage): boolean => promptTokens(usage) + usage.output > 0;
