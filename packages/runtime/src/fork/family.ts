/** How a family grows from its parent's line: what each child starts from, and in which order all are sent.
 *  Invariant: children and the parent's next request share every byte up to the end of the parent's line; nobody is sent
 *  beside an unanswered leader where waiting pays.
 *  Elsewhere: bytes, markers and economics (@prefork/wire), running a child (host.ts). */

import {
  type Block,
  childTtl,
  decideLaunch,
  directiveText,
  type FrozenPrefix,
  familyMarkers,
  LaunchGate,
  type Marker,
  type ModelFacts,
  type Segment,
  type ToolResultBlock,
  type Ttl,
  text,
} from "@prefork/wire";
import type { LineageState, NextRequest } from "../loop/index.ts";

export type FamilyStart = {
  /** Right after what is shared was entered. */
  readonly shared: LineageState;
  /** The last result, where words must stand inside it. */
  readonly held: ToolResultBlock | undefined;
  readonly directives: readonly string[];
  readonly facts: ModelFacts | undefined;
  readonly ttl: Ttl;
  readonly now: number;
};

export type GrownFamily = {
  /** The blocks that only one child is given, in the order of the directives. */
  readonly children: readonly (readonly Block[])[];
  readonly fork: NextRequest;
  readonly parent: NextRequest;
  readonly reason: string;
  /** Tokens that the first request of the child at this place can read. */
  readonly inheritable: (place: number) => number;
};

const MINUTE_MS = 60_000;
const LIVES_MS: Readonly<Record<Ttl, number>> = {
  "5m": 5 * MINUTE_MS,
  "30m": 30 * MINUTE_MS,
  "1h": 60 * MINUTE_MS,
  "12h": 720 * MINUTE_MS,
};
/** What a request takes to arrive. */
const ON_THE_WAY_MS = 10_000;

export const growFamily = (start: FamilyStart): GrownFamily => {
  const { shared, held, directives, facts, ttl, now } = start;
  const { prefix, markers, measured, answeredAt } = shared;
  const sharedEnd = prefix.tip;
  const children = directives.map((directive) => wordsFor(directive, held));
  const cold = answeredAt === undefined || now - answeredAt > LIVES_MS[ttl] - ON_THE_WAY_MS;
  const bytesPerToken = measured && measured.tokens > 0 ? measured.bytes / measured.tokens : 4;
  const tokens = (bytes: number): number => Math.max(0, Math.round(bytes / bytesPerToken));
  const known = measured?.tokens ?? tokens(prefix.byteLength);
  const tailTokens = measured ? tokens(prefix.byteLength - measured.bytes) : 0;
  const own = children.reduce((sum, words) => sum + tokens(JSON.stringify(words).length), 0);
  const { launch, waitCapMs, reason } = decideLaunch({
    prefix: known,
    tail: tailTokens,
    directive: own / Math.max(1, children.length),
    forks: children.length,
    warm: !cold,
    parentNext: { trailing: 60 },
    parentTtl: ttl,
    facts,
  });
  const gate = new LaunchGate({ launch, waitCapMs });
  const request = (line: "fork" | "parent", lives: Ttl): NextRequest => ({
    markers: (grown) => marked(grown, { markers, sharedEnd, ttl: lives, cold, line }),
    admit: (signal) => gate.admit(signal),
  });
  const written = cold ? 0 : known;
  const inheritable = (place: number): number =>
    atLeast(launch === "at-once" || place === 0 ? written : known + tailTokens, facts);
  // Children live for minutes, whatever their parent pays for.
  return { children, fork: request("fork", childTtl(facts)), parent: request("parent", ttl), reason, inheritable };
};

/** Less than the model's minimum is not kept at all. */
const atLeast = (tokens: number, facts: ModelFacts | undefined): number =>
  tokens < (facts?.minimumPrefix ?? 0) ? 0 : tokens;

/** On models that drop earlier thinking when new user text arrives, words stand inside the last result. */
const wordsFor = (directive: string, held: ToolResultBlock | undefined): readonly Block[] => {
  const words = text(directiveText(directive));
  return held ? [{ ...held, content: [...held.content, words] }] : [words];
};

type Marking = {
  readonly markers: readonly Marker[];
  readonly sharedEnd: Segment | undefined;
  readonly ttl: Ttl;
  readonly cold: boolean;
  readonly line: "fork" | "parent";
};

const marked = (grown: FrozenPrefix, { markers, sharedEnd, ttl, cold, line }: Marking): readonly Marker[] =>
  familyMarkers(grown, markers, { ttl, cold, line, ...(sharedEnd ? { sharedEnd } : {}) });
