/** How a list of items grows if a provider's items are not our messages: one of ours may be several of theirs.
 *  Invariant: separators come before a value, never after it; the same blocks always give the same pieces, so that
 *  pieces that were sent before can replace newly encoded ones.
 *  Elsewhere: the content of the items (openai-responses-encode.ts, openai-chat-encode.ts, gemini-encode.ts). */

import { InputError } from "../errors.ts";
import { isArrayAt, isObject, isObjectAt, itemsOf, type Member, membersOf, parseJson, type Span } from "../json.ts";
import type { EncodedSegment, PrefixEnd, SegmentEncoder, SegmentKind, SentBlocks } from "../prefix/index.ts";
import type {
  Block,
  DocumentBlock,
  Head,
  ImageBlock,
  MediaSource,
  Message,
  RawJson,
  Role,
  TextBlock,
  ToolSpec,
} from "../request.ts";

/** A value that becomes a segment. */
export type Piece = {
  readonly json: RawJson;
  /** What comes before it in its item. */
  readonly lead: string;
  readonly beginsItem: boolean;
  /** What closes its item if nothing follows. */
  readonly close: string;
  readonly within?: string;
  /** Where a marker goes, in bytes before the end; absent: it cannot carry one. */
  readonly markFromEnd?: number;
};

export type GrowthTerms = {
  readonly model: string /** A user item is still open. */;
  readonly isOpen: boolean;
};

export type ItemSpelling = {
  readonly list: "input" | "messages";
  readonly settings: (head: Head) => string;
  readonly tool: (tool: ToolSpec) => RawJson;
  readonly system: (blocks: readonly TextBlock[], model: string) => readonly Piece[];
  readonly systemClose: string;
  readonly marks: (model: string) => boolean;
  /** The provider finds entries only at breakpoints. */
  readonly findsAtMarkers?: (model: string) => boolean;
  readonly message: (message: Message, model: string) => readonly Piece[];
  readonly more: (blocks: readonly Block[], terms: GrowthTerms) => readonly Piece[];
};

export const itemEncoder = (spelling: ItemSpelling): SegmentEncoder => {
  const { list, systemClose } = spelling;
  const opening = ({ after, close }: Pick<PrefixEnd, "after" | "close">): string => {
    if (after === "block") return `${close},`;
    if (after === "system") return `${systemClose},`;
    return `${after === "tool" ? "]" : ""},"${list}":[`;
  };
  const grow = (pieces: readonly Piece[], place: Pick<PrefixEnd, "after" | "close">, growth: Growth) =>
    pieceSegments(pieces, opening(place), growth);
  return {
    head: (head) => [
      { kind: "head", bytes: `{${spelling.settings(head)}`, lead: 0 },
      ...head.tools.map((tool, index) => toolSegment(spelling.tool(tool), index)),
      ...grow(
        spelling.system(head.system, head.model),
        { after: head.tools.length > 0 ? "tool" : "head", close: "" },
        { kind: "system" },
      ),
    ],
    sentHead: (json) => cutSentHead(json, spelling),
    closeHead: (last) => (last === "head" ? "}" : last === "tool" ? "]}" : `${systemClose}]}`),
    message: (message, place, sent) =>
      grow(spelling.message(message, place.model), place, { kind: "block", sent, opens: message.role }),
    blocks: (blocks, place, sent) =>
      grow(spelling.more(blocks, { model: place.model, isOpen: place.close !== "" }), place, { kind: "block", sent }),
    close: "",
    lookBack: (model) => (spelling.findsAtMarkers?.(model) ? 1 : undefined),
    pathOf: ({ kind, block, item, part, within }) => {
      if (kind === "head") return "";
      return kind === "tool" ? `tools[${block}]` : `${list}[${item}]${within ?? `.content[${part}]`}`;
    },
  };
};

type Growth = { readonly kind: SegmentKind; readonly sent?: SentBlocks | undefined; readonly opens?: Role };

