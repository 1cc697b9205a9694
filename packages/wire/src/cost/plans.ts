/** What N forks cost under every way to launch and mark them, and for how many turns a fork stays cheaper than a fresh
 *  sub-agent.
 *  Invariant: the children's bill is the published arithmetic to the token; the parent's next request is listed next to
 *  it, never inside it; the cheapest plan has the lowest total among the plans that can be chosen now. Break-even for a
 *  warm prefix: T* = [(w−r)(F+X) + q(O+B)] / [r(P+S−F−X)]; a cold prefix is charged its share of the single write that
 *  its siblings read.
 *  Elsewhere: which member to send first and how long to wait, and what one request is billed for (fan-out.ts). */

import {
  addBills,
  type Bill,
  billOf,
  checkFanOut,
  childTtl,
  childUsage,
  comparableCost,
  type FamilyRequests,
  type FanOut,
  familyRequests,
  formatFigure,
  type InFlight,
  parentRequest,
  type Sent,
  trailingOf,
  usageOf,
} from "./fan-out.ts";

export type PlanId =
  | "no-cache"
  | "last-block"
  | "at-once"
  | "leader-first"
  | "prime"
  | "cold-at-once"
  | "cold-leader-first"
  | "trim"
  | "trim-cold-leader-first";

/** A plan with its bill. `requires` is the state of the parent's entry that the plan relies on. */
export type LaunchPlan = {
  readonly id: PlanId;
  readonly title: string;
  readonly formula: string; // the children's bill
  readonly requires: "any" | "warm" | "cold";
  readonly inFlight: InFlight;
  readonly applies: boolean;
  readonly requests: readonly Sent[];
  readonly children: Bill;
  readonly parentNext: Bill;
  readonly total: Bill;
};

export type ForkPlans = {
  readonly plans: readonly LaunchPlan[];
  readonly cheapest: LaunchPlan;
  /** The cheapest plan in which children see the parent's last turn, so that all have the same blocks. */
  readonly cheapestKept: LaunchPlan;
};

type PlanRule = {
  readonly id: PlanId;
  readonly title: string;
  readonly formula: string;
  readonly requires: LaunchPlan["requires"];
  readonly inFlight: InFlight;
  readonly requests: (fanOut: FanOut) => FamilyRequests;
};

/** Nothing is marked, not even by the parent: its next request pays for P, S and everything after them as uncached
 *  input. */
const withoutCache = (fanOut: FanOut): FamilyRequests => {
  const { prefix, tail, directive, forks, parentNext } = fanOut;
  const plain = (tokens: number) => ({ plain: tokens, read: 0, written: {}, output: 0 });
  return {
    children: [{ from: "child", count: forks, usage: plain(prefix + tail + directive) }],
    parentNext:
      parentNext === "none" ? [] : [{ from: "parent", count: 1, usage: plain(prefix + tail + trailingOf(fanOut)) }],
  };
};

/** Every entry ends in its owner's own block, so no entry ends at S: each child writes S again, whatever the timing,
 *  and the parent reads P and writes S as part of its own tail. */
const lastBlockOnly = (fanOut: FanOut): FamilyRequests => {
  const { prefix, tail, directive, forks, facts } = fanOut;
  const prompt = prefix + tail + directive;
  const usage = usageOf({ prompt, readable: prefix, marked: prompt, ttl: childTtl(facts) }, facts);
  return {
    children: [{ from: "child", count: forks, usage }],
    parentNext: parentRequest(fanOut, prefix),
  };
};

/** The prime reads P and writes S. Children and parent wait for it, so all of them read P + S. */
const primed = (fanOut: FanOut): FamilyRequests => {
  const { prefix, tail, forks, facts } = fanOut;
  const shared = prefix + tail;
  const prime = usageOf({ prompt: shared, readable: prefix, marked: shared, ttl: childTtl(facts) }, facts);
  return {
    children: [
      { from: "prime", count: 1, usage: prime },
      { from: "follower", count: forks, usage: childUsage(fanOut, "keep", shared) },
    ],
    parentNext: parentRequest(fanOut, shared),
  };
};

/** The parent's next request is reader N + 1 of S. Beyond its own additions it pays:
 *  - at once: it is sent with the children, before any entry at S can be read. If the prefix is warm it reads P and
 *  writes S; if cold it writes P and S, like each child.
 *  - leader first: it is released with the followers and reads P + S. This is only a read even if the parent uses 1h
 *  markers, because a lifetime is not part of the key; its own additions are written with its own lifetime.
 *  - trim: no child sends S, so nobody writes it for the parent: it reads P (warm, or written by the cold leader it
 *  waited for) and writes S itself. That is why trimming saves the children N·r·S and the parent nothing. */
