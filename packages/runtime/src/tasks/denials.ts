/** Has a child been told no so often that it should end? Counts for one child.
 *  Invariant: it depends on what was told and in which order, on nothing else; once it should end, nothing takes that
 *  back, and the reason names what was refused.
 *  Elsewhere: asking (questions.ts), ending the child (../fork). */

import { oneLine } from "../context/index.ts";

export type DenialLimits = {
  readonly inARow?: number; // default: 3
  readonly inAll?: number; // default: 8
};

export type DenialVerdict =
  | { readonly kind: "go-on" }
  /** `reason`: for its report. */
  | { readonly kind: "end"; readonly reason: string };

const SHOWN_KINDS = 3;
const SHOWN_CHARACTERS = 80;

export class Denials {
  readonly #inARow: number;
  readonly #inAll: number;
  readonly #denied: string[] = [];
  #row = 0;
  #verdict: DenialVerdict = { kind: "go-on" };

  constructor({ inARow = 3, inAll = 8 }: DenialLimits = {}) {
    this.#inARow = inARow;
    this.#inAll = inAll;
  }

  get verdict(): DenialVerdict {
    return this.#verdict;
  }

  /** `key` says what was refused, for people: the tool and what it was to do. */
  denied(key: string): DenialVerdict {
    if (this.#verdict.kind === "end") return this.#verdict;
    this.#denied.push(key);
    this.#row += 1;
    if (this.#row >= this.#inARow) this.#verdict = end(this.#denied.slice(-this.#row), " in a row");
    else if (this.#denied.length >= this.#inAll) this.#verdict = end(this.#denied, "");
    return this.#verdict;
  }

  /** A call was allowed that might have been refused. */
  allowed(): void {
    this.#row = 0;
  }
}

const end = (denied: readonly string[], how: string): DenialVerdict => {
  const kinds = [...Map.groupBy(denied, (key) => key)].map(([key, { length }]) => {
    const shown = oneLine(key, SHOWN_CHARACTERS);
    return length === 1 ? shown : `${shown} (${length} times)`;
  });
  const more = kinds.length > SHOWN_KINDS ? [`${kinds.length - SHOWN_KINDS} more`] : [];
  const what = [...kinds.slice(0, SHOWN_KINDS), ...more].join(", ");
  const calls = denied.length === 1 ? "1 call was" : `${denied.length} calls${how} were`;
  return { kind: "end", reason: `${calls} not allowed: ${what}.` };
};
