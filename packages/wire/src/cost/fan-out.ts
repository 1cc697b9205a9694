/** What each request of a family is billed for, given who is sent when.
 *  Invariant: a request's read, written and plain tokens sum to its prompt; nothing below the model's minimum is
 *  read or written. These are the provider's documented rules as arithmetic; no entry is looked up here.
 *  Elsewhere: the named plans (plans.ts), choosing between them (launch.ts), the rules in full (simulator/). */

import { SHORTEST_FIRST, type Ttl } from "../request.ts";
import type { Usage } from "../response.ts";
import type { ModelFacts } from "./models.ts";
import { costOf, inputUnits, type Service, withoutNoise } from "./prices.ts";

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

// --- when to send ----------------------------------------------------------------------------------------------------

export type LaunchQuestion = FanOut & {
  readonly inFlight?: InFlight; // default: keep
  /** Recent time from sending a request to its first response event. Default: 5 s. */
  readonly firstEventMs?: number;
  /** What is left of the parent's entry, where known. */
  readonly expiresInMs?: number;
};

export type LaunchDecision = {
  readonly launch: Launch;
  readonly reason: string;
  readonly atOnce: Bill;
  readonly leaderFirst: Bill;
  /** How much more at once costs, as a share of leader first: 0.058 is 5.8 %. */
  readonly extra: number;
  /** Followers are released after this even if the leader has not answered; 0 where nobody waits. */
  readonly waitCapMs: number;
};

const ACCEPTED_EXTRA = 0.01;
const USUAL_FIRST_EVENT_MS = 5_000;
/** An entry this near its end may be gone when the requests arrive. */
const NEAR_EXPIRY_MS = 15_000;
/** Cold, each reader let go early pays the whole prefix again: a minute of waiting is the cheaper mistake. */
const COLD_WAIT_FLOOR_MS = 60_000;
/** The leader's entry lives five minutes from its start; past this, waiting would lose what it waits for. */
const WAIT_CEILING_MS = 270_000;

const waitCap = (warm: boolean, firstEventMs: number): number =>
  Math.min(WAIT_CEILING_MS, warm ? 2 * firstEventMs : Math.max(COLD_WAIT_FLOOR_MS, 4 * firstEventMs));

const percent = (share: number): string => `${(share * 100).toFixed(1)} %`;
const seconds = (ms: number): string => `${figure(ms / 1_000)} s`;

const readersInWords = ({ forks, parentNext }: FanOut): string => {
  const children = forks === 1 ? "1 fork" : `${figure(forks)} forks`;
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
  const least = weightOf(leaderFirst);
  // The last decimals are binary noise; without this, "exactly 1 %" would fall on either side.
  const extra = least === 0 ? 0 : Math.round((weightOf(atOnce) / least - 1) * 1e9) / 1e9;
  const figures = `${figure(atOnce.units)} base-input tokens against ${figure(leaderFirst.units)}`;

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
      `at once: it costs ${percent(extra)} more than leader first (${figures}, over ${readersInWords(question)}), ` +
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
    `leader first: ${cause}at once would cost ${percent(extra)} more (${figures}, over ${readersInWords(question)}); ` +
      `the others follow when the leader's entry is readable, or after ${seconds(waitCap(warm, firstEventMs))}`,
  );
};
