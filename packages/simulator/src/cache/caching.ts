/** What does a request read, what is the miss reason, and what does it leave for the next one?
 *  Invariant: the cache is read once, when the request is admitted; what the request leaves appears at the moment the
 *  rules name, or not at all. Only hashes outlive a request, and in slots the prompts themselves.
 *  Elsewhere: where to look (plan-*.ts), entries (entries.ts), money (../bill.ts). */

import type { ReadBlock } from "../body.ts";
import { type PrefixEnd, type Rendered, renderAfter } from "../prompt/index.ts";
import type { CacheRules, RoutingRules } from "../rules/index.ts";
import type { TokenRule } from "../tokens.ts";
import { Entries, type Lookup, type PendingWrites } from "./entries.ts";
import type { CachePlan, CachePlanResult, CachingSettings, Miss, PlannedWrite } from "./plan.ts";
import { type AutomaticCache, endsIn, lifetimeOf, planAutomatic, writesFor } from "./plan-automatic.ts";
import { planEndings } from "./plan-endings.ts";
import { planMarkers } from "./plan-markers.ts";
import { Slots } from "./slots.ts";

export type CacheRequest = {
  readonly rendered: Rendered;
  readonly requested: CachingSettings;
  readonly rules: CacheRules;
  readonly startedAt: number;
  readonly sequence: number;
  readonly tokenRule: TokenRule;
};

export type CacheResult = {
  readonly ok: true;
  readonly read: number;
  readonly expected: number;
  readonly miss: Miss | undefined;
  /** What is written after the read. */
  readonly writes: readonly PlannedWrite[];
  /** What the same prompt would read if it were sent again while all this lives. */
  readonly nextRead: number;
  /** The first event is about to be sent. */
  readonly begin: (now: number) => void;
  /** Nothing more is sent; `answer` is the content of a complete answer. */
  readonly end: (now: number, answer?: readonly ReadBlock[]) => void;
};

export type CacheRefusal = { readonly ok: false; readonly message: string };

export class Caching {
  readonly #machines = new Machines();
  readonly #slots = new Map<number, Slots>();
  /** Ends of all prompts seen so far, if the provider caches what two of them have in common. */
  readonly #seen = new Set<string>();

  /** Resolves when a request under these rules may be admitted; undefined if it may be now. */
  whenAdmissible({ slots }: CacheRules): Promise<void> | undefined {
    return slots === "none" ? undefined : this.#slotsOf(slots.count).whenFree();
  }

  take(request: CacheRequest): CacheResult | CacheRefusal {
    const { rules } = request;
    if (rules.slots !== "none") return this.#takeSlot(request, rules.slots);
    const planned = planFor(request);
    return planned.ok ? this.#takeEntries(request, planned.plan) : planned;
  }

