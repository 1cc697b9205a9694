/** What recordings in OpenAI's two formats have in common: parts, breakpoints, and whose turn an item is.
 *  Invariant: opening instructions belong to the head only if something follows them; a recording keeps its own way of
 *  marking.
 *  Elsewhere: the items (openai-responses.ts, openai-chat.ts), cutting them (slicing.ts). */

import { InputError } from "../errors.ts";
import { isArray, isObject, itemsOf, type Member, type Span } from "../json.ts";
import type { SegmentKind } from "../prefix/index.ts";
import type { Protocol } from "../protocols/index.ts";
import { type Json, type JsonObject, type Role, SHORTEST_FIRST, type Ttl } from "../request.ts";
import { PARENT, type ReadingTerms, type RecordedParent, uniqueMembers } from "./recording.ts";
import { type Cut, headCuts, type MarkerOffset, type MarkerSyntax, sliceRequest } from "./slicing.ts";

const HEAD_KINDS: ReadonlyMap<string, SegmentKind> = new Map([["tools", "tool"]]);

// --- what is refused -------------------------------------------------------------------------------------------------

export const checkHead = (value: JsonObject): void => {
  if (typeof value.model !== "string") throw new InputError(`${PARENT} has no \`model\``);
  const { tools } = value;
  if (tools !== undefined && tools !== null && !(isArray(tools) && tools.every(isObject)))
    throw new InputError("tools must be an array of objects");
};

/** Text, or parts that each have a type. */
export const checkContent = (content: Json | undefined, name: string): void => {
  if (typeof content === "string") return;
  if (!isArray(content)) throw new InputError(`${name} must be a string or an array`);
  const wrong = content.findIndex((part) => !isObject(part) || typeof part.type !== "string");
  if (wrong >= 0) throw new InputError(`${name}[${wrong}] is not a part with a type`);
};

// --- markers ---------------------------------------------------------------------------------------------------------

type Marking = Pick<MarkerSyntax, "ttlOf"> & {
  /** New markers have an effect on this model. */
  readonly marks: boolean;
  readonly implicit: boolean;
  readonly ttl: Ttl;
};

const ttlNamed = (value: Json | undefined): Ttl | undefined => SHORTEST_FIRST.find((ttl) => ttl === value);

/** How the recording marks, as it says itself: breakpoints have the lifetime of the whole request. */
const markingOf = ({ model, prompt_cache_options: given }: JsonObject, protocol: Protocol): Marking => {
  const options: JsonObject = isObject(given) ? given : {};
  const spelled = protocol.marker("30m", String(model));
  const isBreakpoint = spelled.includes("prompt_cache_breakpoint");
  const requestTtl = ttlNamed(options.ttl) ?? "30m";
  return {
    marks: spelled !== "",
    implicit: isBreakpoint && options.mode !== "explicit",
    ttl: isBreakpoint ? requestTtl : "5m",
    ttlOf: (marker) => {
      const { ttl, type } = isObject(marker) ? marker : {};
      return ttlNamed(ttl) ?? (type === undefined ? requestTtl : "5m");
    },
  };
};

export type PartSyntax = {
  /** What turns a plain string into a list, written before it. */
  readonly open: string;
  /** Parts that can carry a marker. */
  readonly markable: ReadonlySet<Json | undefined>;
};

const canCarry = (part: Json | undefined, { markable }: PartSyntax): boolean =>
  isObject(part) && markable.has(part.type) && part.text !== "";

type Content = { readonly span: Span; readonly value: Json | undefined };

/** Where a marker goes on a text, or on the last part of a list. */
export const contentMark = (bytes: Buffer, { span, value }: Content, syntax: PartSyntax): { mark?: MarkerOffset } => {
  if (typeof value === "string" && value !== "")
    return { mark: { at: span.end, wrap: { at: span.start, open: syntax.open, close: "}]" } } };
  if (!isArray(value) || !canCarry(value.at(-1), syntax)) return {};
  const last = itemsOf(bytes, span.start).at(-1);
  return last ? { mark: { at: last.end - 1 } } : {};
};

