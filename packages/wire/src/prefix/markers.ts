/** Where cache markers go in the next request of a lineage. Pure.
 *  Invariant: at most four; lifetimes never grow along the prompt; the entry that the last request wrote is always
 *  reached, even where the provider counts every block of a tool run as a position of its own.
 *  Elsewhere: which bytes a marker is (protocols/), splicing them in (prepare.ts), what they cost (economics/). */

import { SHORTEST_FIRST, type Ttl } from "../request.ts";
import type { FrozenPrefix, Segment } from "./prefix.ts";

/** `system`: end of system, or of tools without one. `inherited`: a parent's last marker, kept where it was (end of P).
 *  `shared`: the last block all siblings share (end of S). `previous`: the tail of the line's last request, out of
 *  look-back reach of the new one. `tail`: the last block. */
export type MarkerRole = "system" | "inherited" | "shared" | "previous" | "tail";

export type Marker = { readonly at: Segment; readonly role: MarkerRole; readonly ttl: Ttl };

/** A marker as data, for the journal. */
export type MarkerPlace = { readonly segment: number; readonly role: MarkerRole; readonly ttl: Ttl };

/** A provider looks for earlier entries this many positions back, the marker's own position counted as the first. */
export const LOOK_BACK = 20;

export type MarkerOptions = {
  readonly ttl?: Ttl; // for new markers; default: 5m
  /** Mark the last block. False for a request whose tail nobody will read again. Default: true. */
  readonly tail?: boolean;
};

export type NextMarkerOptions = MarkerOptions & {
  /** Nobody answered the last request: what it marked may not be written. Default: false. */
  readonly unanswered?: boolean;
  /** The end of the last request that was answered, in a line that inherits nothing: kept where nobody answered those
   *  after it and the new tail does not reach it. */
  readonly answered?: Segment;
};

/** Markers of the next request of a line, after those of its `last` one: end of system and its last block. A fork also
 *  keeps the two it shares with its family. Where one turn is out of reach of the last tail, that one is kept too; where
 *  nobody answered the last request, so is what the one before it had written. */
export const nextMarkers = (
  prefix: FrozenPrefix,
  last: readonly Marker[] = [],
  { ttl = "5m", tail = true, unanswered = false, answered }: NextMarkerOptions = {},
): readonly Marker[] => {
  const system = roleOf(last, "system") ?? marker(prefix.tip?.headEnd, "system", ttl);
  const inherited = roleOf(last, "inherited");
  const lastTail = roleOf(last, "tail");
  const end = tail ? lastMarkable(prefix.tip) : undefined;
  const lookBack = prefix.lookBack ?? LOOK_BACK;
  const own = inherited ? undefined : lastMarkable(answered);
  const isFar = own && distance(own, end ?? lastTail?.at ?? own) >= lookBack;
  const kept = roleOf(last, "previous") ?? (isFar ? marker(own, "previous", lastTail?.ttl ?? ttl) : undefined);
  const written = unanswered ? kept : undefined;
  const shared = (inherited ?? written) && roleOf(last, "shared");
  const reached = !lastTail || (end && distance(lastTail.at, end) < lookBack);
  // The entry at S contains P: when a fork is short of markers, the one at P is the one to give up.
  const family = inherited && (shared ?? inherited);
  const near = written ? [family ?? shared, written] : [inherited, shared];
  const between = reached ? near : [family ?? written, { ...lastTail, role: "previous" as const }];
  return ordered([system, ...between, marker(end, "tail", ttl)]);
};

export type FamilyMarkerOptions = MarkerOptions & {
  /** The end of the tail that all siblings share; absent when the in-flight turn was trimmed. */
  readonly sharedEnd?: Segment;
  /** The parent's entries have expired: kept markers get the new lifetime, as nobody reads the longer one. */
  readonly cold?: boolean;
  /** The parent goes on after a fan-out with the same layout, but inherits nothing. Default: fork. */
  readonly line?: "fork" | "parent";
  /** The end of the parent's request, where the provider marks the end of each request by itself: then nothing up to
   *  there needs a new marker, nor does the own tail. */
  readonly implicitEnd?: Segment | undefined;
};

/** Markers of a family's first requests: the parent's last two where they were, the end of the shared tail, and the
 *  request's own last block. */
export const familyMarkers = (
  prefix: FrozenPrefix,
  parent: readonly Marker[],
  { ttl = "5m", tail = true, sharedEnd, cold = false, line = "fork", implicitEnd }: FamilyMarkerOptions,
): readonly Marker[] => {
  const keep = (kept: Marker | undefined, role: MarkerRole): Marker | undefined =>
    kept && { at: kept.at, role, ttl: cold ? ttl : kept.ttl };
  const last = (kind: Segment["kind"]): Marker | undefined => parent.findLast(({ at }) => at.kind === kind);
  const inherited = last("block");
  // A parent without any marker has cached nothing: then its head is as good a place as the end of S. Where it has one,
  // a new marker in its bytes would gain nothing.
  const fresh = parent.length === 0 && !implicitEnd ? marker(prefix.tip?.headEnd, "system", ttl) : undefined;
  const shared = lastMarkable(sharedEnd);
  const isWritten = shared && implicitEnd && shared.index <= implicitEnd.index;
  return ordered([
    keep(last("system") ?? last("tool"), "system") ?? fresh,
    keep(inherited, line === "fork" ? "inherited" : "previous"),
    isWritten ? undefined : marker(shared, "shared", ttl),
    tail && !implicitEnd ? marker(lastMarkable(prefix.tip), "tail", ttl) : undefined,
  ]);
};

export const markerPlaces = (markers: readonly Marker[]): readonly MarkerPlace[] =>
  markers.map(({ at, role, ttl }) => ({ segment: at.index, role, ttl }));

/** Markers from their journalled places; a place that is not in the prefix is left out. */
export const markersAt = (prefix: FrozenPrefix, places: readonly MarkerPlace[]): readonly Marker[] =>
  places.flatMap(({ segment, role, ttl }) => {
    const at = prefix.segmentAt(segment);
    return at?.site ? [{ at, role, ttl }] : [];
  });

const roleOf = (markers: readonly Marker[], role: MarkerRole): Marker | undefined =>
  markers.find((candidate) => candidate.role === role);

const marker = (at: Segment | undefined, role: MarkerRole, ttl: Ttl): Marker | undefined => at && { at, role, ttl };

/** Blocks counted one by one: the dearer reading, so that no provider's way of counting loses the entry. */
const distance = (from: Segment, to: Segment): number => to.index - from.index;

/** The last block at or before `from` that can carry a marker. */
export const lastMarkable = (from: Segment | undefined): Segment | undefined => {
  let at = from;
  while (at && at.kind === "block" && !at.site) at = at.before;
  return at?.kind === "block" ? at : undefined;
};

/** In the order of the prompt, one a place (the earlier role wins), and no lifetime longer than one before it. */
const ordered = (candidates: readonly (Marker | undefined)[]): readonly Marker[] => {
  const places = new Map<number, Marker>();
  for (const candidate of candidates) {
    if (candidate && !places.has(candidate.at.index)) places.set(candidate.at.index, candidate);
  }
  const inOrder = [...places.values()].sort((a, b) => a.at.index - b.at.index);
  let shortest = SHORTEST_FIRST.length - 1;
  return inOrder.map((kept) => {
    shortest = Math.min(shortest, SHORTEST_FIRST.indexOf(kept.ttl));
    return { ...kept, ttl: SHORTEST_FIRST[shortest] ?? kept.ttl };
  });
};
