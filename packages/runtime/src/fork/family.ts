/** How a family grows from its parent's line: what each child starts from, and in which order all are sent.
 *  Invariant: children share every byte up to the end of what they inherit, and so does the parent's next request where
 *  it has the same tail; nobody is sent beside an unanswered leader where waiting pays.
 *  Elsewhere: bytes, markers and economics (@prefork/wire), running a child (../children: runs.ts). */

import {
  type Block,
  childTtl,
  decideLaunch,
  directiveText,
  type FrozenPrefix,
  familyMarkers,
  type GateEdge,
  InputError,
  type LaunchDecision,
  LaunchGate,
  type LaunchQuestion,
  launchOrder,
  livesMs,
  type Marker,
  type Message,
  type ModelFacts,
  placeholderFor,
  type Segment,
  type ToolResultBlock,
  type Ttl,
  text,
} from "@prefork/wire";
import type { LineageState, NextRequest } from "../agent/index.ts";
import { noteText } from "../context/index.ts";
import { type Growth, growMessage } from "../journal/index.ts";
import type { ForkPlan, TailChoice } from "./plan.ts";
import type { Expectation } from "./verify.ts";

export type FamilyStart = {
  /** The parent's line: right after what is shared was entered, or as it was after its last answer. */
  readonly parent: LineageState;
  /** The last result, not entered yet, where words must stand inside it. */
  readonly held: ToolResultBlock | undefined;
  /** New text of the user would cost the thinking before it. */
  readonly insideLastResult: boolean;
  readonly plans: readonly ForkPlan[];
  readonly tail: Required<TailChoice>;
  /** Does the parent's own next request follow at once? */
  readonly parentFollows: boolean;
  readonly facts: ModelFacts | undefined;
  readonly ttl: Ttl;
  readonly now: number;
  /** How many can begin now: others wait for a place. Default: all. */
  readonly places?: number;
  /** Whether the provider explains cache misses when it is asked to. */
  readonly diagnoses: boolean;
  /** More of them may be asked for from the same bytes, one by one, and the parent may go on at any moment: the first one
   *  leads as if they were there. */
  readonly mayGrow?: boolean; // default: false
  /** Of those that were asked for before, from the same bytes. */
  readonly gate?: LaunchGate;
  readonly edge?: GateEdge; // default: real time
};

/** Something that only one child is given. */
export type Entering =
  | { readonly kind: "blocks"; readonly blocks: readonly Block[] }
  | { readonly kind: "message"; readonly message: Message };

export type GrownFamily = {
  /** What all start from: it stands in the parent's journal. */
  readonly base: FrozenPrefix;
  /** What all share beyond it, and the parent does not. */
  readonly shared: Growth | undefined;
  readonly children: readonly (readonly Entering[])[];
  readonly requests: readonly NextRequest[];
  readonly parent: NextRequest | undefined;
  readonly gate: LaunchGate;
  /** Tokens that all share. */
  readonly sharedTokens: number;
  readonly reason: string;
  /** What would be cheaper, or costs more than it seems. */
  readonly advice: readonly string[];
  readonly expectations: readonly Expectation[];
};

/** What a request takes to arrive. */
export const ON_THE_WAY_MS = 10_000;

export const growFamily = (start: FamilyStart): GrownFamily => {
  const { parent, plans, tail, parentFollows, facts, ttl, now } = start;
  const { markers, responseId } = parent;
  const inherited = inherit(start);
  const { base, shared, held } = inherited;
  const prefix = shared?.prefix ?? base;
  const children = plans.map((plan) => wordsFor(plan, { prefix, held }));
  const sizes = sizesOf(parent, { prefix, children });
  const left = parent.askedAt === undefined ? 0 : livesMs(ttl, facts) - Math.max(0, now - parent.askedAt);
  const cold = left < ON_THE_WAY_MS;
  const question: LaunchQuestion = {
    ...sizes,
    forks: plans.length,
    warm: !cold,
    inFlight: tail.inFlight,
    parentNext: parentFollows ? { trailing: 60 } : "none",
    parentTtl: ttl,
    facts,
    ...(cold ? {} : { expiresInMs: left }),
  };
  const decision = decideLaunch(question);
  const { reason } = decision;
  const { launch, waitCapMs } = start.mayGrow ? decideLaunch({ ...question, forks: plans.length + 1 }) : decision;
  const lifetimeMs = livesMs(childTtl(facts), facts);
  const order = { ...launchOrder({ launch, waitCapMs }, parent.protocol), lifetimeMs };
  const gate = start.gate ?? new LaunchGate(order, start.edge);
  // Of what nobody has sent yet, all is shared: it has no entry that a child could begin with.
  const sharedEnd = tail.inFlight === "trim" && parent.asked ? undefined : prefix.tip;
  const request = (line: "fork" | "parent", marking: { readonly ttl: Ttl; readonly tail: boolean }): NextRequest => {
    const own = line === "fork" || !shared ? sharedEnd : undefined;
    return {
      markers: (grown) => marked(grown, { markers, sharedEnd: own, cold, line, ...marking }),
      admit: (signal) => gate.admit(signal),
      ...(start.diagnoses && responseId !== undefined && line === "fork" ? { diagnoseAgainst: responseId } : {}),
    };
  };
  // Children live for minutes, whatever their parent pays for; a tail that nobody reads again is not worth a marker.
  const lives = childTtl(facts);
  const requests = plans.map(({ limits }) => request("fork", { ttl: lives, tail: limits.turns !== 1 }));
  const foreseen = foreseenFor(parent, { prefix, cold });
  const isLed = (place: number): boolean => launch === "at-once" || (place === 0 && !start.gate);
  const expectations = plans.map((_, place) =>
    expectationFor({ ...sizes, facts, foreseen, leads: isLed(place), parent, base, until: now + lifetimeMs }),
  );
  // It has the tail of its children, or it waits with them: an entry that is about to end may be gone for it too.
  const follows = parentFollows && ((tail.inFlight === "keep" && !shared) || launch === "leader-first");
  return {
    base,
    shared,
    children,
    requests,
    gate,
    sharedTokens: sizes.prefix + (tail.inFlight === "keep" ? sizes.tail : 0),
    parent: follows || start.mayGrow ? request("parent", { ttl, tail: true }) : undefined,
    reason,
    advice: [...trimAdvice(question, decision), ...tierAdvice(sizes, facts), ...queueAdvice(start, lifetimeMs)],
    expectations,
  };
};

