/** Totals for all requests, for each lineage, for each family and for each cause.
 *  Invariant: a request is counted once, when its answer has ended; lists are bounded: the oldest items are
 *  dropped, and where the report has an `older` total, they are added to it.
 *  Elsewhere: what is counted (analysis.ts), the fields of a report (report.ts). */

import {
  addUsage,
  costOf,
  inputUnits,
  type ModelFacts,
  noUsage,
  promptTokens,
  type Service,
  type Usage,
  writtenTokens,
} from "@prefork/wire";
import { withoutNoise } from "@prefork/wire/internal";
import { isNegligibleLoss, type XrayStep } from "../compare/index.ts";
import type {
  CauseReport,
  Counted,
  FamilyReport,
  LineageReport,
  Loss,
  MissReport,
  ProxyReport,
  ProxySpend,
} from "./report.ts";

const NO_LOSS: Loss = { tokens: 0, units: 0 };

const addLoss = (one: Loss, other: Loss): Loss => {
  const usd = one.usd === undefined && other.usd === undefined ? undefined : (one.usd ?? 0) + (other.usd ?? 0);
  return {
    tokens: one.tokens + other.tokens,
    units: withoutNoise(one.units + other.units),
    ...(usd === undefined ? {} : { usd }),
  };
};

export type Bill = {
  readonly usage: Usage;
  readonly facts: ModelFacts | undefined;
  readonly service: Service;
  readonly lost: Loss;
  /** How many of the tokens it wrote had been written before. */
  readonly rewritten: number;
};

/** The running total of a group of requests. */
class Spending {
  #requests = 0;
  #usage = noUsage;
  #units = 0;
  #usd: number | undefined;
  #unpriced = 0;
  #lost = NO_LOSS;
  #rewritten = 0;

  add({ usage, facts, service, lost, rewritten }: Bill): void {
    const cost = costOf(usage, facts, service);
    this.#requests += 1;
    this.#usage = addUsage(this.#usage, usage);
    this.#units = withoutNoise(this.#units + inputUnits(usage, facts));
    if (cost) this.#usd = (this.#usd ?? 0) + cost.total;
    else this.#unpriced += 1;
    this.#lost = addLoss(this.#lost, lost);
    this.#rewritten += rewritten;
  }

