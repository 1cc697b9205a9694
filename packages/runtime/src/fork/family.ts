/** How a family grows from its parent's line: what each child starts from, in which order all are sent, and what each
 *  should read from the cache.
 *  Children share every byte up to the end of what they inherit, and so does the parent's next request if it has the
 *  same tail. If waiting pays off, no member is sent while the leader is unanswered.
 *  Elsewhere: bytes, markers and economics (@prefork/wire), running a child (../children: runs.ts). */

import {
  type Addition,
  childTtl,
  decideLaunch,
  directiveText,
  entryLifetimeMs,
  type FamilyPlan,
  type FrozenPrefix,
  type GateClock,
  InputError,
  LaunchGate,
  launchOrder,
  type MemberContent,
  type ModelFacts,
  planFamily,
  type SharedTail,
  shareTail,
  type ToolResultBlock,
  type Ttl,
  text,
} from "@prefork/wire";
import type { LineageState, NextRequest } from "../agent/index.ts";
import { noteText } from "../context/index.ts";
import type { Growth } from "../journal/index.ts";
import type { ForkPlan, TailChoice } from "../ports.ts";
import type { Expectation } from "./verify.ts";

export type FamilyRequest = {
  /** The parent's line, after the shared results were entered, or after the last answer. */
  readonly parent: LineageState;
  /** The turn's last tool result, held back so that each member's text can be appended inside it. */
  readonly lastResult: ToolResultBlock | undefined;
  /** True if the model drops earlier thinking when new user text arrives. */
  readonly insideLastResult: boolean;
  readonly plans: readonly ForkPlan[];
  readonly tail: Required<TailChoice>;
  /** Does the parent's own next request follow at once? */
  readonly parentFollows: boolean;
  readonly facts: ModelFacts | undefined;
  readonly ttl: Ttl;
  readonly now: number;
  /** How many can begin now; others wait in the queue. Default: all. */
  readonly places?: number;
  /** Whether the provider explains cache misses on request. */
  readonly diagnoses: boolean;
  /** More forks of the same bytes may be requested one by one, and the parent may continue at any moment, so the first
   *  fork leads as if the others were already waiting. */
  readonly mayGrow?: boolean; // default: false
  /** The gate of earlier forks of the same bytes. */
  readonly gate?: LaunchGate;
  readonly clock?: GateClock; // default: real time
};

export type GrownFamily = {
  /** The prefix that every member starts from. It is in the parent's journal. */
  readonly base: FrozenPrefix;
  /** Shared by all children, but not by the parent, after `base`. */
  readonly shared: Growth | undefined;
  readonly children: readonly (readonly Addition[])[];
  readonly requests: readonly NextRequest[];
  readonly parent: NextRequest | undefined;
  readonly gate: LaunchGate;
  /** Tokens that all members share. */
  readonly sharedTokens: number;
  readonly reason: string;
  /** What would be cheaper, and what costs more than expected. */
  readonly advice: readonly string[];
  readonly expectations: readonly Expectation[];
};

/** The time that a request takes to arrive. */
export const TRANSIT_MS = 10_000;