type Inherited = {
  readonly base: FrozenPrefix;
  readonly shared: Growth | undefined;
  readonly held: ToolResultBlock | undefined;
};

const inherit = ({ parent, held, insideLastResult, tail }: FamilyStart): Inherited => {
  const { prefix, asked, answered } = parent;
  if (tail.inFlight === "trim") {
    const base = asked ?? prefix;
    if (insideLastResult && endsInResult(base))
      throw new InputError(
        `cannot trim: ${prefix.model} drops earlier thinking when new user text arrives, so the fork would lose the cache from there; keep the turn under way`,
      );
    return { base, shared: undefined, held: undefined };
  }
  const base = tail.placeholders === "all" ? (answered ?? prefix) : prefix;
  // A call without a result that nobody holds back: then nothing but a constant can be shared.
  if (base.pending.length === 0 || (held && base === prefix)) return { base, shared: undefined, held };
  const constants = base.pending.map(placeholderFor);
  const last = insideLastResult ? constants.at(-1) : undefined;
  const entering = last ? constants.slice(0, -1) : constants;
  const shared =
    entering.length === 0 ? undefined : growMessage(base, { role: "user", content: entering }, { open: true });
  // Where every call was answered by the constant, the parent has the same tail after all.
  if (shared?.prefix.hash === prefix.hash) return { base: prefix, shared: undefined, held: held ?? last };
  return { base, shared, held: last };
};

const endsInResult = (prefix: FrozenPrefix): boolean => {
  const { tip } = prefix;
  if (tip?.kind !== "block") return false;
  return prefix.segmentBytes(tip).subarray(tip.lead).toString("utf8", 0, RESULT.length) === RESULT;
};
const RESULT = '{"type":"tool_result"';

type Words = { readonly prefix: FrozenPrefix; readonly held: ToolResultBlock | undefined };

/** On models that drop earlier thinking when new user text arrives, words stand inside the last result. */
const wordsFor = (plan: ForkPlan, { prefix, held }: Words): readonly Entering[] => {
  const { directive, protocol, reminder, messages = [] } = plan;
  const reminded = reminder === undefined ? [] : [text(noteText({ kind: "reminder", text: reminder }))];
  const [first, ...rest] = messages;
  const own: readonly Block[] =
    first === undefined ? [...reminded, text(directiveText(directive, protocol))] : [...reminded, ...userBlocks(first)];
  const later: readonly Message[] = first?.role === "assistant" ? messages : rest;
  const said = held ? [inside(held, own), ...own.filter(({ type }) => type !== "text")] : own;
  if (said.length === 0) return later.map(entire);
  // A turn with one call shares no result, so the message that holds it begins here.
  const opening: Entering =
    prefix.tip?.role === "user" ? blocks(said) : { kind: "message", message: { role: "user", content: said } };
  return [opening, ...later.map(entire)];
};

const blocks = (given: readonly Block[]): Entering => ({ kind: "blocks", blocks: given });
const entire = (message: Message): Entering => ({ kind: "message", message });
const userBlocks = ({ role, content }: Message): readonly Block[] => (role === "user" ? content : []);
const inside = (held: ToolResultBlock, own: readonly Block[]): ToolResultBlock => ({
  ...held,
  content: [...held.content, ...own.flatMap((block) => (block.type === "text" ? [block] : []))],
});

type Sizes = { readonly prefix: number; readonly tail: number; readonly directive: number };

