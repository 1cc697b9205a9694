/** How does a family grow from its parent: what does each member add, where do markers go, what does it cost, and in
 *  which order is it sent? Pure, and the only code that answers this: `forkFamily` and the runtime both build families
 *  here. Siblings, and the parent's own next request, differ only in what they add after the shared tail.
 *  Elsewhere: the shared tail and a fork's directive (fork-messages.ts), complete requests for your own loop
 *  (fork-requests.ts), sending them in order (send-family.ts, launch-gate.ts). */

import {
  decideLaunch,
  type InFlight,
  type LaunchDecision,
  type LaunchQuestion,
  type ModelFacts,
} from "./cost/index.ts";
import type { SharedTail } from "./fork-messages.ts";
import { type FrozenPrefix, familyMarkers, type Marker, type Segment } from "./prefix/index.ts";
import type { Block, Message, ToolResultBlock, Ttl } from "./request.ts";

/** What one member adds after the shared tail: its own blocks, then whole messages. */
export type MemberContent = {
  readonly blocks: readonly Block[];
  readonly messages?: readonly Message[];
  /** It will send no second request, so a marker at its end would serve nobody. Default: false. */
  readonly singleTurn?: boolean;
};

/** One step of growth: more blocks in the open user message, or a message. */
export type Addition =
  | { readonly kind: "blocks"; readonly blocks: readonly Block[] }
  | { readonly kind: "message"; readonly message: Message };

export type FamilyParent = {
  /** The parent's last request as it was sent; before the first one, the conversation so far. */
  readonly sent: FrozenPrefix;
  readonly markers: readonly Marker[];
  /** How many tokens the provider counted for how many bytes. Default: estimated at four bytes per token. */
  readonly measured?: { readonly bytes: number; readonly tokens: number } | undefined;
};

export type FamilyStart = {
  readonly parent: FamilyParent;
  readonly tail: SharedTail;
  /** The parent's own tail, if it differs from the members' tail because that was trimmed or has placeholders instead
   *  of results. */
  readonly parentTail?: SharedTail;
  readonly members: readonly MemberContent[];
  /** The parent's own next request: its last blocks, or "unknown" if they are not written yet. Default: there is
   *  none. */
  readonly parentNext?: MemberContent | "unknown";
  readonly inFlight: InFlight;
  /** The parent's entries have expired. */
  readonly cold: boolean;
  /** How long the parent's entries still live, if known. */
  readonly expiresInMs?: number;
  readonly ttl: { readonly members: Ttl; readonly parent: Ttl };
  readonly facts: ModelFacts | undefined;
  /** The provider also marks the end of each request by itself. Default: false. */
  readonly implicit?: boolean;
  readonly parentTtl?: Ttl; // default: 5m
};

/** In tokens: what is inherited (P), shared beyond it (S), each member's own (D, on average) and the parent's note. */
export type FamilySizes = {
  readonly prefix: number;
  readonly tail: number;
  readonly directive: number;
  readonly trailing: number;
};

export type FamilyPlan = {
  readonly members: readonly (readonly Addition[])[];
  readonly parentNext: readonly Addition[];
  readonly sizes: FamilySizes;
  readonly question: LaunchQuestion;
  readonly decision: LaunchDecision;
  /** The markers of a member, by its index, or of the parent, after it has grown by its additions. */
  readonly markers: (line: number | "parent", grown: FrozenPrefix) => readonly Marker[];
};

