/** A request that somebody else encoded, taken over as the bytes it is.
 *  Invariant: segments are slices of the given bytes; only cache markers are taken out, and a kept one goes back letter
 *  for letter to where it was.
 *  Elsewhere: growing it (prefix.ts), forking it (fork-requests.ts). */

import { InputError } from "./errors.ts";
import {
  isArray,
  isArrayAt,
  isObject,
  isObjectAt,
  isStringAt,
  itemsOf,
  type Member,
  membersOf,
  parseJson,
  type Span,
  skipSpace,
} from "./json.ts";
import { lastMarkable, type Marker } from "./markers.ts";
import { type EncodedSegment, FrozenPrefix, type MarkerSite, type SegmentKind } from "./prefix.ts";
import { anthropic } from "./protocols/index.ts";
import type { Json, JsonObject, Role, Ttl } from "./request.ts";

/** JSON as text, as bytes, or as an object, which has lost its own spelling. */
export type Recording = string | Uint8Array | JsonObject;

export type RecordedRequest = {
  readonly prefix: FrozenPrefix;
  /** Everything after the open message's own closing, verbatim. */
  readonly closing: string;
  readonly markers: readonly Marker[];
  readonly value: JsonObject;
  readonly notes: readonly string[];
};

/** An Anthropic request body. A string or bytes are taken as they are; an object has lost its own spelling already. */
export const readRecorded = (body: Recording, betas: readonly string[] = []): RecordedRequest => {
  const notes: string[] = [];
  if (typeof body !== "string" && !(body instanceof Uint8Array)) {
    notes.push("given as an object: number and key forms may differ from the bytes that were sent");
  }
  const given = Buffer.from(typeof body === "string" || body instanceof Uint8Array ? body : JSON.stringify(body));
  const value = validated(parseJson(given.toString("utf8"), "the recorded request"));
  const bytes = messagesLast(given, notes);
  return { ...slice(bytes, value, { betas, notes }), value, notes };
};

const validated = (value: Json): JsonObject => {
  if (!isObject(value)) throw new InputError("the recorded request must be a JSON object");
  if (typeof value.model !== "string") throw new InputError("the recorded request has no `model`");
  if (value.max_tokens === 0) throw new InputError("the recorded request only fills the cache: max_tokens is 0");
  checkList(value.tools ?? [], "tools");
  if (typeof value.system !== "string") checkList(value.system ?? [], "system");
  const { messages } = value;
  if (!isArray(messages)) throw new InputError("the recorded request has no `messages` array");
  if (messages.length === 0) throw new InputError("the recorded request's `messages` is empty");
  messages.forEach((message, index) => {
    if (!isObject(message)) throw new InputError(`messages[${index}] is not an object`);
    const { role, content } = message;
    if (role !== "user" && role !== "assistant" && role !== "system") {
      throw new InputError(`messages[${index}].role must be user, assistant or system`);
    }
    if (typeof content !== "string" && !isArray(content)) {
      throw new InputError(`messages[${index}].content must be a string or an array`);
    }
    if (content.length === 0) throw new InputError(`messages[${index}].content is empty`);
    if (isArray(content)) checkBlocks(content, `messages[${index}].content`);
  });
  return value;
};

const checkList = (value: Json, name: string): void => {
  const wanted = name === "system" ? "a string or an array of objects" : "an array of objects";
  if (!isArray(value) || !value.every(isObject)) throw new InputError(`${name} must be ${wanted}`);
};

/** Blocks that a provider would know: objects with a type. */
export const checkBlocks = (blocks: readonly Json[], name: string): void => {
  const wrong = blocks.findIndex((block) => !isObject(block) || typeof block.type !== "string");
  if (wrong >= 0) throw new InputError(`${name}[${wrong}] is not a block with a type`);
};

/** JSON readers differ in which of two equal keys they believe; here both would be sent. */
const uniqueMembers = (bytes: Buffer, from: number, name: string): readonly Member[] => {
  const members = membersOf(bytes, from);
  const keys = new Set<string>();
  for (const { key } of members) {
    if (keys.has(key)) throw new InputError(`${name} has "${key}" twice`);
    keys.add(key);
  }
  return members;
};

/** Tools and system belong to the prefix. Where they were written after the messages they are moved before them, which
 *  changes no rendered byte. */