/** In tokens: as the provider counted them where it has, by the parent's bytes a token where it has not. */
const sizesOf = (
  { measured, prefix: whole }: LineageState,
  { prefix, children }: { readonly prefix: FrozenPrefix; readonly children: GrownFamily["children"] },
): Sizes => {
  const bytesPerToken = measured && measured.tokens > 0 ? measured.bytes / measured.tokens : 4;
  const tokens = (bytes: number): number => Math.max(0, Math.round(bytes / bytesPerToken));
  const own = children.reduce((sum, words) => sum + tokens(JSON.stringify(words).length), 0);
  return {
    prefix: measured?.tokens ?? tokens(whole.byteLength),
    tail: measured ? tokens(prefix.byteLength - measured.bytes) : 0,
    directive: own / Math.max(1, children.length),
  };
};

/** Below this share it is worth a word. */
const WORTH_A_WORD = 0.9;

/** Nothing is trimmed in silence: children would not see their parent's last words. */
const trimAdvice = (question: LaunchQuestion, { atOnce, leaderFirst, launch }: LaunchDecision): readonly string[] => {
  const trimmed = decideLaunch({ ...question, inFlight: "trim" });
  const costs = (launch === "at-once" ? atOnce : leaderFirst).units;
  const would = (trimmed.launch === "at-once" ? trimmed.atOnce : trimmed.leaderFirst).units;
  if (would >= costs * WORTH_A_WORD) return [];
  return [
    `without the turn under way (inFlight: "trim") it would cost ${Math.round(would)} base-input tokens instead of ${Math.round(costs)}`,
  ];
};

const tierAdvice = (sizes: Sizes, facts: ModelFacts | undefined): readonly string[] => {
  const { prefix, tail, directive } = sizes;
  const crossed = facts?.tiers?.find(({ above }) => prefix <= above && prefix + tail + directive > above);
  if (!facts || !crossed) return [];
  return [
    `with its own words a fork passes ${crossed.above} tokens, from where all of its input costs $${crossed.prices.input} a million instead of $${facts.prices.input}`,
  ];
};

/** Those who get a place late may find nothing left: then one of them leads anew, and the others wait for it. */
const queueAdvice = ({ plans, places }: FamilyStart, lifetimeMs: number): readonly string[] => {
  if (places === undefined || plans.length <= places) return [];
  const minutes = Math.round(lifetimeMs / 60_000);
  return [
    `${plans.length - places} of ${plans.length} wait for a place; what all share lives ${minutes} minutes after it was last used, and whoever gets a place later than that writes it again for those behind`,
  ];
};

/** Why whoever leads can read little or nothing, if so. */
const foreseenFor = (
  { asked, askedAt }: LineageState,
  { prefix, cold }: { readonly prefix: FrozenPrefix; readonly cold: boolean },
): string | undefined => {
  if (!asked || askedAt === undefined) return "nothing of the conversation was cached yet, and this fork wrote it";
  if (cold) return "the parent's entry had expired, and this fork wrote it again";
  return prefix.sentSince(asked).some((json) => json.includes('"type":"image"'))
    ? "the turn under way brought a picture, and with one more of them the provider finds no message again"
    : undefined;
};

type Expecting = Sizes & {
  readonly facts: ModelFacts | undefined;
  readonly foreseen: string | undefined;
  readonly leads: boolean;
  readonly parent: LineageState;
  readonly base: FrozenPrefix;
  readonly until: number;
};

const expectationFor = (expecting: Expecting): Expectation => {
  const { prefix, tail, facts, foreseen, leads, parent, base, until } = expecting;
  const least = facts?.minimumPrefix ?? 0;
  const sent = parent.asked ?? base;
  const nothing = (why: string): Expectation => ({ tokens: 0, estimated: 0, foreseen: why, parent: sent });
  if (leads && foreseen !== undefined) return nothing(foreseen);
  const { untoldReads: untold, sharesTails = true, pacing } = parent.protocol;
  const most = prefix + (leads || !sharesTails ? 0 : tail);
  if (most < least) return nothing(`the prefix is shorter than ${least} tokens, the least that is cached`);
  const step = facts?.readStep ?? 1;
  const tokens = Math.floor(most / step) * step;
  // Where no provider has counted anything, only a loss of half is sure to be one; and an estimate may be on the other
  // side of a step.
  const guessed = parent.measured ? tokens - prefix : tokens / 2;
  const estimated = Math.max(0, guessed) + (step > 1 ? step : 0);
  const settledAt = (parent.answeredAt ?? 0) + (pacing?.settleMs ?? 0);
  return { tokens, estimated, parent: sent, until, settledAt, ...(untold === undefined ? {} : { untold }) };
};

type Marking = {
  readonly markers: readonly Marker[];
  readonly sharedEnd: Segment | undefined;
  readonly ttl: Ttl;
  readonly tail: boolean;
  readonly cold: boolean;
  readonly line: "fork" | "parent";
};

const marked = (grown: FrozenPrefix, { markers, sharedEnd, ...marking }: Marking): readonly Marker[] =>
  familyMarkers(grown, markers, { ...marking, ...(sharedEnd ? { sharedEnd } : {}) });