export const planFamily = (start: FamilyStart): FamilyPlan => {
  const { parent, tail, parentTail = tail, ttl, cold, implicit = false, facts } = start;
  const members = start.members.map((content) => additionsFor(tail, content));
  const note = start.parentNext === "unknown" ? undefined : start.parentNext;
  const parentNext = note ? additionsFor(parentTail, note) : [];
  const sizes = sizesOf(start, { members, parentNext });
  const isSingle = !implicit && start.members.every(({ singleTurn }) => singleTurn);
  const question: LaunchQuestion = {
    prefix: sizes.prefix,
    tail: sizes.tail,
    directive: sizes.directive,
    forks: members.length,
    warm: !cold,
    inFlight: start.inFlight,
    parentNext: start.parentNext ? { trailing: sizes.trailing } : "none",
    facts,
    ...(isSingle ? { singleTurn: true } : {}),
    ...(start.parentTtl === undefined ? {} : { parentTtl: start.parentTtl }),
    ...(start.expiresInMs === undefined ? {} : { expiresInMs: start.expiresInMs }),
  };
  const common = { cold, implicitEnd: implicit ? parent.sent.tip : undefined };
  return {
    members,
    parentNext,
    sizes,
    question,
    decision: decideLaunch(question),
    markers: (line, grown) =>
      familyMarkers(
        grown,
        parent.markers,
        line === "parent"
          ? { ...common, ...endOf(parentTail.sharedEnd), line, ttl: ttl.parent, tail: true }
          : {
              ...{ ...common, ...endOf(tail.sharedEnd), line: "fork", ttl: ttl.members },
              tail: !start.members[line]?.singleTurn,
            },
      ),
  };
};

const endOf = (sharedEnd: Segment | undefined): { readonly sharedEnd?: Segment } => (sharedEnd ? { sharedEnd } : {});

/** On models that drop earlier thinking when new user text arrives, texts go inside the last result. */
const additionsFor = (tail: SharedTail, { blocks, messages = [] }: MemberContent): readonly Addition[] => {
  const { held, isOpen } = tail;
  const own = held ? [inside(held, blocks), ...blocks.filter(({ type }) => type !== "text")] : blocks;
  const later = messages.map((message): Addition => ({ kind: "message", message }));
  if (own.length === 0) return later;
  // A turn with one call shares no result, so the message that holds it begins here.
  const first: Addition = isOpen
    ? { kind: "blocks", blocks: own }
    : { kind: "message", message: { role: "user", content: own } };
  return [first, ...later];
};

const inside = (held: ToolResultBlock, blocks: readonly Block[]): ToolResultBlock => ({
  ...held,
  content: [...held.content, ...blocks.filter((block) => block.type === "text")],
});

/** A line with its additions at the end. */
export const growLine = (prefix: FrozenPrefix, additions: readonly Addition[]): FrozenPrefix =>
  additions.reduce(
    (line, addition) => (addition.kind === "blocks" ? line.extend(addition.blocks) : line.append(addition.message)),
    prefix,
  );

/** Where no provider has counted yet: close enough to compare one order with another. */
const BYTES_PER_TOKEN = 4;

/** Size of the parent's note if it is not written yet. */
const USUAL_TRAILING = 60;

type Lines = Pick<FamilyPlan, "members" | "parentNext">;

/** Tokens as the provider counted them; otherwise estimated from the parent's bytes per token. */
const sizesOf = ({ parent, parentTail, tail, ...start }: FamilyStart, { members, parentNext }: Lines): FamilySizes => {
  const { sent, measured } = parent;
  const perToken = measured && measured.tokens > 0 ? measured.bytes / measured.tokens : BYTES_PER_TOKEN;
  const tokens = (bytes: number): number => Math.max(0, Math.round(bytes / perToken));
  const lengthOf = (additions: readonly Addition[]): number => tokens(JSON.stringify(additions).length);
  return {
    prefix: measured?.tokens ?? tokens(sent.byteLength),
    tail: tokens((parentTail ?? tail).prefix.byteLength - (measured?.bytes ?? sent.byteLength)),
    directive: members.reduce((sum, additions) => sum + lengthOf(additions), 0) / Math.max(1, members.length),
    trailing: start.parentNext === "unknown" ? USUAL_TRAILING : start.parentNext ? lengthOf(parentNext) : 0,
  };
};
