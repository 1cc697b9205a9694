/** Where cache markers go in the next request of a lineage. Pure.
 *  Invariant: there are at most four markers; lifetimes never grow along the prompt; the entry that the last request
 *  wrote can always be reached, even if the provider counts every block of a tool run as its own position.
 *  Elsewhere: the bytes of a marker (../protocols), inserting them (../prepare.ts), what they cost (../cost). */

import { SHORTEST_FIRST, type Ttl } from "../request.ts";
import type { FrozenPrefix, Segment } from "./prefix.ts";

/** `system`: the end of system, or of tools if there is no system. `inherited`: the parent's last marker, kept where it
 *  was (end of P). `shared`: the last block that all siblings share (end of S). `previous`: the tail of the last
 *  request, if it is out of look-back range of the new tail. `tail`: the last block. */
export type MarkerRole = "system" | "inherited" | "shared" | "previous" | "tail";

export type Marker = { readonly at: Segment; readonly role: MarkerRole; readonly ttl: Ttl };

/** A marker as data, for the journal. */
export type MarkerPlace = { readonly segment: number; readonly role: MarkerRole; readonly ttl: Ttl };

/** A provider looks this many positions back for earlier entries, counting the marker's own position as the first. */
export const LOOK_BACK = 20;

export type MarkerOptions = {
  readonly ttl?: Ttl; // for new markers; default: 5m
  /** Mark the last block. False for a request whose tail nobody will read again. Default: true. */
  readonly tail?: boolean;
};

export type NextMarkerOptions = MarkerOptions & {
  /** The last request got no answer, so what it marked may not have been written. Default: false. */
  readonly unanswered?: boolean;
  /** The end of the last answered request, in a lineage that inherits nothing. It is kept if later requests got no
   *  answer and the new tail cannot reach it. */
  readonly answered?: Segment;
};

/** Markers of the next request, after those of the `last` one: the end of system and the last block. A fork also keeps
 *  the two that it shares with its family. If the last tail is out of range, it is kept too. If the last request got no
 *  answer, the marker that the request before it wrote is also kept. */
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
  // The entry at S contains P, so a fork that is short of markers gives up the one at P.
  const family = inherited && (shared ?? inherited);
  const near = written ? [family ?? shared, written] : [inherited, shared];
  const between = reached ? near : [family ?? written, { ...lastTail, role: "previous" as const }];
  return ordered([system, ...between, marker(end, "tail", ttl)]);
};

export type FamilyMarkerOptions = MarkerOptions & {
  /** The end of the tail that all siblings share; absent if the in-flight turn was trimmed. */
  readonly sharedEnd?: Segment;
  /** The parent's entries have expired: kept markers get the new lifetime, because nobody reads the longer one. */
  readonly cold?: boolean;
  /** After a fan-out the parent continues with the same layout, but inherits nothing. Default: fork. */
  readonly line?: "fork" | "parent";
  /** The end of the parent's request, if the provider marks the end of each request by itself. Then nothing up to there
   *  needs a new marker, and neither does the new tail. */
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
  // A parent without any marker has cached nothing, so its head is as good a position as the end of S. A parent that has
  // markers needs no new one inside its bytes.
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

/** Markers from their journalled positions; a position that is not in the prefix is skipped. */
export const markersAt = (prefix: FrozenPrefix, places: readonly MarkerPlace[]): readonly Marker[] =>
  places.flatMap(({ segment, role, ttl }) => {
    const at = prefix.segmentAt(segment);
    return at?.site ? [{ at, role, ttl }] : [];
  });

const roleOf = (markers: readonly Marker[], role: MarkerRole): Marker | undefined =>
  markers.find((candidate) => candidate.role === role);

const marker = (at: Segment | undefined, role: MarkerRole, ttl: Ttl): Marker | undefined => at && { at, role, ttl };

/** Counts every block: the more expensive reading, so that no provider's way of counting loses the entry. */
const distance = (from: Segment, to: Segment): number => to.index - from.index;

/** The last block at or before `from` that can carry a marker. */
export const lastMarkable = (from: Segment | undefined): Segment | undefined => {
  let at = from;
  while (at && at.kind === "block" && !at.site) at = at.before;
  return at?.kind === "block" ? at : undefined;
};

/** In prompt order, at most one per position (the earlier role wins), and no lifetime longer than the one before it. */
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
