/** What each request of a family is billed for, given who is sent when.
 *  Invariant: a request's read, written and plain tokens sum to its prompt; nothing below the model's minimum is
 *  read or written. These are the provider's documented rules as arithmetic; no entry is looked up here.
 *  Elsewhere: the named plans (plans.ts), choosing between them (launch.ts), the rules in full (simulator/). */

import type { ModelFacts } from "../models.ts";
import { costOf, inputUnits, type Service, withoutNoise } from "../prices.ts";
import { SHORTEST_FIRST, type Ttl } from "../request.ts";
import type { Usage } from "../usage.ts";

export type InFlight = "keep" | "trim";

/** A parent about to start forks. All sizes are tokens. */
export type FanOut = {
  /** P: what the parent has already written, its last request up to its last marker. */
  readonly prefix: number;
  /** S: the in-flight assistant turn and its results, the same for every child and for the parent. */
  readonly tail: number;
  /** D: what one child alone is told. */
  readonly directive: number;
  /** D′: the directive where the in-flight turn is trimmed. Default: the same as `directive`. */
  readonly trimmedDirective?: number;
  /** N: how many children, at least one. */
  readonly forks: number;
  /** The entry at P can still be read. */
  readonly warm: boolean;
  /** Children answer in one turn, so nobody would read a marker on D. Default: false. */
  readonly singleTurn?: boolean;
  /** What the parent's next request adds after S; "none" if the parent will not send one. Default: nothing added. */
  readonly parentNext?: { readonly trailing: number } | "none";
  /** Lifetime of the parent's own markers. Children write "5m" whatever the parent does. Default: "5m". */
  readonly parentTtl?: Ttl;
  /** Absent for an unknown model: usual multipliers, no money, no minimum. */
  readonly facts?: ModelFacts | undefined;
  readonly service?: Service | undefined;
};

/** Input in base-input tokens, and in dollars where the model has prices. */
export type Bill = { readonly units: number; readonly money?: number };

export type Sender = "leader" | "follower" | "child" | "prime" | "parent";

/** Requests of one kind: `count` of them, each billed for `usage`. */
export type Sent = { readonly from: Sender; readonly count: number; readonly usage: Usage };

export type FamilyRequests = { readonly children: readonly Sent[]; readonly parentNext: readonly Sent[] };

/** Children live for minutes, so they write the shortest lifetime the model sells. */
export const childTtl = (facts: ModelFacts | undefined): Ttl =>
  SHORTEST_FIRST.find((ttl) => facts?.prices.write[ttl] !== undefined) ?? "5m";

/** One request: it may read up to `readable`, and its last marker stands at `marked`. */
type RequestShape = {
  readonly prompt: number;
  readonly readable: number;
  readonly marked: number;
  readonly ttl: Ttl;
};

/** Is a prefix this long cached at all? */
export const isCached = (tokens: number, facts: ModelFacts | undefined): boolean =>
  tokens >= (facts?.minimumPrefix ?? 1);

export const usageOf = (shape: RequestShape, facts: ModelFacts | undefined): Usage => {
  const read = isCached(shape.readable, facts) ? shape.readable : 0;
  const reach = isCached(shape.marked, facts) ? Math.max(shape.marked, read) : read;
  return {
    plain: shape.prompt - reach,
    read,
    written: reach > read ? { [shape.ttl]: reach - read } : {},
    output: 0,
  };
};

export const trailingOf = (fanOut: FanOut): number =>
  fanOut.parentNext === undefined || fanOut.parentNext === "none" ? 0 : fanOut.parentNext.trailing;

/** The parent's conversation goes on, so its last block is always marked, with the parent's own lifetime. */
export const parentRequest = (fanOut: FanOut, readable: number): readonly Sent[] => {
  if (fanOut.parentNext === "none") return [];
  const prompt = fanOut.prefix + fanOut.tail + trailingOf(fanOut);
  const shape = { prompt, readable, marked: prompt, ttl: fanOut.parentTtl ?? childTtl(fanOut.facts) };
  return [{ from: "parent", count: 1, usage: usageOf(shape, fanOut.facts) }];
};