export const growFamily = (start: FamilyRequest): GrownFamily => {
  const { parent, plans, tail, parentFollows, facts, ttl, now } = start;
  const { markers, responseId, measured } = parent;
  const inherited = inherit(start);
  const { base, shared } = inherited;
  const remainingMs =
    parent.askedAt === undefined ? 0 : entryLifetimeMs(ttl, facts) - Math.max(0, now - parent.askedAt);
  const cold = remainingMs < TRANSIT_MS;
  // Children are short-lived, so their entries use the child TTL even if the parent pays for a longer one.
  const memberTtl = childTtl(facts);
  const plan = planFamily({
    parent: { sent: parent.lastSent ?? parent.prefix, markers, measured },
    tail: inherited.tail,
    parentTail: shared ? withoutEnd(inherited.tail) : inherited.tail,
    members: plans.map(contentOf),
    ...(parentFollows ? { parentNext: "unknown" } : {}),
    ...{ inFlight: tail.inFlight, cold, facts, parentTtl: ttl },
    ttl: { members: memberTtl, parent: ttl },
    ...(cold ? {} : { expiresInMs: remainingMs }),
  });
  const { question, decision, sizes } = plan;
  const { launch, waitCapMs } = start.mayGrow ? decideLaunch({ ...question, forks: plans.length + 1 }) : decision;
  const lifetimeMs = entryLifetimeMs(memberTtl, facts);
  const order = { ...launchOrder({ launch, waitCapMs }, parent.protocol), lifetimeMs };
  const gate = start.gate ?? new LaunchGate(order, start.clock);
  const request = (line: number | "parent"): NextRequest => ({
    markers: (grown) => plan.markers(line, grown),
    admit: (signal) => gate.admit(signal),
    ...(start.diagnoses && responseId !== undefined && line !== "parent" ? { diagnoseAgainst: responseId } : {}),
  });
  const knownMissReason = knownMissReasonFor(parent, { prefix: inherited.tail.prefix, cold });
  const isLed = (place: number): boolean => launch === "at-once" || (place === 0 && !start.gate);
  const expectations = plans.map((_, place) =>
    expectationFor({ ...sizes, facts, knownMissReason, leads: isLed(place), parent, base, until: now + lifetimeMs }),
  );
  // The parent takes part if it has its children's tail. It also takes part if they wait for a leader, because an entry
  // that is about to expire for them may be gone for the parent too.
  const follows = parentFollows && ((tail.inFlight === "keep" && !shared) || launch === "leader-first");
  return {
    base,
    shared,
    children: plan.members,
    requests: plans.map((_, place) => request(place)),
    gate,
    sharedTokens: sizes.prefix + (tail.inFlight === "keep" ? sizes.tail : 0),
    parent: follows || start.mayGrow ? request("parent") : undefined,
    reason: decision.reason,
    advice: [...trimAdvice(plan), ...tierAdvice(sizes, facts), ...queueAdvice(start, lifetimeMs)],
    expectations,
  };
};

/** The parent's bytes differ there, so a marker at that end would be of no use to it. */
const withoutEnd = ({ sharedEnd: _end, ...tail }: SharedTail): SharedTail => tail;

type Inherited = {
  readonly base: FrozenPrefix;
  readonly shared: Growth | undefined;
  readonly tail: SharedTail;
};

const inherit = ({ parent, lastResult, insideLastResult, tail }: FamilyRequest): Inherited => {
  const { prefix, lastSent, answered } = parent;
  if (tail.inFlight === "trim") {
    const base = lastSent ?? prefix;
    if (insideLastResult && endsInResult(base))
      throw new InputError(
        `cannot trim: ${prefix.model} drops earlier thinking when new user text arrives, so the fork would lose the cache from there; use inFlight: "keep"`,
      );
    return { base, shared: undefined, tail: fromEnd(parent, shareTail(base)) };
  }
  const base = tail.placeholders === "all" ? (answered ?? prefix) : prefix;
  const shared = shareTail(lastSent ?? base, {
    ...(lastSent ? { inFlight: base } : {}),
    insideLastResult: insideLastResult || lastResult !== undefined,
    results: lastResult && base === prefix ? [lastResult] : [],
  });
  const isSame = shared.prefix.hash === prefix.hash;
  // If every call was answered by the constant, the parent has the same tail after all.
  if (shared.results.length === 0 || isSame) {
    const whole = isSame ? { ...shared, prefix, ...(prefix.tip ? { sharedEnd: prefix.tip } : {}) } : shared;
    return {
      base: isSame ? prefix : base,
      shared: undefined,
      tail: fromEnd(parent, lastResult && isSame ? { ...whole, held: lastResult } : whole),
    };
  }
  return { base, shared: growthOf(base, shared), tail: fromEnd(parent, shared) };
};

/** Our own lines end in a message that can be continued. If nothing was sent yet, everything is shared, because there is no
 *  cache entry that a child could start from. */
const fromEnd = ({ lastSent }: LineageState, tail: SharedTail): SharedTail => {
  const { tip } = tail.prefix;
  return { ...tail, isOpen: tip?.role === "user", ...(lastSent || !tip ? {} : { sharedEnd: tip }) };
};

/** The results that all children share and the parent does not, as an entry of their journals. */
const growthOf = (base: FrozenPrefix, { prefix, results }: SharedTail): Growth => ({
  prefix,
  drafts: [
    {
      entry: { kind: "message", message: { role: "user", content: results } },
      sent: { hash: prefix.hash, pieces: prefix.sentSince(base) },
    },
  ],
});

const endsInResult = (prefix: FrozenPrefix): boolean => {
  const { tip } = prefix;
  if (tip?.kind !== "block") return false;
  return prefix.segmentBytes(tip).subarray(tip.lead).toString("utf8", 0, RESULT.length) === RESULT;
};
const RESULT = '{"type":"tool_result"';

