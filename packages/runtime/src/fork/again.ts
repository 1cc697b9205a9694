/** How are forks sent that an earlier life of the session left before their first answer?
 *  Invariant: what a family shares may never have been written, so whoever is sent first marks its end and all others
 *  wait for that; so does the parent's next request, where it has not been sent since.
 *  Elsewhere: forks that are started (family.ts), what is woken and why (../children: host.ts). */

import {
  childTtl,
  entryLifetimeMs,
  type FrozenPrefix,
  familyMarkers,
  LaunchGate,
  type LaunchOrder,
  type Marker,
  type ModelFacts,
  nextMarkers,
  type Pacing,
  type Ticket,
  type Ttl,
} from "@prefork/wire";
import type { Lineage, NextRequest } from "../agent/index.ts";
import { ON_THE_WAY_MS } from "./family.ts";

/** What an earlier life left to go on from. */
export type LeftFamily = {
  /** What all of the family share. */
  readonly shared: FrozenPrefix;
  /** Of the parent's last request before the fan-out, and when that was sent. */
  readonly markers: readonly Marker[];
  readonly askedAt: number | undefined;
};

export type Around = { readonly facts: ModelFacts | undefined; readonly ttl: Ttl; readonly now: number };

/** As long as cold followers wait: what the leader has to write again may be the whole prefix. */
const ORDER: LaunchOrder = { launch: "leader-first", waitCapMs: 60_000 };

export class FamiliesAgain {
  readonly #gates = new Map<string, LaunchGate>();
  readonly #pacing: () => Pacing | undefined;

  constructor(pacing: () => Pacing | undefined) {
    this.#pacing = pacing;
  }

  /** For the first request of a fork that was never answered. */
  admit(family: string, signal: AbortSignal): Promise<Ticket> {
    return this.#gateOf(family).admit(signal);
  }

  /** The parent's own next one, where it was to follow the family. */
  ofParent(family: string, line: Lineage, { shared, around }: Joining): void {
    const { asked, askedAt, markers, prefix } = line.state;
    const isSent = asked !== undefined && asked.byteLength >= shared.byteLength;
    // Of a request that was sent and not answered, the markers are there already.
    const isMarked = markers.some(({ role }) => role === "shared");
    if (isSent || !prefix.startsWith(shared)) return; // its context may have been begun anew since
    const left = { shared, markers, askedAt };
    const next = this.#request(family, left, { line: "parent", ttl: around.ttl, cold: isCold(left, around) });
    line.plan(
      isMarked
        ? { ...next, markers: (grown) => nextMarkers(grown, markers, { ttl: around.ttl, unanswered: true }) }
        : next,
    );
  }

  #request(family: string, left: LeftFamily, marking: Marking): NextRequest {
    return { markers: (grown) => markersFor(grown, left, marking), admit: (signal) => this.admit(family, signal) };
  }

  #gateOf(family: string): LaunchGate {
    const gate = this.#gates.get(family) ?? new LaunchGate({ ...ORDER, ...this.#pacing() });
    this.#gates.set(family, gate);
    return gate;
  }
}

/** Of the first request of a fork that was never answered. */
export const markersAgain = (
  grown: FrozenPrefix,
  left: LeftFamily,
  { tail, ...around }: Around & { readonly tail: boolean },
): readonly Marker[] =>
  markersFor(grown, left, { line: "fork", tail, ttl: childTtl(around.facts), cold: isCold(left, around) });

const markersFor = (grown: FrozenPrefix, { shared, markers }: LeftFamily, marking: Marking): readonly Marker[] =>
  familyMarkers(grown, markers, { ...marking, ...(shared.tip ? { sharedEnd: shared.tip } : {}) });

type Joining = { readonly shared: FrozenPrefix; readonly around: Around };
type Marking = { readonly line: "fork" | "parent"; readonly tail?: boolean; readonly ttl: Ttl; readonly cold: boolean };

const isCold = ({ askedAt }: LeftFamily, { ttl, now, facts }: Around): boolean =>
  askedAt === undefined || entryLifetimeMs(ttl, facts) - (now - askedAt) < ON_THE_WAY_MS;