const rules: readonly PlanRule[] = [
  {
    id: "no-cache",
    title: "no cache",
    formula: "N(P+S+D)",
    requires: "any",
    inFlight: "keep",
    requests: withoutCache,
  },
  {
    id: "last-block",
    title: "warm, marker on the last block only",
    formula: "N(rP + w(S+D))",
    requires: "warm",
    inFlight: "keep",
    requests: lastBlockOnly,
  },
  {
    id: "at-once",
    title: "warm, all at once",
    formula: "N(rP + wS + dD)",
    requires: "warm",
    inFlight: "keep",
    requests: (fanOut) => familyRequests(fanOut, "at-once", "keep"),
  },
  {
    id: "leader-first",
    title: "warm, leader first",
    formula: "N·rP + wS + (N−1)rS + N·dD",
    requires: "warm",
    inFlight: "keep",
    requests: (fanOut) => familyRequests(fanOut, "leader-first", "keep"),
  },
  {
    id: "prime",
    title: "warm, dedicated prime",
    formula: "N·rP + wS + (N−1)rS + N·dD + r(P+S)",
    requires: "warm",
    inFlight: "keep",
    requests: primed,
  },
  {
    id: "cold-at-once",
    title: "cold, all at once",
    formula: "N(w(P+S) + dD)",
    requires: "cold",
    inFlight: "keep",
    requests: (fanOut) => familyRequests(fanOut, "at-once", "keep"),
  },
  {
    id: "cold-leader-first",
    title: "cold, leader first",
    formula: "(w+(N−1)r)(P+S) + N·dD",
    requires: "cold",
    inFlight: "keep",
    requests: (fanOut) => familyRequests(fanOut, "leader-first", "keep"),
  },
  {
    id: "trim",
    title: "trim, warm",
    formula: "N(rP + dD′)",
    requires: "warm",
    inFlight: "trim",
    requests: (fanOut) => familyRequests(fanOut, "at-once", "trim"),
  },
  {
    id: "trim-cold-leader-first",
    title: "trim, cold, leader first",
    formula: "(w+(N−1)r)P + N·dD′",
    requires: "cold",
    inFlight: "trim",
    requests: (fanOut) => familyRequests(fanOut, "leader-first", "trim"),
  },
];

/** If plans cost the same, prefer the one that waits least and keeps most. */
const preferred: readonly PlanId[] = [
  "at-once",
  "cold-at-once",
  "leader-first",
  "cold-leader-first",
  "trim",
  "trim-cold-leader-first",
  "last-block",
  "prime",
  "no-cache",
];

const planOf = (rule: PlanRule, fanOut: FanOut): LaunchPlan => {
  const { requests, ...named } = rule;
  // A plan is billed in the state it relies on, so that warm and cold plans can be compared whatever the current state.
  const state = rule.requires === "any" ? fanOut : { ...fanOut, warm: rule.requires === "warm" };
  const sent = requests(state);
  const children = billOf(sent.children, fanOut);
  const parentNext = billOf(sent.parentNext, fanOut);
  return {
    ...named,
    applies: rule.requires === "any" || (rule.requires === "warm") === fanOut.warm,
    requests: [...sent.children, ...sent.parentNext],
    children,
    parentNext,
    total: addBills(children, parentNext),
  };
};

const least = (plans: readonly LaunchPlan[]): LaunchPlan =>
  plans.reduce((best, plan) => {
    const difference = comparableCost(plan.total) - comparableCost(best.total);
    const noise = 1e-9 * comparableCost(best.total);
    if (Math.abs(difference) > noise) return difference < 0 ? plan : best;
    return preferred.indexOf(plan.id) < preferred.indexOf(best.id) ? plan : best;
  });

export const forkPlans = (fanOut: FanOut): ForkPlans => {
  checkFanOut(fanOut);
  const plans = rules.map((rule) => planOf(rule, fanOut));
  const now = plans.filter((plan) => plan.applies);
  return { plans, cheapest: least(now), cheapestKept: least(now.filter((plan) => plan.inFlight === "keep")) };
};

// --- a fork against a fresh sub-agent --------------------------------------------------------------------------------

export type BreakEvenQuestion = {
  /** F: system prompt and tools of a fresh sub-agent, tokens. */
  readonly fresh: number;
  /** X: context that it has to rediscover. */
  readonly rediscover: number;
  /** O: output tokens that it needs to rediscover it. */
  readonly rediscoverOutput: number;
  /** B: how much longer the parent's brief is than a directive. */
  readonly brief: number;
  /** q: price of output relative to input. */
  readonly outputRatio: number;
  readonly prefix: number;
  readonly tail: number;
  readonly read: number; // r
  readonly write: number; // w of the sub-agent's own markers
  readonly warm?: boolean; // default: true
  /** Siblings that share the write of a cold prefix. Default: 1. */
  readonly forks?: number;
};

/** "always": no number of turns makes the fork more expensive. "until": cheaper while it has fewer turns than this. */
export type BreakEven =
  | { readonly kind: "always"; readonly reason: string }
  | { readonly kind: "until"; readonly turns: number; readonly reason: string };

export const breakEven = (question: BreakEvenQuestion): BreakEven => {
  const { fresh, rediscover, rediscoverOutput, brief, outputRatio, prefix, tail, read, write } = question;
  const carriedByFork = prefix + tail;
  const carriedByFresh = fresh + rediscover;
  const carried = `a fork carries ${formatFigure(carriedByFork)} tokens, a fresh sub-agent ${formatFigure(carriedByFresh)}`;

  const coldShare = question.warm === false ? ((write - read) * carriedByFork) / (question.forks ?? 1) : 0;
  const spared = (write - read) * carriedByFresh + outputRatio * (rediscoverOutput + brief) - coldShare;
  const perTurn = read * (carriedByFork - carriedByFresh);

  if (perTurn <= 0 && spared >= 0) return { kind: "always", reason: `${carried}: the fork is never more expensive` };
  const turns = perTurn <= 0 ? 0 : Math.max(0, spared / perTurn);
  if (turns <= 1) return { kind: "until", turns, reason: `${carried}: the fork is more expensive from its first turn` };
  const start = question.warm === false ? "at the start, after its share of the cold write," : "at the start";
  return {
    kind: "until",
    turns,
    reason:
      `${carried}: the fork saves ${formatFigure(Math.round(spared))} uncached tokens ${start} ` +
      `and pays ${formatFigure(Math.round(perTurn))} more each turn`,
  };
};
