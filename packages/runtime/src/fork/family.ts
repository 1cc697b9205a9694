/** How a family grows from its parent's line: what each child starts from, and in which order all are sent.
 *  Invariant: children and the parent's next request share every byte up to the end of the parent's line; nobody is sent
 *  beside an unanswered leader where waiting pays.
 *  Elsewhere: bytes, markers and economics (@prefork/wire), running a child (host.ts). */

import {
  type Block,
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
  /** The blocks that only one child is given. */
  readonly children: readonly { readonly directive: string; readonly words: readonly Block[] }[];
  readonly fork: NextRequest;
  readonly parent: NextRequest;
  readonly reason: string;
  /** Tokens that a child's first request can read: all but its own words, once the leader has written the tail. */
  readonly inheritable: number;
};

/** Five minutes, less what a request takes to arrive. */
const WARM_MS = 290_000;

export const growFamily = (start: FamilyStart): GrownFamily => {
  const { shared, held, directives, facts, ttl, now } = start;
  const { prefix, markers, measured, answeredAt } = shared;
  const sharedEnd = prefix.tip;
  const children = directives.map((directive) => ({ directive, words: wordsFor(directive, held) }));
  const cold = answeredAt === undefined || now - answeredAt > WARM_MS;
  const bytesPerToken = measured && measured.tokens > 0 ? measured.bytes / measured.tokens : 4;
  const tokens = (bytes: number): number => Math.max(0, Math.round(bytes / bytesPerToken));
  const known = measured?.tokens ?? tokens(prefix.byteLength);
  const tailTokens = measured ? tokens(prefix.byteLength - measured.bytes) : 0;
  const own = children.reduce((sum, { words }) => sum + tokens(JSON.stringify(words).length), 0);
  const { launch, waitCapMs, reason } = decideLaunch({
    prefix: known,
    tail: tailTokens,
    directive: own / Math.max(1, children.length),
    forks: children.length,
    warm: !cold,
    parentNext: { trailing: 60 },
    facts,
  });
  const gate = new LaunchGate({ launch, waitCapMs });
  const request = (line: "fork" | "parent"): NextRequest => ({
    markers: (grown) => marked(grown, { markers, sharedEnd, ttl, cold, line }),
    admit: (signal) => gate.admit(signal),
  });
  return { children, fork: request("fork"), parent: request("parent"), reason, inheritable: known + tailTokens };
};

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