const messagesLast = (bytes: Buffer, notes: string[]): Buffer => {
  const members = uniqueMembers(bytes, skipSpace(bytes, 0), "the recorded request");
  const at = members.findIndex(({ key }) => key === "messages");
  const late = members.slice(at + 1).filter(({ key }) => key === "tools" || key === "system");
  if (late.length === 0) return bytes;
  notes.push(`moved before messages: ${late.map(({ key }) => key).join(", ")}`);
  const moved = [...members.filter((member) => !late.includes(member)).slice(0, at), ...late];
  const rest = members.slice(at).filter((member) => !late.includes(member));
  const texts = [...moved, ...rest].map(({ keyStart, end }) => bytes.toString("utf8", keyStart, end));
  return Buffer.from(`{${texts.join(",")}}`);
};

// --- slicing ---------------------------------------------------------------------------------------------------------

/** One value that becomes a segment, by its place in the bytes. */
type Cut = Span & { readonly kind: SegmentKind; readonly opens?: Role };

const slice = (
  bytes: Buffer,
  value: JsonObject,
  { betas, notes }: { readonly betas: readonly string[]; readonly notes: string[] },
): Pick<RecordedRequest, "prefix" | "closing" | "markers"> => {
  const top = membersOf(bytes, skipSpace(bytes, 0));
  const messages = top.find(({ key }) => key === "messages") as Member;
  const automatic = top.find(isMarker(bytes));
  if (automatic) notes.push("automatic caching replaced by explicit markers, one of them where it would have been put");
  const spans = itemsOf(bytes, messages.start);
  const last = spans.at(-1) as Span;
  const cuts = [
    ...headCuts(bytes, top.slice(0, top.indexOf(messages))),
    ...spans.flatMap((span, index) => messageCuts(bytes, span, `messages[${index}]`)),
  ];
  const removals = [
    ...cuts.flatMap((cut) => markersIn(bytes, cut)),
    ...(automatic ? [removalOf(bytes, top, automatic)] : []),
  ].sort((a, b) => a.start - b.start);
  const end = cuts.at(-1)?.end ?? 0;
  const segments = cuts.map((cut, index) => segmentOf(bytes, cut, { from: cuts[index - 1]?.end ?? 0, removals }));
  const prefix = FrozenPrefix.of({ model: String(value.model), betas, encoder: anthropic.encoder }, segments, {
    pending: pendingIn(value),
    close: bytes.toString("utf8", end, last.end),
  });
  return {
    prefix,
    closing: without(bytes, { start: last.end, end: bytes.length }, removals).toString("utf8"),
    markers: recordedMarkers(prefix, automatic ? ttlAt(bytes, automatic) : undefined),
  };
};

const headCuts = (bytes: Buffer, members: readonly Member[]): readonly Cut[] => {
  const listed = members.filter(({ key }) => key === "tools" || key === "system");
  const cuts = listed.flatMap(({ key, start, end }): readonly Cut[] => {
    const kind = key === "tools" ? "tool" : "system";
    if (isArrayAt(bytes, start)) return itemsOf(bytes, start).map((item) => ({ kind, ...item }));
    return isStringAt(bytes, start) ? [{ kind, start, end }] : [];
  });
  const first = members.findIndex(({ key }) => key === "tools" || key === "system");
  const headEnd = members.slice(0, first < 0 ? members.length : first).at(-1)?.end ?? 1;
  return [{ kind: "head", start: 0, end: headEnd }, ...cuts];
};

const messageCuts = (bytes: Buffer, message: Span, name: string): readonly Cut[] => {
  const members = uniqueMembers(bytes, message.start, name);
  const content = members.find(({ key }) => key === "content") as Member;
  const role = members.find(({ key }) => key === "role") as Member;
  const opens = JSON.parse(bytes.toString("utf8", role.start, role.end)) as Role;
  const spans = isArrayAt(bytes, content.start) ? itemsOf(bytes, content.start) : [content];
  return spans.map(({ start, end }, index) => ({
    kind: "block" as const,
    start,
    end,
    ...(index === 0 ? { opens } : {}),
  }));
};

/** A marker's text with one comma, so that taking it out leaves valid JSON. */
type Removal = Span & { readonly ttl: Ttl };

