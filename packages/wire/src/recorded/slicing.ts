/** Recorded bytes cut into segments, and the markers in them.
 *  Invariant: segments are slices of the given bytes; only cache markers are removed, and a marker that is kept goes
 *  back to its position byte for byte.
 *  Elsewhere: which values become segments (anthropic.ts, openai-responses.ts, openai-chat.ts), growing them
 *  (../prefix). */

import { isArrayAt, isObjectAt, isStringAt, itemsOf, type Member, membersOf, type Span } from "../json.ts";
import {
  type EncodedSegment,
  FrozenPrefix,
  lastMarkable,
  type Marker,
  type MarkerSite,
  type PrefixOrigin,
  type SegmentKind,
} from "../prefix/index.ts";
import type { Json, Ttl } from "../request.ts";
import { PARENT, type RecordedRequest, uniqueMembers } from "./recording.ts";

/** One value that becomes a segment, by its position in the bytes. */
export type Cut = Span &
  Pick<EncodedSegment, "kind" | "opens" | "beginsItem" | "within"> & {
    /** Where a new marker would go; absent: it cannot carry a new one. "never": nor a recorded one. */
    readonly mark?: MarkerOffset | "never";
  };

/** `wrap`: a plain string at this position must become a block before it can carry a marker. */
export type MarkerOffset = {
  readonly at: number;
  readonly wrap?: { readonly at: number; readonly open: string; readonly close: string };
};

/** What a marker looks like in a format. */
export type MarkerSyntax = {
  readonly keys: readonly string[];
  /** Members of a block whose parts may also carry one. Nothing deeper can. */
  readonly inside: readonly string[];
  readonly ttlOf: (marker: Json) => Ttl;
};

export type Layout = {
  readonly origin: PrefixOrigin;
  /** In byte order. */
  readonly cuts: readonly Cut[];
  /** Where the last kept item ends, and where the last item ends. */
  readonly keptEnd: number;
  readonly listEnd: number;
  readonly pending: readonly string[];
  readonly syntax: MarkerSyntax;
  /** New markers have an effect; otherwise only recorded ones have a position. */
  readonly marks: boolean;
  /** The body's own members, one of which may ask for a marker on the last block. */
  readonly top: readonly Member[];
  readonly notes: string[];
};

export const sliceRequest = (
  bytes: Buffer,
  layout: Layout,
): Pick<RecordedRequest, "prefix" | "closing" | "markers"> => {
  const { origin, cuts, keptEnd, listEnd, pending, syntax, top, notes } = layout;
  const automatic = top.find(isMarker(bytes, syntax));
  if (automatic) notes.push("automatic caching replaced by explicit markers, one of them where it would have been put");
  const removals = [
    ...cuts.flatMap((cut) => markersIn(bytes, cut, syntax)),
    ...(automatic
      ? [removalOf(bytes, { carrier: { members: top, end: bytes.length }, member: automatic, syntax })]
      : []),
  ].sort((a, b) => a.start - b.start);
  const end = cuts.at(-1)?.end ?? 0;
  const segments = cuts.map((cut, index) =>
    segmentOf(bytes, cut, { ...layout, from: cuts[index - 1]?.end ?? 0, removals }),
  );
  const prefix = FrozenPrefix.of(origin, segments, { pending, close: bytes.toString("utf8", end, keptEnd) });
  return {
    prefix,
    closing: bytesWithout(bytes, { start: listEnd, end: bytes.length }, removals).toString("utf8"),
    markers: recordedMarkers(prefix, automatic ? ttlAt(bytes, automatic, syntax) : undefined),
  };
};

/** Segments of more items in the same format, none of them marked. */
export const sliceItems = (bytes: Buffer, cuts: readonly Cut[]): readonly EncodedSegment[] =>
  cuts.map((cut, index) =>
    segmentOf(bytes, cut, { from: cuts[index - 1]?.end ?? 0, removals: NOTHING_REMOVED, marks: false }),
  );

/** What belongs to the prefix comes before the list. If it was written after the list it is moved, which does not
 *  change the rendered prompt. */
export const listLast = (
  bytes: Buffer,
  { list, early, notes }: { readonly list: string; readonly early: readonly string[]; readonly notes: string[] },
): Buffer => {
  const members = uniqueMembers(bytes, 0, PARENT);
  const at = members.findIndex(({ key }) => key === list);
  const late = members.slice(at + 1).filter(({ key }) => early.includes(key));
  if (late.length === 0) return bytes;
  notes.push(`moved before ${list}: ${late.map(({ key }) => key).join(", ")}`);
  const moved = [...members.filter((member) => !late.includes(member)).slice(0, at), ...late];
  const rest = members.slice(at).filter((member) => !late.includes(member));
  const texts = [...moved, ...rest].map(({ keyStart, end }) => bytes.toString("utf8", keyStart, end));
  return Buffer.from(`{${texts.join(",")}}`);
};

/** The head's settings, then each item of the named lists; `members` are those before the list. */
export const headCuts = (
  bytes: Buffer,
  members: readonly Member[],
  kinds: ReadonlyMap<string, SegmentKind>,
): readonly Cut[] => {
  const listed = members.filter(({ key }) => kinds.has(key));
  const cuts = listed.flatMap(({ key, start, end }): readonly Cut[] => {
    const kind = kinds.get(key) ?? "head";
    if (isArrayAt(bytes, start)) return itemsOf(bytes, start).map((item) => ({ kind, ...item }));
    return isStringAt(bytes, start) ? [{ kind, start, end }] : [];
  });
  const first = members.findIndex(({ key }) => kinds.has(key));
  const headEnd = members.slice(0, first < 0 ? members.length : first).at(-1)?.end ?? 1;
  return [{ kind: "head", start: 0, end: headEnd, mark: "never" }, ...cuts];
};