  merge(other: Spending): void {
    this.#requests += other.#requests;
    this.#usage = addUsage(this.#usage, other.#usage);
    this.#units = withoutNoise(this.#units + other.#units);
    if (other.#usd !== undefined) this.#usd = (this.#usd ?? 0) + other.#usd;
    this.#unpriced += other.#unpriced;
    this.#lost = addLoss(this.#lost, other.#lost);
    this.#rewritten += other.#rewritten;
  }

  spent(): ProxySpend {
    const [prompt, written] = [promptTokens(this.#usage), writtenTokens(this.#usage)];
    const needed = written - this.#rewritten;
    return {
      requests: this.#requests,
      usage: this.#usage,
      readShare: prompt === 0 ? null : this.#usage.read / prompt,
      rewriteFactor: needed > 0 ? written / needed : null,
      units: this.#units,
      ...(this.#usd === undefined ? {} : { usd: this.#usd }),
      unpriced: this.#unpriced,
      lost: this.#lost,
    };
  }
}

export type LineageFacts = Pick<LineageReport, "id" | "wire" | "model" | "client" | "account"> & {
  readonly forkedFrom?: number;
};

type Lineage = LineageFacts & { sum: Spending; first: number; last: number; prompt: number; misses: number };

type Family = {
  readonly from: number;
  readonly prefix: number;
  readonly members: number[];
  readonly lineages: Set<number>;
  readonly sum: Spending;
};

const MOST_LINEAGES = 500;
const MOST_FAMILIES = 1_000;
const MOST_MISSES = 200;
const MOST_MEMBERS = 1_000;
const MOST_NAMES = 50;

/** How often each thing happened. We choose the names, and there are few; the map is bounded anyway. */
export class NameCounts {
  readonly #times = new Map<string, number>();

  add(name: string): void {
    const known = this.#times.has(name) || this.#times.size < MOST_NAMES ? name : "others";
    this.#times.set(known, (this.#times.get(known) ?? 0) + 1);
  }

  list(): readonly Counted[] {
    return [...this.#times].map(([name, times]) => ({ name, times }));
  }
}

export class Tally {
  readonly #all = new Spending();
  readonly #older = new Spending();
  readonly #brokenOff = new Spending();
  readonly #lineages = new Map<number, Lineage>();
  readonly #families = new Map<number, Family>();
  readonly #causes = new Map<string, CauseReport>();
  readonly #misses: MissReport[] = [];
  #lineagesSeen = 0;
  #lineagesOlder = 0;

  /** A request has been placed in a lineage; its usage comes later. `step` holds the request's index and its
   *  lineage's id. */
  enter(facts: LineageFacts, step: XrayStep): void {
    const known = this.#lineages.get(facts.id);
    const { index, prompt } = step;
    const lineage: Lineage = known ?? { ...facts, sum: new Spending(), first: index, last: index, prompt, misses: 0 };
    // The most recently active lineage comes last.
    this.#lineages.delete(facts.id);
    this.#lineages.set(facts.id, { ...lineage, model: facts.model, last: index, prompt });
    if (!known) this.#lineagesSeen += 1;
    for (const [id, { sum }] of this.#lineages) {
      if (this.#lineages.size <= MOST_LINEAGES) break;
      this.#lineages.delete(id);
      this.#older.merge(sum);
      this.#lineagesOlder += 1;
    }
  }

  /** The family that this request joins, once it has two lineages. */
  join(step: XrayStep): Omit<FamilyReport, keyof ProxySpend> | undefined {
    const { grewFrom: from, inherited: prefix = 0, relation, lineage, index } = step;
    if (from === undefined || relation === "repeats") return undefined;
    const family = this.#families.get(from) ?? { from, prefix, members: [], lineages: new Set(), sum: new Spending() };
    if (family.members.length < MOST_MEMBERS) family.members.push(index);
    family.lineages.add(lineage);
    this.#families.delete(from);
    this.#families.set(from, family);
    const [oldest] = this.#families.keys();
    if (oldest !== undefined && this.#families.size > MOST_FAMILIES) this.#families.delete(oldest);
    return family.lineages.size > 1 ? this.#describe(family) : undefined;
  }

  miss(miss: MissReport): void {
    const isListed = !isNegligibleLoss(miss.lost);
    if (isListed) this.#misses.push(miss);
    if (this.#misses.length > MOST_MISSES) this.#misses.shift();
    const { kind } = miss.cause;
    const known = this.#causes.get(kind);
    const sum = addLoss(known ?? NO_LOSS, miss.lost);
    this.#causes.set(kind, { kind, words: known?.words ?? miss.words, times: (known?.times ?? 0) + 1, ...sum });
    const lineage = this.#lineages.get(miss.lineage);
    if (lineage && isListed) lineage.misses += 1;
  }

  /** An answer with a known usage has ended. */
  bill(bill: Bill, step?: XrayStep): void {
    this.#all.add(bill);
    if (!step) return;
    (this.#lineages.get(step.lineage)?.sum ?? this.#older).add(bill);
    if (step.relation !== "repeats") this.#families.get(step.grewFrom ?? -1)?.sum.add(bill);
  }

  /** Counts a request that was billed but whose answer was cut off. */
  breakOff(bill: Bill): void {
    this.#brokenOff.add(bill);
  }

  get spent(): ProxySpend {
    return this.#all.spent();
  }

  get lineageCount(): number {
    return this.#lineagesSeen;
  }

  report(): Pick<ProxyReport, "all" | "brokenOff" | "lineages" | "older" | "families" | "causes" | "misses"> {
    const families = [...this.#families.values()].filter(({ lineages }) => lineages.size > 1);
    return {
      all: this.#all.spent(),
      brokenOff: this.#brokenOff.spent(),
      lineages: [...this.#lineages.values()]
        .map(({ sum, ...lineage }) => ({ ...lineage, ...sum.spent() }))
        .sort((one, other) => one.id - other.id),
      older: { ...this.#older.spent(), lineages: this.#lineagesOlder },
      families: families.map((family) => ({ ...this.#describe(family), ...family.sum.spent() })),
      causes: [...this.#causes.values()].sort((one, other) => other.tokens - one.tokens),
      misses: [...this.#misses],
    };
  }

  #describe({ from, prefix, members, lineages }: Family): Omit<FamilyReport, keyof ProxySpend> {
    return { from, prefix, members: [...members], lineages: [...lineages] };
  }
}