/** A fork's own content: its directive or the caller's messages, after a reminder if there is one. */
const contentOf = ({ directive, protocol, reminder, messages = [], limits }: ForkPlan): MemberContent => {
  const reminded = reminder === undefined ? [] : [text(noteText({ kind: "reminder", text: reminder }))];
  const [first, ...rest] = messages;
  const singleTurn = limits.turns === 1;
  if (first === undefined) return { blocks: [...reminded, text(directiveText(directive, protocol))], singleTurn };
  return first.role === "user"
    ? { blocks: [...reminded, ...first.content], messages: rest, singleTurn }
    : { blocks: reminded, messages, singleTurn };
};

/** Advise trimming if it costs less than this fraction. */
const ADVISE_BELOW = 0.9;

/** Trimming is only suggested, never done silently, because children would not see the end of their parent's conversation. */
const trimAdvice = ({ question, decision }: FamilyPlan): readonly string[] => {
  const { atOnce, leaderFirst, launch } = decision;
  const trimmed = decideLaunch({ ...question, inFlight: "trim" });
  const costs = (launch === "at-once" ? atOnce : leaderFirst).units;
  const would = (trimmed.launch === "at-once" ? trimmed.atOnce : trimmed.leaderFirst).units;
  if (would >= costs * ADVISE_BELOW) return [];
  return [
    `without the turn in flight (inFlight: "trim") it would cost ${Math.round(would)} uncached tokens instead of ${Math.round(costs)}`,
  ];
};

const tierAdvice = (sizes: FamilyPlan["sizes"], facts: ModelFacts | undefined): readonly string[] => {
  const { prefix, tail, directive } = sizes;
  const crossed = facts?.tiers?.find(({ above }) => prefix <= above && prefix + tail + directive > above);
  if (!facts || !crossed) return [];
  return [
    `a fork's prompt exceeds ${crossed.above} tokens; above that, all input costs $${crossed.prices.input} per million instead of $${facts.prices.input}`,
  ];
};

/** Forks that leave the queue late may find the entry expired. Then one of them leads again, and the others wait for it. */
const queueAdvice = ({ plans, places }: FamilyRequest, lifetimeMs: number): readonly string[] => {
  if (places === undefined || plans.length <= places) return [];
  const minutes = Math.round(lifetimeMs / 60_000);
  return [
    `${plans.length - places} of ${plans.length} wait in the queue; the shared entry lives ${minutes} minutes after its last use, and a fork that starts later than that has to write the shared entry again`,
  ];
};

/** Why the leader can read little or nothing; undefined if it can read the prefix. */
const knownMissReasonFor = (
  { lastSent, askedAt }: LineageState,
  { prefix, cold }: { readonly prefix: FrozenPrefix; readonly cold: boolean },
): string | undefined => {
  if (!lastSent || askedAt === undefined) return "nothing of the conversation was cached yet, and this fork wrote it";
  if (cold) return "the parent's entry had expired, and this fork wrote it again";
  return prefix.sentSince(lastSent).some((json) => json.includes('"type":"image"'))
    ? "this turn added an image, which invalidates the provider's cache of the messages"
    : undefined;
};

type Expecting = FamilyPlan["sizes"] & {
  readonly facts: ModelFacts | undefined;
  readonly knownMissReason: string | undefined;
  readonly leads: boolean;
  readonly parent: LineageState;
  readonly base: FrozenPrefix;
  readonly until: number;
};

const expectationFor = (expecting: Expecting): Expectation => {
  const { prefix, tail, facts, knownMissReason, leads, parent, base, until } = expecting;
  const least = facts?.minimumPrefix ?? 0;
  const sent = parent.lastSent ?? base;
  const nothing = (why: string): Expectation => ({ tokens: 0, estimated: 0, knownMissReason: why, parent: sent });
  if (leads && knownMissReason !== undefined) return nothing(knownMissReason);
  const { unreportedReads: unreported, sharesTails = true, pacing } = parent.protocol;
  const most = prefix + (leads || !sharesTails ? 0 : tail);
  if (most < least) return nothing(`the prefix is shorter than ${least} tokens, the least that is cached`);
  const step = facts?.readStep ?? 1;
  const tokens = Math.floor(most / step) * step;
  // Without a provider count, only a shortfall of half is surely a miss; an estimate can also be off by one step.
  const guessed = parent.measured ? tokens - prefix : tokens / 2;
  const estimated = Math.max(0, guessed) + (step > 1 ? step : 0);
  const settledAt = (parent.answeredAt ?? 0) + (pacing?.settleMs ?? 0);
  return { tokens, estimated, parent: sent, until, settledAt, ...(unreported === undefined ? {} : { unreported }) };
};