const removalOf = (bytes: Buffer, siblings: readonly Member[], member: Member): Removal => {
  const index = siblings.indexOf(member);
  const before = siblings[index - 1];
  const after = siblings[index + 1];
  const start = before ? before.end : member.keyStart;
  const end = !before && after ? after.keyStart : member.end;
  return { start, end, ttl: ttlAt(bytes, member) };
};

const ttlAt = (bytes: Buffer, { start, end }: Span): Ttl => {
  const value = JSON.parse(bytes.toString("utf8", start, end)) as Json;
  return isObject(value) && value.ttl === "1h" ? "1h" : "5m";
};

/** Markers of a block, and of the blocks inside a tool result: no deeper, as nothing deeper can carry one. */
const markersIn = (bytes: Buffer, { kind, start }: Cut): readonly Removal[] => {
  if (kind === "head" || !isObjectAt(bytes, start)) return [];
  const members = membersOf(bytes, start);
  const content = members.find(({ key }) => key === "content");
  const inner = content && isArrayAt(bytes, content.start) ? itemsOf(bytes, content.start) : [];
  return [
    members,
    ...inner.filter((item) => isObjectAt(bytes, item.start)).map((item) => membersOf(bytes, item.start)),
  ].flatMap((siblings) => siblings.filter(isMarker(bytes)).map((member) => removalOf(bytes, siblings, member)));
};

const isMarker =
  (bytes: Buffer) =>
  ({ key, start }: Member): boolean =>
    key === "cache_control" && isObjectAt(bytes, start);

/** The removals that reach into a span; they are sorted and do not overlap. */
const within = (removals: readonly Removal[], start: number, end: number): readonly Removal[] => {
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

/** The bytes of a span less what is removed in it; a removal may reach over the span's end. */
const without = (bytes: Buffer, { start, end }: Span, removals: readonly Removal[]): Buffer => {
  const inside = within(removals, start, end);
  if (inside.length === 0) return bytes.subarray(start, end);
  const froms = [start, ...inside.map((removal) => Math.min(removal.end, end))];
  const tos = [...inside.map((removal) => Math.max(removal.start, start)), end];
  return Buffer.concat(froms.map((from, index) => bytes.subarray(from, tos[index])));
};

const segmentOf = (
  bytes: Buffer,
  cut: Cut,
  { from, removals }: { readonly from: number; readonly removals: readonly Removal[] },
): EncodedSegment => {
  const kept = without(bytes, { start: from, end: cut.end }, removals);
  const lead = without(bytes, { start: from, end: cut.start }, removals).length;
  const site = siteOf(bytes, cut, removals);
  return {
    kind: cut.kind,
    bytes: kept,
    lead,
    ...(site ? { site } : {}),
    ...(cut.opens ? { opens: cut.opens } : {}),
  };
};

const siteOf = (bytes: Buffer, { kind, start, end }: Cut, removals: readonly Removal[]): MarkerSite | undefined => {
  if (kind === "head") return undefined;
  if (isStringAt(bytes, start)) {
    if (end - start === 2) return undefined;
    return { fromEnd: 0, wrap: { fromEnd: end - start, open: `[{"type":"text","text":`, close: "}]" } };
  }
  const type = membersOf(bytes, start).find(({ key }) => key === "type");
  const name = type ? bytes.toString("utf8", type.start, type.end) : "";
  if (name === `"thinking"` || name === `"redacted_thinking"`) return undefined;
  const recorded = within(removals, start, end).at(-1);
  if (!recorded) return { fromEnd: 1 };
  const text = bytes.toString("utf8", recorded.start, recorded.end);
  const fromEnd = without(bytes, { start: recorded.end, end }, removals).length;
  return { fromEnd: 1, recorded: { ttl: recorded.ttl, fromEnd, text } };
};

// --- what the tail still waits for -----------------------------------------------------------------------------------

const pendingIn = ({ messages }: JsonObject): readonly string[] => {
  const last = isArray(messages) ? messages.at(-1) : undefined;
  if (!isObject(last) || last.role !== "assistant" || !isArray(last.content)) return [];
  return last.content.flatMap((block) =>
    isObject(block) && block.type === "tool_use" && typeof block.id === "string" ? [block.id] : [],
  );
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
