/** Many requests: each against the earlier one that it repeats most of, with the lineages and forks that they form.
 *  Invariant: requests are given in the order in which they were sent; every step is kept.
 *  Elsewhere: finding and comparing (trail.ts), two requests (diff.ts). */

import type { Recording } from "../recorded/index.ts";
import type { XrayOptions } from "./diff.ts";
import type { SentFacts } from "./sent.ts";
import { Trail, type TrailOptions, type XrayStep } from "./trail.ts";

export type XrayLineage = { readonly id: number; readonly requests: readonly number[]; readonly forkedFrom?: number };

export type XrayChain = {
  readonly steps: readonly XrayStep[];
  readonly lineages: readonly XrayLineage[];
  /** Requests that grew from the same one, side by side. */
  readonly families: readonly { readonly from: number; readonly members: readonly number[] }[];
  /** `usd` is absent where no lost token has a price. */
  readonly lost: { readonly tokens: number; readonly usd?: number };
};

export type ChainRequest = SentFacts & { readonly body: Recording };

export type XrayHistoryOptions = TrailOptions;

export const xrayChain = (requests: readonly ChainRequest[], options: XrayOptions = {}): XrayChain => {
  const all = { remembers: requests.length, bodyBytes: Number.POSITIVE_INFINITY };
  const history = new XrayHistory({ ...options, ...all });
  const hasBetas = requests.every(({ betas }) => betas !== undefined);
  for (const { body, betas, ...sent } of requests)
    history.add(body, { ...sent, ...(hasBetas && betas !== undefined ? { betas } : {}) });
  return history.chain();
};

type Lineage = { readonly id: number; readonly requests: number[]; readonly forkedFrom?: number };

/** The same, request by request, for those that go on arriving. */
export class XrayHistory {
  readonly #trail: Trail;
  readonly #steps: XrayStep[] = [];
  readonly #lineages: Lineage[] = [];

  constructor(options: XrayHistoryOptions = {}) {
    this.#trail = new Trail(options);
  }

  add(body: Recording, sent: SentFacts = {}): XrayStep {
    const step = this.#trail.add(body, { ...sent, index: this.#steps.length });
    const { index, lineage, relation, grewFrom, against } = step;
    this.#steps.push(step);
    const known = this.#lineages[lineage];
    const from = relation === "starts" ? undefined : (grewFrom ?? against);
    if (known) known.requests.push(index);
    else this.#lineages.push({ id: lineage, requests: [index], ...(from === undefined ? {} : { forkedFrom: from }) });
    return step;
  }

  chain(): XrayChain {
    const lost = this.#steps.flatMap(({ xray }) => (xray && xray.lost.tokens > 0 ? [xray.lost] : []));
    const priced = lost.flatMap(({ usd }) => (usd === undefined ? [] : [usd]));
    const grown = Map.groupBy(this.#steps, ({ grewFrom }) => grewFrom ?? -1);
    return {
      steps: [...this.#steps],
      lineages: this.#lineages.map(({ requests, ...lineage }) => ({ ...lineage, requests: [...requests] })),
      families: [...grown]
        .filter(([from, members]) => from >= 0 && members.length > 1)
        .map(([from, members]) => ({ from, members: members.map(({ index }) => index) })),
      lost: {
        tokens: lost.reduce((sum, { tokens }) => sum + tokens, 0),
        ...(priced.length > 0 ? { usd: priced.reduce((sum, usd) => sum + usd, 0) } : {}),
      },
    };
  }
}
