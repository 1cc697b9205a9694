/** The frozen bytes of everything sent so far, and the only code that can make them grow.
 *  Invariant: a segment (a tool, a system block, a block of a message) is encoded when it enters and never again; equal
 *  content gives equal chain hashes, however it was appended; a fork shares all bytes before it.
 *  Elsewhere: a provider's encoding (../protocols), cache markers (markers.ts), storage of bytes (rope.ts). */

import { hash } from "node:crypto";
import { InputError } from "../errors.ts";
import { locateByte } from "../json.ts";
import type { Block, Head, KeySettings, Message, Role, ToolUseBlock, Ttl } from "../request.ts";
import { answerPending, callsIn, placeholderFor, stillPending } from "./pairing.ts";
import { type Insertion, Rope } from "./rope.ts";

export type SegmentKind = "head" | "tool" | "system" | "block";

/** Where a marker can be inserted into a segment, in bytes before the segment's end. */
export type MarkerSite = {
  readonly fromEnd: number;
  /** A bare string must become a block before it can carry a marker. */
  readonly wrap?: { readonly fromEnd: number; readonly open: string; readonly close: string };
  /** The marker that a recorded request had here. If it is kept, it is put back byte for byte. */
  readonly recorded?: { readonly ttl: Ttl; readonly fromEnd: number; readonly text: string };
};

export type EncodedSegment = {
  readonly kind: SegmentKind;
  /** The value and the separators before it. */
  readonly bytes: string | Buffer;
  /** How many of those bytes are separators. */
  readonly lead: number;
  readonly site?: MarkerSite;
  /** Set on the first block of a message. */
  readonly opens?: Role;
  /** What closes everything that this segment leaves open. Default: the encoder's `close`. */
  readonly close?: string;
  /** Begins an item of the provider's list. Only for encoders whose items are not our messages. */
  readonly beginsItem?: boolean;
  /** Its path inside its item. Default: `.content[n]`, counted from the item's beginning. */
  readonly within?: string;
};

/** The end of a prefix: everything that an encoder needs to know in order to continue. */
export type PrefixEnd = {
  readonly after: SegmentKind;
  readonly role: Role | undefined;
  readonly messages: number;
  /** What closes the open message. */
  readonly close: string;
  readonly model: string;
  /** The calls of the last answer, for results that must name their tool. */
  readonly calls: readonly ToolUseBlock[];
};

/** The blocks of a message as they were encoded before: the JSON of each non-empty block, in order. */
export type SentBlocks = readonly Buffer[];

/** The part of a protocol that makes segments. If `sent` is given, its bytes are used and nothing is encoded again. */
export type SegmentEncoder = {
  readonly head: (head: Head) => readonly EncodedSegment[];
  /** The segments of a head that was encoded before, from the JSON object that `closeHead` completed. */
  readonly sentHead: (json: Buffer) => readonly EncodedSegment[];
  /** Completes a head to a JSON object, if its last segment is of this kind. */
  readonly closeHead: (last: SegmentKind) => string;
  readonly message: (message: Message, place: PrefixEnd, sent?: SentBlocks) => readonly EncodedSegment[];
  /** More blocks for the message that is still open. */
  readonly blocks: (blocks: readonly Block[], place: PrefixEnd, sent?: SentBlocks) => readonly EncodedSegment[];
  /** What closes a message that this encoder opened. */
  readonly close: string;
  /** How far before a marker the provider looks for entries of earlier requests, by model; 1: only at markers. Default:
   *  LOOK_BACK. */
  readonly lookBack?: (model: string) => number | undefined;
  /** The path of a segment in the request's JSON. */
  readonly pathOf: (segment: Segment) => string;
  /** Parts of the provider's cache key that are in no segment, by name. Default: the betas. */
  readonly unsentKeyParts?: (origin: PrefixOrigin) => readonly UnsentKeyPart[];
};

export type UnsentKeyPart = { readonly name: string; readonly value: string };

export type Segment = {
  readonly before: Segment | undefined;
  readonly index: number;
  readonly kind: SegmentKind;
  readonly role: Role | undefined;
  /** Number of the message (of the list, for tools and system blocks) and of the block in it. */
  readonly message: number;
  readonly block: number;
  readonly start: number;
  readonly lead: number;
  readonly end: number;
  readonly hash: string;
  readonly site: MarkerSite | undefined;
  /** Number of the provider's item (-1: its items are our messages), of the segment in that item, and the path inside
   *  the item where a number is not enough. */
  readonly item: number;
  readonly part: number;
  readonly within: string | undefined;
  /** The last segment before this one that precedes the messages and can carry a marker: the end of system, or of tools
   *  if there is no system. It is stored here so that a marker is found without walking back through the messages. */
  readonly headEnd: Segment | undefined;
};