export const pieceSegments = (
  pieces: readonly Piece[],
  opening: string,
  { kind, sent, opens }: Growth,
): readonly EncodedSegment[] => {
  if (sent && sent.length !== pieces.length)
    throw new InputError(`${pieces.length} blocks cannot have been sent as ${sent.length}`);
  return pieces.map(({ json, lead, beginsItem: begins, close, within, markFromEnd }, index) => {
    const before = pieces[index - 1];
    const separator = begins ? (before ? `${before.close},` : opening) + lead : lead;
    const bytes = sent?.[index];
    return {
      kind,
      bytes: bytes ? Buffer.concat([Buffer.from(separator), bytes]) : separator + json,
      lead: Buffer.byteLength(separator),
      close,
      beginsItem: begins,
      ...(within === undefined ? {} : { within }),
      ...(markFromEnd === undefined ? {} : { site: { fromEnd: markFromEnd } }),
      ...(opens && index === 0 ? { opens } : {}),
    };
  });
};

const toolSegment = (json: RawJson, index: number): EncodedSegment => {
  const separator = index === 0 ? `,"tools":[` : ",";
  return { kind: "tool", bytes: separator + json, lead: separator.length };
};

// --- a head that was sent before -------------------------------------------------------------------------------------

type Cut = Span & Pick<EncodedSegment, "kind" | "beginsItem" | "within">;

/** The lists are the last members, as `head` writes them. Bytes between two values belong to the later one. */
const cutSentHead = (json: Buffer, { list, marks }: ItemSpelling): readonly EncodedSegment[] => {
  const value = parseJson(json.toString("utf8"), "the head");
  if (!isObject(value)) throw new InputError("the head is not an object");
  const marked = marks(String(value.model));
  const members = membersOf(json, 0);
  const first = members.findIndex(({ key }) => key === "tools" || key === list);
  const settings = first < 0 ? members : members.slice(0, first);
  const cuts: readonly Cut[] = [
    { kind: "head", start: 0, end: settings.at(-1)?.end ?? 1 },
    ...members.slice(settings.length).flatMap((member) => listCuts(json, member)),
  ];
  return cuts.map(({ kind, start, end, ...place }, index) => {
    const from = cuts[index - 1]?.end ?? 0;
    const encoded = { kind, bytes: json.subarray(from, end), lead: start - from, ...place };
    return kind === "system" && marked ? { ...encoded, site: { fromEnd: 1 } } : encoded;
  });
};

/** Tools, or the opening instructions: parts of one message, or separate messages if content is plain text. */
const listCuts = (json: Buffer, { key, start }: Member): readonly Cut[] => {
  const items = itemsOf(json, start);
  if (key === "tools") return items.map((item) => ({ kind: "tool", ...item }));
  return items.flatMap((item): readonly Cut[] => {
    const content = isObjectAt(json, item.start)
      ? membersOf(json, item.start).find((member) => member.key === "content")
      : undefined;
    if (!content || !isArrayAt(json, content.start)) return [{ kind: "system", ...item, beginsItem: true, within: "" }];
    return itemsOf(json, content.start).map((part, index) => ({ kind: "system", ...part, beginsItem: index === 0 }));
  });
};

// --- what can be said in a message -----------------------------------------------------------------------------------

export type Content = TextBlock | ImageBlock | DocumentBlock;

/** Empty text does not count: providers refuse it. */
export const isContent = (block: Block): block is Content =>
  block.type === "image" || block.type === "document" || (block.type === "text" && block.text !== "");

/** The text of a document that was given as text, under its title. */
export const documentText = ({ source, title }: DocumentBlock): string | undefined => {
  if (source.kind !== "text") return undefined;
  return title === undefined ? source.text : `${title}\n\n${source.text}`;
};

/** Used in a result whose only content is a picture, if results cannot contain pictures. */
export const SHOWN_BELOW = "(The picture stands in the next message.)";

/** Used for an answer that was cut off inside its reasoning, which cannot be sent again with nothing after it. */
export const CUT_OFF = "(This answer was cut off before anything was said.)";

export const refused = (what: string, kind: MediaSource["kind"]): InputError =>
  new InputError(`${what} cannot be given as ${kind === "file" ? "an uploaded file" : `a ${kind}`} to this provider`);