  #slotsOf(count: number): Slots {
    const known = this.#slots.get(count) ?? new Slots(count);
    this.#slots.set(count, known);
    return known;
  }

  #takeSlot(
    { rendered, requested, tokenRule }: CacheRequest,
    rules: Exclude<CacheRules["slots"], "none">,
  ): CacheResult {
    const { blocks, tokens } = rendered;
    const seated = this.#slotsOf(rules.count).take(requested.off ? [] : blocks, rules, requested.slot);
    const last = blocks.at(-1);
    return {
      ok: true,
      read: seated.read,
      expected: seated.expected,
      miss: seated.miss,
      writes: [],
      nextRead: Math.max(0, tokens - 1),
      begin: () => undefined,
      end: (_now, answer = []) =>
        seated.leave(last === undefined ? blocks : [...blocks, ...renderAfter(answer, last, tokenRule)]),
    };
  }

  #takeEntries(request: CacheRequest, plan: CachePlan): CacheResult {
    const { rules, startedAt, sequence, requested, rendered } = request;
    const { found, entries } = this.#look(request, plan);
    const by = { startedAt, sequence };
    const writes = [...plan.writes, ...this.#sharedWrites(request, plan)].filter(({ at }) => at > found.at);
    const pending = entries.beginWrites(plan.places, writes, by);
    const storedTokens = requested.storedTokens ?? 0;
    const readable = Math.max(found.read, storedTokens);
    const last = rendered.blocks.at(-1);
    const after = last === undefined ? undefined : { hash: last.hash, end: last.end, path: last.path };
    return {
      ok: true,
      read: readable,
      expected: Math.max(found.expected, storedTokens),
      miss: found.miss,
      writes,
      nextRead: writes.reduce((most, { end }) => (end <= plan.reach ? Math.max(most, end) : most), readable),
      ...publisher({ entries, pending, rules }, this.#answerWrites(request, entries, after)),
    };
  }

  /** Looks on the machine of this request. If requests of its kind have filled that machine, it goes to another one. */
  #look(request: CacheRequest, plan: CachePlan): { readonly found: Lookup; readonly entries: Entries } {
    const { rules, startedAt, rendered } = request;
    const key = rendered.blocks.find(({ tokens }) => tokens > 0)?.hash ?? rendered.root;
    const machine = rules.routing === "none" ? 0 : this.#machines.route(key, startedAt, rules.routing);
    const entries = this.#machines.at(machine);
    const found = entries.lookup(plan, { ...rules, startedAt });
    const atHome = machine === 0 ? 0 : this.#machines.at(0).expected(plan);
    if (rules.routing === "none" || atHome <= found.expected) return { found, entries };
    const words = `more than ${rules.routing.perMinute} requests a minute of one prefix and key: this one went to machine ${machine + 1}, and ${atHome} tokens are on the first`;
    return { found: { ...found, expected: atHome, miss: { cause: "overflowed", words } }, entries };
  }

  /** The common part of this prompt and an earlier one becomes its own entry, if the rules say so. */
  #sharedWrites({ rules, requested }: CacheRequest, { places }: CachePlan): readonly PlannedWrite[] {
    const { automatic } = rules;
    if (automatic === "none" || automatic.keeps !== "units" || requested.off) return [];
    const at = places.findLastIndex(({ hash }) => this.#seen.has(hash));
    for (const { hash } of places) this.#seen.add(hash);
    const end = places[at]?.end ?? 0;
    const isLast = at === places.length - 1;
    return end < rules.minimumPrefix || at < 0 || isLast
      ? []
      : [{ at, end, lifetimeMs: lifetimeOf(automatic, requested) }];
  }

  /** Caches the answer after its prompt, if the rules say so. It must not keep the prompt in memory meanwhile. */
  #answerWrites(
    { rules, requested, tokenRule, ...request }: CacheRequest,
    entries: Entries,
    last: PrefixEnd | undefined,
  ): KeepAnswer {
    const { automatic, minimumPrefix } = rules;
    if (automatic === "none" || !automatic.keepsOutput || requested.off || last === undefined) return () => undefined;
    const by = { startedAt: request.startedAt, sequence: request.sequence };
    const lifetimeMs = lifetimeOf(automatic, requested);
    const seen = this.#seen;
    return (answer, readableFrom) => {
      const places = endsIn(renderAfter(answer, last, tokenRule), last, automatic);
      for (const { hash } of automatic.keeps === "units" ? places : []) seen.add(hash);
      const writes = writesFor(places, { automatic, lifetimeMs }).filter(({ end }) => end >= minimumPrefix);
      entries.commit(entries.beginWrites(places, writes, by), readableFrom);
    };
  }
}

type KeepAnswer = (answer: readonly ReadBlock[], readableFrom: number) => void;

const emptyPlan: CachePlan = {
  places: [],
  looks: [],
  writes: [],
  reach: 0,
  unseen: () => ({ cause: "no marker there", words: "was not looked for" }),
};

const planFor = ({ rendered, requested, rules }: CacheRequest): CachePlanResult => {
  const { endings, automatic } = rules;
  if (requested.off) return { ok: true, plan: emptyPlan };
  if (endings !== "none") return { ok: true, plan: planEndings(rendered, requested, { ...rules, endings }) };
  const marks = rules.markers !== "ignored" && (requested.markers > 0 || requested.last !== undefined);
  if (marks || automatic === "none") return planMarkers(rendered, requested, rules);
  const cached: AutomaticCache = { ...rules, automatic };
  return { ok: true, plan: planAutomatic(rendered, requested, cached) };
};

type Published = { readonly entries: Entries; readonly pending: PendingWrites; readonly rules: CacheRules };

/** Makes entries readable at the moment the rules name. */
const publisher = ({ entries, pending, rules }: Published, keep: KeepAnswer): Pick<CacheResult, "begin" | "end"> => {
  const { readable, settleMs } = rules;
  let published = false;
  const from = (now: number): number => (settleMs > 0 ? now + settleMs : Number.NEGATIVE_INFINITY);
  const publish = (now: number): void => {
    if (!published) entries.commit(pending, from(now));
    published = true;
  };
  if (readable === "at-once") publish(pending.startedAt);
  return {
    begin: (now) => {
      if (readable === "first-event") publish(now);
    },
    end: (now, answer) => {
      if (answer === undefined) {
        if (!published) entries.abandon(pending);
        return;
      }
      publish(now);
      keep(answer, from(now));
    },
  };
};

// --- machines --------------------------------------------------------------------------------------------------------

const MINUTE = 60_000;

export class Machines {
  readonly #entries: Entries[] = [];
  readonly #arrivals = new Map<string, number[]>();

  /** The machine of a request, by how many requests like it came in the minute before. */
  route(key: string, now: number, { perMinute }: RoutingRules): number {
    const recent = (this.#arrivals.get(key) ?? []).filter((at) => at > now - MINUTE);
    const machine = Math.floor(recent.length / perMinute);
    this.#arrivals.set(key, [...recent, now]);
    return machine;
  }

  at(machine: number): Entries {
    this.#entries[machine] ??= new Entries();
    return this.#entries[machine];
  }
}