export type Launch = "at-once" | "leader-first";

/** What every child has before its own directive. */
const sharedTokens = ({ prefix, tail }: FanOut, inFlight: InFlight): number =>
  inFlight === "keep" ? prefix + tail : prefix;

/** A child with a marker at the end of what it shares and, unless single-turn, one on its directive. */
export const childUsage = (fanOut: FanOut, inFlight: InFlight, readable: number): Usage => {
  const { directive, trimmedDirective = directive, facts } = fanOut;
  const shared = sharedTokens(fanOut, inFlight);
  const prompt = shared + (inFlight === "keep" ? directive : trimmedDirective);
  return usageOf({ prompt, readable, marked: fanOut.singleTurn ? shared : prompt, ttl: childTtl(facts) }, facts);
};

export const familyRequests = (fanOut: FanOut, launch: Launch, inFlight: InFlight): FamilyRequests => {
  const { forks } = fanOut;
  const readableAtStart = fanOut.warm ? fanOut.prefix : 0;
  const first = childUsage(fanOut, inFlight, readableAtStart);
  if (launch === "at-once") {
    return {
      children: [{ from: "child", count: forks, usage: first }],
      parentNext: parentRequest(fanOut, readableAtStart),
    };
  }
  const shared = sharedTokens(fanOut, inFlight);
  const leader: Sent = { from: "leader", count: 1, usage: first };
  const followers: Sent = { from: "follower", count: forks - 1, usage: childUsage(fanOut, inFlight, shared) };
  return {
    children: forks > 1 ? [leader, followers] : [leader],
    parentNext: parentRequest(fanOut, shared),
  };
};

export const billOf = (sent: readonly Sent[], fanOut: FanOut): Bill => {
  let units = 0;
  let money: number | undefined = 0;
  for (const { usage, count } of sent) {
    units += count * inputUnits(usage, fanOut.facts);
    const cost = costOf(usage, fanOut.facts, fanOut.service);
    money = cost === undefined || money === undefined ? undefined : money + count * cost.total;
  }
  // An empty list costs nothing, but an unknown model must not look priced because of that.
  if (fanOut.facts === undefined || money === undefined) return { units: withoutNoise(units) };
  return { units: withoutNoise(units), money };
};

export const addBills = (a: Bill, b: Bill): Bill => ({
  units: withoutNoise(a.units + b.units),
  ...(a.money === undefined || b.money === undefined ? {} : { money: a.money + b.money }),
});

/** What plans are compared by: money knows price tiers, tokens do not. */
export const weightOf = (bill: Bill): number => bill.money ?? bill.units;

/** Nonsense here is a caller's bug; the edges check what people type. */
export const checkFanOut = (fanOut: FanOut): void => {
  const { prefix, tail, directive, forks, trimmedDirective = 0 } = fanOut;
  const sizes = { prefix, tail, directive, trimmedDirective, trailing: trailingOf(fanOut) };
  for (const [name, tokens] of Object.entries(sizes)) {
    if (!Number.isFinite(tokens) || tokens < 0) throw new RangeError(`${name} must be tokens, 0 or more: ${tokens}`);
  }
  if (!Number.isSafeInteger(forks) || forks < 1) throw new RangeError(`forks must be a whole number from 1: ${forks}`);
};

/** 31390 → "31,390". */
export const figure = (value: number): string => {
  const decimals = Math.abs(value) < 1_000 ? 2 : 0;
  const [whole = "", fraction = ""] = value.toFixed(decimals).split(".");
  const kept = fraction.replace(/0+$/, "");
  return whole.replace(/\B(?=(\d{3})+$)/g, ",") + (kept === "" ? "" : `.${kept}`);
};
