/** Many requests: each is compared with the earlier one that it repeats most of, and they form lineages and forks.
 *  Invariant: requests are given in the order in which they were sent; every step is kept; formats are kept apart, and
 *  a body that is not a request is skipped without stopping the rest.
 *  Elsewhere: finding and comparing (trail.ts), two requests (diff.ts). */

import { InputError, type Recording } from "@prefork/wire";
import { type Body, readBody, type XrayProtocol } from "./body.ts";
import type { XrayOptions } from "./diff.ts";
import { readStatedFacts, type SentFacts } from "./sent.ts";
import { Trail, type TrailOptions, type XrayStep } from "./trail.ts";

export type XrayLineage = { readonly id: number; readonly requests: readonly number[]; readonly forkedFrom?: number };

export type XrayChain = {
  readonly steps: readonly XrayStep[];
  readonly lineages: readonly XrayLineage[];
  /** Requests that grew from the same one, or that name the same stored entry, next to each other. */
  readonly families: readonly { readonly from: number; readonly members: readonly number[] }[];
  /** Bodies that are not a request in a known format: which ones, and why. */
  readonly skipped: readonly { readonly index: number; readonly why: string }[];
  /** `usd` is absent if no lost token has a price. */
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

/** The first request that names an entry is itself a member. If only that request and its successors name the entry,
 *  they are not a family. */
const areSeveral = (from: number, members: readonly XrayStep[]): boolean =>
  members.some(({ index }) => index === from)
    ? new Set(members.map(({ lineage }) => lineage)).size > 1
    : members.length > 1;

/** The same, one request at a time, for requests that keep arriving. */
export class XrayHistory {
  readonly #options: XrayHistoryOptions;
  /** One per format: only requests in the same format are compared. */
  readonly #trails = new Map<XrayProtocol, Trail>();
  readonly #steps: XrayStep[] = [];
  readonly #skipped: { readonly index: number; readonly why: string }[] = [];
  readonly #lineages: Lineage[] = [];
  #nextLineage = 0;

  constructor(options: XrayHistoryOptions = {}) {
    this.#options = options;
  }

  /** Undefined for a body that is not a request; it is listed as skipped. */
  add(body: Recording, given: SentFacts = {}): XrayStep | undefined {
    const index = this.#steps.length + this.#skipped.length;
    const sent = readStatedFacts(given, `request ${index + 1}`);
    const read = this.#read(body, index, sent);
    if (!read) return undefined;
    const step = this.#trail(read.protocol).addRead(read, { ...sent, index });
    const { lineage, relation, grewFrom, against } = step;
    this.#steps.push(step);
    const known = this.#lineages[lineage];
    const from = relation === "starts" ? undefined : (grewFrom ?? against);
    if (known) known.requests.push(index);
    else this.#lineages.push({ id: lineage, requests: [index], ...(from === undefined ? {} : { forkedFrom: from }) });
    return step;
  }

  #read(body: Recording, index: number, { model }: SentFacts): Body | undefined {
    try {
      return readBody(body, `request ${index + 1}`, model);
    } catch (error) {
      if (!(error instanceof InputError)) throw error;
      this.#skipped.push({ index, why: error.message });
      return undefined;
    }
  }

  #trail(protocol: XrayProtocol): Trail {
    const known = this.#trails.get(protocol) ?? new Trail(this.#options, () => this.#nextLineage++);
    this.#trails.set(protocol, known);
    return known;
  }

  chain(): XrayChain {
    const lost = this.#steps.flatMap(({ xray }) => (xray && xray.lost.tokens > 0 ? [xray.lost] : []));
    const priced = lost.flatMap(({ usd }) => (usd === undefined ? [] : [usd]));
    const grown = Map.groupBy(this.#steps, ({ grewFrom }) => grewFrom ?? -1);
    return {
      steps: [...this.#steps],
      lineages: this.#lineages.map(({ requests, ...lineage }) => ({ ...lineage, requests: [...requests] })),
      families: [...grown]
        .filter(([from, members]) => from >= 0 && areSeveral(from, members))
        .map(([from, members]) => ({ from, members: members.map(({ index }) => index) })),
      skipped: [...this.#skipped],
      lost: {
        tokens: lost.reduce((sum, { tokens }) => sum + tokens, 0),
        ...(priced.length > 0 ? { usd: priced.reduce((sum, usd) => sum + usd, 0) } : {}),
      },
    };
  }
}
