/** What each request of a family is billed for, depending on the order of sending, and which order is cheaper.
 *  Invariant: a request's cache reads, cache writes and uncached tokens sum to its prompt; nothing below the model's
 *  minimum is read or written. These are the provider's documented rules as arithmetic; no entry is looked up here. A
 *  family is sent at once only if that costs at most 1 % more over every reader of S, the parent's next request
 *  included. A cold family is never sent at once while a second reader would pay for the same write.
 *  Elsewhere: the named plans (plans.ts), the rules in full (the simulator), releasing followers when an entry is
 *  readable (../launch-gate.ts). */

import { SHORTEST_FIRST, type Ttl } from "../request.ts";
import type { Usage } from "../response.ts";
import type { ModelFacts } from "./models.ts";
import { costOf, inputUnits, type Service, withoutNoise } from "./prices.ts";

export type InFlight = "keep" | "trim";

/** A parent about to start forks. All sizes are tokens. */
export type FanOut = {
  /** P: what the parent has already written: its last request up to its last marker. */
  readonly prefix: number;
  /** S: the in-flight assistant turn and its results, the same for every child and for the parent. */
  readonly tail: number;
  /** D: the directive of one child. */
  readonly directive: number;
  /** D′: the directive if the in-flight turn is trimmed. Default: the same as `directive`. */
  readonly trimmedDirective?: number;
  /** N: the number of children, at least one. */
  readonly forks: number;
  /** The entry at P can still be read. */
  readonly warm: boolean;
  /** Children answer in one turn, so nobody would read a marker on D. Default: false. */
  readonly singleTurn?: boolean;
  /** What the parent's next request adds after S; "none" if the parent will not send one. Default: nothing added. */
  readonly parentNext?: { readonly trailing: number } | "none";
  /** Lifetime of the parent's own markers. Children write "5m" whatever the parent does. Default: "5m". */
  readonly parentTtl?: Ttl;
  /** Absent for an unknown model: the usual multipliers apply, without money and without a minimum. */
  readonly facts?: ModelFacts | undefined;
  readonly service?: Service | undefined;
};

/** Input cost in uncached tokens, and in dollars if the model has prices. */
export type Bill = { readonly units: number; readonly money?: number };

export type Sender = "leader" | "follower" | "child" | "prime" | "parent";

/** Requests of one kind: `count` of them, each billed for `usage`. */
export type Sent = { readonly from: Sender; readonly count: number; readonly usage: Usage };

export type FamilyRequests = { readonly children: readonly Sent[]; readonly parentNext: readonly Sent[] };

/** Children live for minutes, so they write the shortest lifetime the model sells. */
export const childTtl = (facts: ModelFacts | undefined): Ttl =>
  SHORTEST_FIRST.find((ttl) => facts?.prices.write[ttl] !== undefined) ?? "5m";

/** One request: it can read up to `readable`, and its last marker is at `marked`. */
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

/** The parent's conversation continues, so its last block is always marked, with the parent's own lifetime. */
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

/** The value that plans are compared by. Money includes price tiers, tokens do not. */
export const comparableCost = (bill: Bill): number => bill.money ?? bill.units;

/** Invalid sizes are a bug of the caller; user input is checked at the edges. */
export const checkFanOut = (fanOut: FanOut): void => {
  const { prefix, tail, directive, forks, trimmedDirective = 0 } = fanOut;
  const sizes = { prefix, tail, directive, trimmedDirective, trailing: trailingOf(fanOut) };
  for (const [name, tokens] of Object.entries(sizes)) {
    if (!Number.isFinite(tokens) || tokens < 0) throw new RangeError(`${name} must be tokens, 0 or more: ${tokens}`);
  }
  if (!Number.isSafeInteger(forks) || forks < 1) throw new RangeError(`forks must be a whole number from 1: ${forks}`);
};

/** 31390 → "31,390". */
export const formatFigure = (value: number): string => {
  const decimals = Math.abs(value) < 1_000 ? 2 : 0;
  const [whole = "", fraction = ""] = value.toFixed(decimals).split(".");
  const kept = fraction.replace(/0+$/, "");
  return whole.replace(/\B(?=(\d{3})+$)/g, ",") + (kept === "" ? "" : `.${kept}`);
};

// --- when to send ----------------------------------------------------------------------------------------------------