// --- what is taken out -----------------------------------------------------------------------------------------------

/** A marker's text with one comma, so that removing it leaves valid JSON. */
type Removal = Span & { readonly ttl: Ttl /** Where the object that carried it ends. */; readonly carrierEnd: number };

const NOTHING_REMOVED: readonly Removal[] = [];

/** An object that may carry a marker. */
type Carrier = { readonly members: readonly Member[]; readonly end: number };

type MarkedMember = { readonly carrier: Carrier; readonly member: Member; readonly syntax: MarkerSyntax };

const removalOf = (bytes: Buffer, { carrier, member, syntax }: MarkedMember): Removal => {
  const index = carrier.members.indexOf(member);
  const before = carrier.members[index - 1];
  const after = carrier.members[index + 1];
  const start = before ? before.end : member.keyStart;
  const end = !before && after ? after.keyStart : member.end;
  return { start, end, ttl: ttlAt(bytes, member, syntax), carrierEnd: carrier.end };
};

const ttlAt = (bytes: Buffer, { start, end }: Span, { ttlOf }: MarkerSyntax): Ttl =>
  ttlOf(JSON.parse(bytes.toString("utf8", start, end)) as Json);

const isMarker =
  (bytes: Buffer, { keys }: MarkerSyntax) =>
  ({ key, start }: Member): boolean =>
    keys.includes(key) && isObjectAt(bytes, start);

const objectsIn = (bytes: Buffer, start: number): readonly Carrier[] =>
  itemsOf(bytes, start)
    .filter((item) => isObjectAt(bytes, item.start))
    .map((item) => ({ members: membersOf(bytes, item.start), end: item.end }));

/** A block and the parts inside it, or the parts of a plain list. */
const carriersIn = (bytes: Buffer, { kind, start, end }: Cut, { inside }: MarkerSyntax): readonly Carrier[] => {
  if (kind === "head") return [];
  if (isArrayAt(bytes, start)) return objectsIn(bytes, start);
  if (!isObjectAt(bytes, start)) return [];
  const members = membersOf(bytes, start);
  const lists = members.filter(({ key, start: from }) => inside.includes(key) && isArrayAt(bytes, from));
  return [{ members, end }, ...lists.flatMap((list) => objectsIn(bytes, list.start))];
};

const markersIn = (bytes: Buffer, cut: Cut, syntax: MarkerSyntax): readonly Removal[] =>
  carriersIn(bytes, cut, syntax).flatMap((carrier) =>
    carrier.members.filter(isMarker(bytes, syntax)).map((member) => removalOf(bytes, { carrier, member, syntax })),
  );

/** The removals that overlap a span; they are sorted and do not overlap each other. */
const removalsWithin = (removals: readonly Removal[], start: number, end: number): readonly Removal[] => {
  let [low, high] = [0, removals.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((removals[middle] as Removal).end > start) high = middle;
    else low = middle + 1;
  }
  let after = low;
  while (after < removals.length && (removals[after] as Removal).start < end) after += 1;
  return removals.slice(low, after);
};

/** The bytes of a span without the removals; a removal may extend past the span's end. */
const bytesWithout = (bytes: Buffer, { start, end }: Span, removals: readonly Removal[]): Buffer => {
  const inside = removalsWithin(removals, start, end);
  if (inside.length === 0) return bytes.subarray(start, end);
  const froms = [start, ...inside.map((removal) => Math.min(removal.end, end))];
  const tos = [...inside.map((removal) => Math.max(removal.start, start)), end];
  return Buffer.concat(froms.map((from, index) => bytes.subarray(from, tos[index])));
};

// --- segments --------------------------------------------------------------------------------------------------------

type SegmentTerms = { readonly from: number; readonly removals: readonly Removal[]; readonly marks: boolean };

const segmentOf = (bytes: Buffer, cut: Cut, { from, removals, marks }: SegmentTerms): EncodedSegment => {
  const { start, end, mark, ...place } = cut;
  const site = siteOf(bytes, cut, { from, removals, marks });
  return {
    ...place,
    bytes: bytesWithout(bytes, { start: from, end }, removals),
    lead: bytesWithout(bytes, { start: from, end: start }, removals).length,
    ...(site ? { site } : {}),
  };
};

const siteOf = (
  bytes: Buffer,
  { start, end, mark }: Cut,
  { removals, marks }: SegmentTerms,
): MarkerSite | undefined => {
  const removal = removalsWithin(removals, start, end).at(-1);
  if (mark === "never" || (!removal && (!mark || !marks))) return undefined;
  const fromEnd = (at: number): number => bytesWithout(bytes, { start: at, end }, removals).length;
  const recorded = removal && {
    ttl: removal.ttl,
    fromEnd: fromEnd(removal.end),
    text: bytes.toString("utf8", removal.start, removal.end),
  };
  const { at, wrap }: MarkerOffset = mark ?? { at: (removal?.carrierEnd ?? end) - 1 };
  return {
    fromEnd: fromEnd(at),
    ...(wrap ? { wrap: { fromEnd: fromEnd(wrap.at), open: wrap.open, close: wrap.close } } : {}),
    ...(recorded ? { recorded } : {}),
  };
};

const recordedMarkers = (prefix: FrozenPrefix, automatic: Ttl | undefined): readonly Marker[] => {
  const markers: Marker[] = [];
  const end = automatic && lastMarkable(prefix.tip);
  for (let at = prefix.tip; at; at = at.before) {
    const ttl = at.site?.recorded?.ttl ?? (at === end ? automatic : undefined);
    if (ttl) markers.unshift({ at, ttl, role: at.kind === "block" ? "tail" : "system" });
  }
  return markers;
};