export type Divergence = {
  readonly segment: number;
  /** JSON path of the first difference, such as `tools[7].description`. */
  readonly path: string;
  /** Offset of the first differing byte. */
  readonly offset: number;
};

/** What a prefix is made from if it was not encoded here (see ../recorded). */
export type PrefixOrigin = {
  readonly model: string;
  readonly betas: readonly string[];
  readonly encoder: SegmentEncoder;
  /** Only if the format encodes them after the messages. Default: none. */
  readonly settings?: KeySettings;
};

type PrefixState = {
  readonly origin: PrefixOrigin;
  readonly rope: Rope;
  readonly tip: Segment | undefined;
  readonly pending: readonly string[];
  readonly calls: readonly ToolUseBlock[];
  /** The ids of the calls in all answers, the last answer first; shared with everything that grew from the same
   *  prefix. */
  readonly callIds: CallIds | undefined;
  readonly close: string;
};

type CallIds = { readonly ids: readonly string[]; readonly before: CallIds | undefined };

/** What an open last message still needs. */
export type OpenTail = Pick<PrefixState, "pending" | "close">;

export class FrozenPrefix {
  readonly #state: PrefixState;

  private constructor(state: PrefixState) {
    this.#state = state;
  }

  static open(encoder: SegmentEncoder, head: Head): FrozenPrefix {
    return FrozenPrefix.of(originOf(encoder, head), encoder.head(head));
  }

  /** The prefix of a head that was encoded before, from the result of `sentHead`: the same bytes, however `head` would
   *  be encoded today. */
  static reopen(encoder: SegmentEncoder, head: Head, sent: Buffer): FrozenPrefix {
    return FrozenPrefix.of(originOf(encoder, head), encoder.sentHead(sent));
  }

  /** A prefix made of segments that were encoded before. `tail` says what an open last message still needs. */
  static of(
    origin: PrefixOrigin,
    segments: readonly EncodedSegment[],
    tail: OpenTail = { pending: [], close: "" },
  ): FrozenPrefix {
    const empty = { origin, rope: Rope.empty(), tip: undefined, calls: [], callIds: undefined, ...tail };
    return new FrozenPrefix(empty).#grow(segments, tail);
  }