export type LaunchQuestion = FanOut & {
  readonly inFlight?: InFlight; // default: keep
  /** Recent time between sending a request and its first response event. Default: 5 s. */
  readonly firstEventMs?: number;
  /** How long the parent's entry still lives, if known. */
  readonly expiresInMs?: number;
};

export type LaunchDecision = {
  readonly launch: Launch;
  readonly reason: string;
  readonly atOnce: Bill;
  readonly leaderFirst: Bill;
  /** How much more it costs to send all at once, as a share of leader first: 0.058 is 5.8 %. */
  readonly extra: number;
  /** Followers are released after this time even if the leader has not answered; 0 if nobody waits. */
  readonly waitCapMs: number;
};

const ACCEPTED_EXTRA = 0.01;
const USUAL_FIRST_EVENT_MS = 5_000;
/** An entry this close to its end may be gone when the requests arrive. */
const NEAR_EXPIRY_MS = 15_000;
/** In a cold family each reader that is released early pays for the whole prefix again, so waiting a minute is the
 *  cheaper mistake. */
const COLD_WAIT_FLOOR_MS = 60_000;
/** The leader's entry lives five minutes from its start. Waiting longer would lose what the wait is for. */
const WAIT_CEILING_MS = 270_000;

const waitCap = (warm: boolean, firstEventMs: number): number =>
  Math.min(WAIT_CEILING_MS, warm ? 2 * firstEventMs : Math.max(COLD_WAIT_FLOOR_MS, 4 * firstEventMs));

const percent = (share: number): string => `${(share * 100).toFixed(1)} %`;
const seconds = (ms: number): string => `${formatFigure(ms / 1_000)} s`;

const describeReaders = ({ forks, parentNext }: FanOut): string => {
  const children = forks === 1 ? "1 fork" : `${formatFigure(forks)} forks`;
  return parentNext === "none" ? children : `${children} and the parent's next request`;
};

export const decideLaunch = (question: LaunchQuestion): LaunchDecision => {
  checkFanOut(question);
  const { inFlight = "keep", firstEventMs = USUAL_FIRST_EVENT_MS, expiresInMs } = question;
  const expiring = question.warm && expiresInMs !== undefined && expiresInMs < NEAR_EXPIRY_MS;
  const warm = question.warm && !expiring;
  const family = { ...question, warm };

  const bill = (launch: Launch): Bill => {
    const { children, parentNext } = familyRequests(family, launch, inFlight);
    return addBills(billOf(children, family), billOf(parentNext, family));
  };
  const atOnce = bill("at-once");
  const leaderFirst = bill("leader-first");
  const least = comparableCost(leaderFirst);
  // The last decimals are binary noise; without rounding, "exactly 1 %" could fall on either side.
  const extra = least === 0 ? 0 : Math.round((comparableCost(atOnce) / least - 1) * 1e9) / 1e9;
  const figures = `${formatFigure(atOnce.units)} uncached tokens against ${formatFigure(leaderFirst.units)}`;

  const decided = (launch: Launch, reason: string): LaunchDecision => ({
    launch,
    reason,
    atOnce,
    leaderFirst,
    extra,
    waitCapMs: launch === "at-once" ? 0 : waitCap(warm, firstEventMs),
  });

  const readers = question.forks + (question.parentNext === "none" ? 0 : 1);
  if (readers === 1) return decided("at-once", "at once: there is one reader, and nobody to wait for");
  if (extra <= 0) {
    const nothingShared = warm && (inFlight === "trim" || question.tail === 0);
    const why = nothingShared
      ? "the prefix is warm and nothing after it is shared"
      : "nothing that the requests share is long enough to be cached";
    return decided("at-once", `at once: ${why}, so there is nothing to wait for`);
  }
  if (warm && extra <= ACCEPTED_EXTRA) {
    return decided(
      "at-once",
      `at once: it costs ${percent(extra)} more than leader first (${figures}, over ${describeReaders(question)}), ` +
        `within the ${percent(ACCEPTED_EXTRA)} accepted for not waiting`,
    );
  }
  const cause = expiring
    ? `the prefix expires in ${seconds(expiresInMs)} and may be gone on arrival, and then `
    : warm
      ? ""
      : "the prefix is cold, and ";
  return decided(
    "leader-first",
    `leader first: ${cause}at once would cost ${percent(extra)} more (${figures}, over ${describeReaders(question)}); ` +
      `the others follow when the leader's entry is readable, or after ${seconds(waitCap(warm, firstEventMs))}`,
  );
};