// --- items -----------------------------------------------------------------------------------------------------------

/** One item of the list: its position and its value. */
export type ItemAt = {
  readonly span: Span;
  readonly members: readonly Member[];
  readonly value: JsonObject;
};

export const wholeItemCut = ({ span }: ItemAt): Cut => ({ kind: "block", ...span, beginsItem: true, within: "" });

export const memberOf = ({ members, value }: ItemAt, key: string): Content | undefined => {
  const member = members.find((candidate) => candidate.key === key);
  return member && { span: member, value: value[key] };
};

/** What the model receives: each part of a message, or its text if a marker may have to go on it. */
export const userCuts = (
  bytes: Buffer,
  item: ItemAt,
  { syntax, marks }: { readonly syntax: PartSyntax; readonly marks: boolean },
): readonly Cut[] => {
  const content = memberOf(item, "content");
  const value = content?.value;
  if (!content || (typeof value === "string" ? !marks : !isArray(value) || value.length === 0))
    return [wholeItemCut(item)];
  if (!isArray(value)) {
    const { start, end } = content.span;
    return [
      { kind: "block", start, end, beginsItem: true, within: ".content", ...contentMark(bytes, content, syntax) },
    ];
  }
  return itemsOf(bytes, content.span.start).map(({ start, end }, index) => ({
    kind: "block" as const,
    start,
    end,
    beginsItem: index === 0,
    ...(canCarry(value[index], syntax) ? { mark: { at: end - 1 } } : {}),
  }));
};

export type Turn = { readonly role: Role; readonly cuts: readonly Cut[] };

/** Opening instructions belong to the head; after them a turn begins where the speaker changes. */
export const toSegmentCuts = (turns: readonly Turn[]): readonly Cut[] => {
  const opening = Math.max(
    0,
    turns.findIndex(({ role }) => role !== "system"),
  );
  return turns.flatMap(({ role, cuts }, index) => {
    if (index < opening) return cuts.map((cut) => ({ ...cut, kind: "system" as const }));
    const opens = index === opening || turns[index - 1]?.role !== role;
    return cuts.map((cut, at) => (opens && at === 0 ? { ...cut, opens: role } : cut));
  });
};

/** A list of items in one of the two formats, and how to read its items. */
export type ItemList = {
  readonly value: JsonObject;
  readonly name: "input" | "messages";
  /** The items that are kept: the whole list, or its beginning. */
  readonly items: readonly JsonObject[];
  readonly turnOf: (bytes: Buffer, item: ItemAt, marks: boolean) => Turn;
  readonly pending: readonly string[];
  readonly marker: Pick<MarkerSyntax, "keys" | "inside">;
};

export type ReadList = Omit<RecordedParent, "strips" | "thinks" | "textCalls"> & Pick<Marking, "marks">;

export const readItems = (bytes: Buffer, list: ItemList, { protocol, betas, notes }: ReadingTerms): ReadList => {
  const { value, name, items, turnOf, pending, marker } = list;
  const top = uniqueMembers(bytes, 0, PARENT);
  const member = top.find(({ key }) => key === name) as Member;
  const spans = itemsOf(bytes, member.start);
  const { marks, implicit, ttl, ttlOf } = markingOf(value, protocol);
  const turns = items.map((item, index) => {
    const span = spans[index] as Span;
    const members = uniqueMembers(bytes, span.start, `${name}[${index}]`);
    return turnOf(bytes, { span, members, value: item }, marks);
  });
  const cut = sliceRequest(bytes, {
    origin: { model: String(value.model), betas, encoder: protocol.encoder },
    cuts: [...headCuts(bytes, top.slice(0, top.indexOf(member)), HEAD_KINDS), ...toSegmentCuts(turns)],
    keptEnd: (spans[items.length - 1] as Span).end,
    listEnd: (spans.at(-1) as Span).end,
    pending,
    syntax: { ...marker, ttlOf },
    marks,
    top,
    notes,
  });
  return { ...cut, value, notes, protocol, stream: value.stream === true, implicit, ttl, marks };
};