  get model(): string {
    return this.#state.origin.model;
  }
  get betas(): readonly string[] {
    return this.#state.origin.betas;
  }
  get settings(): KeySettings {
    return this.#state.origin.settings ?? {};
  }
  /** How far before a marker its provider looks for earlier entries; undefined: the usual distance. */
  get lookBack(): number | undefined {
    return this.#state.origin.encoder.lookBack?.(this.model);
  }
  get byteLength(): number {
    return this.#state.rope.length;
  }
  get tip(): Segment | undefined {
    return this.#state.tip;
  }
  get hash(): string {
    return this.#state.tip?.hash ?? "";
  }
  get messages(): number {
    return this.#place.messages;
  }
  /** Calls of the last message that have no result yet. */
  get pending(): readonly string[] {
    return this.#state.pending;
  }
  /** Does one of its answers contain a call with this id? Bytes that somebody else encoded are not searched. */
  hasCall(id: string): boolean {
    for (let at = this.#state.callIds; at; at = at.before) if (at.ids.includes(id)) return true;
    return false;
  }
  /** Closes the open message. The body's own closing comes after it. */
  get close(): string {
    return this.#state.close;
  }

  /** The prefix with `message` at the end. Calls that it would leave unanswered get the placeholder. */
  append(message: Message): FrozenPrefix {
    return this.entering(message).reduce<FrozenPrefix>((prefix, next) => prefix.#add(next), this);
  }

  /** What `append` would add: `message`, with answers to the open calls. */
  entering(message: Message): readonly Message[] {
    return answerPending(this.pending, message);
  }

  /** The prefix with `message` at the end, unchanged: `extend` can answer the calls that it leaves open. */
  appendOpen(message: Message, sent?: SentBlocks): FrozenPrefix {
    return this.#add(message, stillPending(this.pending, message.content), sent);
  }

  /** The prefix with segments at the end that were cut from somebody else's bytes; `tail` says what they leave open. */
  appendCut(
    segments: readonly EncodedSegment[],
    tail: { readonly pending: readonly string[]; readonly close: string },
  ): FrozenPrefix {
    return this.#grow(segments, tail);
  }

  /** The prefix with more blocks in the last message. The shared tail of a family is a message that each fork
   *  continues. */
  extend(blocks: readonly Block[], sent?: SentBlocks): FrozenPrefix {
    if (blocks.length === 0) return this;
    if (this.#place.role !== "user") throw new InputError("only an open user message can be extended");
    const segments = this.#state.origin.encoder.blocks(blocks, this.#place, sent);
    const close = segments.at(-1)?.close ?? this.close;
    return this.#grow(segments, { pending: stillPending(this.pending, blocks), close });
  }

  /** The prefix with every open call answered, so that it can be sent. */
  settled(): FrozenPrefix {
    if (this.pending.length === 0) return this;
    const content = this.pending.map(placeholderFor);
    return this.#place.role === "user" ? this.extend(content) : this.#add({ role: "user", content });
  }

  /** The bytes in order with texts inserted at ascending offsets, and `ending` after them. The prefix's own bytes are
   *  not copied, except for a few next to an inserted text. */
  chunks(insertions: readonly Insertion[] = [], ending = ""): readonly Buffer[] {
    return this.#state.rope.spliced(insertions, ending);
  }

  /** The head as one JSON object, for `reopen`. */
  sentHead(): Buffer {
    let last = this.tip;
    while (last?.kind === "block") last = last.before;
    const close = this.#state.origin.encoder.closeHead(last?.kind ?? "head");
    return Buffer.concat([this.#state.rope.slice(0, last?.end ?? 0), Buffer.from(close)]);
  }

  /** The JSON of each block that was added since `before`. Views, not copies. */
  sentSince(before: FrozenPrefix): SentBlocks {
    const sent: Buffer[] = [];
    const from = before.tip?.index ?? -1;
    for (let at = this.tip; at && at.index > from && at.kind === "block"; at = at.before)
      sent.push(this.#state.rope.slice(at.start + at.lead, at.end));
    return sent.reverse();
  }

  startsWith(other: FrozenPrefix): boolean {
    const { tip } = other;
    return tip === undefined || this.segmentAt(tip.index)?.hash === tip.hash;
  }

  /** The number of segments that both begin with. */
  agreement(other: FrozenPrefix): number {
    let [ours, theirs] = toSameIndex(this.tip, other.tip);
    while (ours && theirs && ours.hash !== theirs.hash) [ours, theirs] = [ours.before, theirs.before];
    return ours ? ours.index + 1 : 0;
  }

  firstDivergence(other: FrozenPrefix): Divergence | undefined {
    const segment = this.agreement(other);
    const ours = this.segmentAt(segment);
    const theirs = other.segmentAt(segment);
    const named = ours ?? theirs;
    if (!named) return undefined;
    const { pathOf } = this.#state.origin.encoder;
    if (!ours || !theirs) return { segment, path: pathOf(named), offset: named.start };
    const [a, b] = [this.segmentBytes(ours), other.segmentBytes(theirs)];
    const within = firstDifference(a, b);
    const inner = a.equals(b) ? `.${this.#firstUnwritten(other)}` : innerPath([a, b], ours.lead, within);
    const path = pathOf(ours) + inner;
    return { segment, path: path.replace(/^\./, ""), offset: ours.start + within };
  }

  segmentAt(index: number): Segment | undefined {
    let segment = this.tip;
    while (segment && segment.index > index) segment = segment.before;
    return segment?.index === index ? segment : undefined;
  }

  segmentBytes({ start, end }: Pick<Segment, "start" | "end">): Buffer {
    return this.#state.rope.slice(start, end);
  }

  /** The name of the key part that differs although every byte is the same. */
  #firstUnwritten(other: FrozenPrefix): string {
    const theirs = unsentKeyPartsOf(other.#state.origin);
    return unsentKeyPartsOf(this.#state.origin).find(({ value }, at) => value !== theirs[at]?.value)?.name ?? "betas";
  }

  get #place(): PrefixEnd {
    const { tip, close, calls } = this.#state;
    const inMessages = tip?.kind === "block";
    return {
      after: tip?.kind ?? "head",
      role: inMessages ? tip.role : undefined,
      messages: inMessages ? tip.message + 1 : 0,
      close,
      model: this.model,
      calls,
    };
  }

  #add(message: Message, stillPending: readonly string[] = [], sent?: SentBlocks): FrozenPrefix {
    const { encoder } = this.#state.origin;
    const segments = encoder.message(message, this.#place, sent);
    if (segments.length === 0) throw new InputError(`a ${message.role} message needs a block that is not empty`);
    const close = segments.at(-1)?.close ?? encoder.close;
    const newCalls = callsIn(message);
    const calls = message.role === "assistant" ? newCalls : this.#state.calls;
    const ids = newCalls.map(({ id }) => id);
    const grown = this.#grow(segments, { pending: [...stillPending, ...ids], close }, calls);
    return ids.length === 0
      ? grown
      : new FrozenPrefix({ ...grown.#state, callIds: { ids, before: this.#state.callIds } });
  }

  #grow(segments: readonly EncodedSegment[], tail: OpenTail, calls = this.#state.calls): FrozenPrefix {
    let { rope, tip } = this.#state;
    const { origin, callIds } = this.#state;
    const seed = tip
      ? ""
      : unsentKeyPartsOf(origin)
          .map(({ value }) => value)
          .join("\n");
    for (const encoded of segments) {
      const [grown, written] = rope.append(encoded.bytes);
      tip = toSegment(tip, encoded, { start: rope.length, length: written.length, seed });
      rope = grown;
    }
    return new FrozenPrefix({ origin, rope, tip, calls, callIds, ...tail });
  }
}

const originOf = (encoder: SegmentEncoder, { model, settings }: Head): PrefixOrigin => ({
  model,
  betas: settings.betas ?? [],
  encoder,
  settings,
});

const unsentKeyPartsOf = (origin: PrefixOrigin): readonly UnsentKeyPart[] =>
  origin.encoder.unsentKeyParts?.(origin) ?? [{ name: "betas", value: origin.betas.join(",") }];

type WrittenRange = { readonly start: number; readonly length: number; readonly seed: string };

const toSegment = (
  before: Segment | undefined,
  encoded: EncodedSegment,
  { start, length, seed }: WrittenRange,
): Segment => {
  const { kind, bytes, lead, site, opens, beginsItem = false, within } = encoded;
  const continues = before?.kind === kind && opens === undefined;
  return {
    before,
    index: before ? before.index + 1 : 0,
    kind,
    role: opens ?? (continues ? before.role : undefined),
    message: kind === "block" && before?.kind === "block" ? before.message + (opens === undefined ? 0 : 1) : 0,
    block: continues ? before.block + 1 : 0,
    start,
    lead,
    end: start + length,
    hash: chainHash(before?.hash ?? seed, bytes),
    site,
    item: (before?.item ?? -1) + (beginsItem ? 1 : 0),
    part: beginsItem ? 0 : (before?.part ?? -1) + 1,
    within,
    headEnd: headEndAfter(before),
  };
};

/** Providers render tools before system, whatever order a recorded request has. */
const headEndAfter = (before: Segment | undefined): Segment | undefined => {
  if (!before || before.kind === "block" || !before.site) return before?.headEnd;
  return before.kind === "tool" && before.headEnd?.kind === "system" ? before.headEnd : before;
};

const chainHash = (before: string, bytes: string | Buffer): string =>
  // A one-shot hash: a hash object costs more than hashing a block, and more than copying one.
  hash("sha256", typeof bytes === "string" ? before + bytes : Buffer.concat([Buffer.from(before), bytes]), "base64url");

const toSameIndex = (a: Segment | undefined, b: Segment | undefined): [Segment | undefined, Segment | undefined] => {
  let [ours, theirs] = [a, b];
  while (ours && (!theirs || ours.index > theirs.index)) ours = ours.before;
  while (theirs && (!ours || theirs.index > ours.index)) theirs = theirs.before;
  return [ours, theirs];
};

const firstDifference = (a: Buffer, b: Buffer): number => {
  const shorter = Math.min(a.length, b.length);
  for (let at = 0; at < shorter; at += 1) if (a[at] !== b[at]) return at;
  return shorter;
};

/** A value that only one side has is named by that side. */
const innerPath = (sides: readonly Buffer[], lead: number, offset: number): string => {
  if (offset < lead) return "";
  const places = sides.map((bytes) => locateByte(bytes, lead, offset));
  return (places.find(({ inside }) => inside) ?? places.find(({ path }) => path !== ""))?.path ?? "";
};
