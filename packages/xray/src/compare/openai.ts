/** An OpenAI Responses or Chat body as a prompt: tools, then opening instructions, then the conversation.
 *  Invariant: each part of a message is one piece, and so is each call, result and reasoning item; items of unknown
 *  types are pieces like any other. Item ids and states are not part of the prompt. Both formats' spellings of a
 *  parameter give the same text.
 *  Elsewhere: which level a parameter invalidates (vendors.ts), what is cached (rules.ts, entries.ts). */

import type { Ttl } from "@prefork/wire";
import { SHORTEST_FIRST } from "@prefork/wire/internal";
import type { Body } from "./body.ts";
import { type Counted, countObject, countText, sumCounts, tokensOf } from "./count.ts";
import { chainPieces, type Field, type Piece, type Prompt, type Setting, settingsPiece } from "./piece.ts";
import type { Level, Parameter, Rules } from "./rules.ts";
import {
  type BodyMember,
  type BodyValue,
  isArrayHere,
  isNullHere,
  isObjectHere,
  isStringHere,
  itemsAt,
  type KeyOrderRule,
  listAt,
  memberAt,
  memberBelow,
  membersAt,
  stringAt,
  unorderedText,
} from "./values.ts";

const rule: KeyOrderRule = {
  ordered: new Set(["parameters", "schema"]),
  unseen: new Set(["cache_control", "prompt_cache_breakpoint"]),
};

export const openaiPrompt = (body: Body, rules: Rules): Prompt => {
  const { members, protocol } = body;
  const turns = protocol === "openai-chat" ? chatTurns(members, rules) : responseTurns(members, rules);
  const opening = turns.findIndex(({ role }) => role !== "system" && role !== "developer");
  const opened = opening === -1 ? turns.length : opening;
  const byLevel: Readonly<Record<Level, readonly Piece[]>> = {
    tools: ["functions", "tools"].flatMap((key) => listAt(members, key)).map((at) => toolPiece(at, rules)),
    system: [...instructions(members), ...withEndings(turns.slice(0, opened), "system")],
    messages: withEndings(turns.slice(opened), "messages"),
  };
  const images = Object.values(byLevel).flatMap((list) =>
    list.flatMap(({ kind, at }) => (kind === "image" && at ? at : [])),
  );
  const settings = openaiSettings(members, rule, images.length);
  const pieces = chainPieces(
    rules.levels.flatMap((level) => [settingsPiece(level, settings, rules), ...byLevel[level]]),
    rule,
  );
  const options = membersAt(memberAt(members, "prompt_cache_options") ?? NOTHING);
  const automatic = controlIn(memberAt(members, "cache_control"), rules);
  return {
    body,
    rules: { ...rules, defaultTtl: ttlNamed(memberAt(options, "ttl")) ?? rules.defaultTtl },
    text: rule,
    pieces,
    tokens: pieces.at(-1)?.end ?? 0,
    images,
    ...(automatic === undefined ? {} : { automatic }),
    explicitOnly: stringAt(memberAt(options, "mode")) === "explicit",
    fast: false,
    inUs: false,
    notes: promptKeptElsewhere(members),
  };
};

const NOTHING: BodyValue = { bytes: Buffer.from("{}"), start: 0, end: 2, path: "" };

/** What the provider adds before this body is in no body. */
const promptKeptElsewhere = (members: readonly BodyMember[]): readonly string[] =>
  memberAt(members, "prompt") === undefined
    ? []
    : ["prompt: part of the prompt is stored by the provider, and no body shows it"];

// --- turns -----------------------------------------------------------------------------------------------------------

/** One message or item of a list. */
type Turn = { readonly role: string; readonly pieces: readonly Piece[] };

/** Automatic entries end after a user message, a group of results, or the opening instructions. */
const withEndings = (turns: readonly Turn[], level: Level): readonly Piece[] =>
  turns.flatMap(({ role, pieces }, index) => {
    const next = turns[index + 1];
    const isEnd =
      level === "system" ? next === undefined : role === "user" || (role === "tool" && next?.role !== "tool");
    return pieces.map((piece, at) => ({
      ...piece,
      level,
      ...(isEnd && at === pieces.length - 1 ? { ending: true } : {}),
    }));
  });

const instructions = (members: readonly BodyMember[]): readonly Piece[] => {
  const at = memberAt(members, "instructions");
  if (!at) return [];
  // Top-level instructions cannot carry a marker.
  return [{ ...pieceOf({ at, kind: "text", role: "system" }), level: "system", markable: false, ending: true }];
};

type PieceSource = {
  readonly at: BodyValue;
  readonly kind: string;
  readonly role: string;
  readonly message?: number;
  readonly fields?: readonly Field[]; // default: the value as a whole
  readonly counted?: Counted; // default: its text
  readonly marker?: Ttl | undefined;
};

/** Pieces that can carry a marker, or could as blocks of their own. */
const MARKABLE = new Set(["text", "image", "input_file", "file", "input_audio", "function_call_output", "tool_result"]);

const pieceOf = ({ at, kind, role, message, fields, counted, marker }: PieceSource): Piece => ({
  level: "messages",
  kind,
  role,
  at,
  fields: fields ?? [{ name: kind, at, form: "unordered" }],
  settings: [],
  tokens: tokensOf(counted ?? countText(at)),
  ...(message === undefined ? {} : { message }),
  ...(marker === undefined ? {} : { marker }),
  markable: MARKABLE.has(kind),
});

const fieldsOf = (members: readonly BodyMember[], skipped: ReadonlySet<string>): readonly Field[] =>
  members
    .filter(({ key, at }) => !isNullHere(at) && !skipped.has(key) && !rule.unseen.has(key))
    .map(({ key, at }): Field => ({ name: key, at, form: rule.ordered.has(key) ? "ordered" : "unordered" }))
    .sort((one, other) => (one.name < other.name ? -1 : 1));

/** Its name first, as it is rendered. */
const toolFields = (at: BodyValue): readonly Field[] => {
  const members = membersAt(at);
  const called = memberAt(members, "function");
  const outer = fieldsOf(members, new Set(called ? ["function"] : []));
  const rank = ({ name }: Field): number =>
    (NAMED_FIRST.indexOf(name) + NAMED_FIRST.length + 1) % (NAMED_FIRST.length + 1);
  const inner = called ? fieldsOf(membersAt(called), new Set()) : [];
  return [...inner, ...outer].sort((one, other) => rank(one) - rank(other));
};

const NAMED_FIRST = ["name", "description", "parameters"];

/** A tool can carry `cache_control`, but not a breakpoint. */
const toolPiece = (at: BodyValue, rules: Rules): Piece => ({
  ...pieceOf({
    at,
    kind: "tool",
    role: "",
    ...(isObjectHere(at) ? { fields: toolFields(at) } : {}),
    counted: countObject(at, rule.unseen),
    marker: controlOf(membersAt(at), rules),
  }),
  level: "tools",
  markable: rules.keeping.kind !== "endings",
});

/** Text parts have different type names by role. One name for all of them makes a string equal to a single part. */
const TEXTS = new Set(["text", "input_text", "output_text"]);
const PICTURES = new Set(["image_url", "input_image", "image"]);
const PAPERS = new Set(["input_file", "file"]);

type MessageTerms = { readonly role: string; readonly message: number; readonly rules: Rules };

/** The parts of a message's content, each a piece. The model's own text cannot carry a breakpoint. */
const partPieces = (content: BodyValue | undefined, terms: MessageTerms): readonly Piece[] => {
  const pieces = content ? contentPieces(content, terms) : [];
  const isClosed = terms.role === "assistant" && terms.rules.keeping.kind === "endings";
  return isClosed ? pieces.map((piece) => ({ ...piece, markable: false })) : pieces;
};

const contentPieces = (content: BodyValue, { role, message, rules }: MessageTerms): readonly Piece[] => {
  if (!isArrayHere(content)) return [pieceOf({ at: content, kind: "text", role, message })];
  return itemsAt(content).map((at) => {
    const members = membersAt(at);
    const type = stringAt(memberAt(members, "type")) ?? "";
    const marker = controlOf(members, rules);
    const text = TEXTS.has(type) ? memberAt(members, "text") : undefined;
    if (text) {
      const fields: readonly Field[] = [{ name: "text", at: text, form: "unordered" }];
      return pieceOf({ at, kind: "text", role, message, marker, fields, counted: countText(text) });
    }
    const counted = PICTURES.has(type)
      ? { bytes: 0, images: 1 }
      : PAPERS.has(type)
        ? { bytes: 0, documents: 1 }
        : countObject(at, rule.unseen);
    const kind = PICTURES.has(type) ? "image" : type;
    const fields = isObjectHere(at) ? fieldsOf(members, new Set(["type", "annotations", "logprobs"])) : undefined;
    return pieceOf({ at, kind, role, message, marker, counted, ...(fields ? { fields } : {}) });
  });
};

// --- Responses -------------------------------------------------------------------------------------------------------

/** Bookkeeping members of an item. */
const UNSEEN_OF_ITEM = new Set(["id", "status", "type", "role"]);

const responseTurns = (members: readonly BodyMember[], rules: Rules): readonly Turn[] => {
  const input = memberAt(members, "input");
  if (!input) return [];
  if (isStringHere(input))
    return [{ role: "user", pieces: [pieceOf({ at: input, kind: "text", role: "user", message: 0 })] }];
  return itemsAt(input).map((at, message) => {
    const inside = membersAt(at);
    const type = stringAt(memberAt(inside, "type")) ?? "message";
    const role = stringAt(memberAt(inside, "role"));
    if (type === "message" && role !== undefined)
      return { role, pieces: partPieces(memberAt(inside, "content"), { role, message, rules }) };
    // Tools that are declared inside the conversation; they cannot carry a breakpoint.
    if (type === "additional_tools")
      return {
        role: role ?? "developer",
        pieces: listAt(inside, "tools").map((tool) => ({ ...toolPiece(tool, rules), message, markable: false })),
      };
    const isResult = type.endsWith("_output");
    const output = isResult ? memberAt(inside, "output") : undefined;
    const inner = output ? itemsAt(output).map((part) => controlOf(membersAt(part), rules)) : [];
    const fields = fieldsOf(inside, UNSEEN_OF_ITEM);
    const counted = sumCounts(fields.filter(({ name }) => name !== "call_id").map((field) => countText(field.at)));
    const marker = inner.findLast((ttl) => ttl !== undefined);
    const terms = isObjectHere(at) ? { fields, counted } : {};
    return {
      role: isResult ? "tool" : "assistant",
      pieces: [pieceOf({ at, kind: type, role: "", message, marker, ...terms })],
    };
  });
};

// --- Chat ------------------------------------------------------------------------------------------------------------

const CHAT_CONTENT = new Set(["role", "content", "tool_calls", "reasoning_content", "id"]);

const chatTurns = (members: readonly BodyMember[], rules: Rules): readonly Turn[] =>
  listAt(members, "messages").map((at, message) => {
    const inside = membersAt(at);
    const role = stringAt(memberAt(inside, "role")) ?? "";
    const terms = { role, message, rules };
    if (role === "tool") return { role, pieces: [resultPiece(at, inside, terms)] };
    const reasoning = memberAt(inside, "reasoning_content");
    const others = fieldsOf(inside, CHAT_CONTENT);
    const extra =
      others.length === 0
        ? []
        : [pieceOf({ at, kind: "message", role, message, fields: others, counted: { bytes: 0 } })];
    const content = memberAt(inside, "content");
    // An answer with only calls has no text, whether as "" or as a missing member.
    const isSilent = content !== undefined && stringAt(content) === "" && role === "assistant";
    return {
      role,
      pieces: withMarker(
        [
          // Members of a message next to its content.
          ...extra,
          ...(reasoning ? [pieceOf({ at: reasoning, kind: "reasoning", role, message })] : []),
          ...partPieces(isSilent ? undefined : content, terms),
          ...listAt(inside, "tool_calls").map((call) => callPiece(call, terms)),
        ],
        controlOf(inside, rules),
      ),
    };
  });

/** Some gateways accept a marker on a message: it applies to its last piece. */
const withMarker = (pieces: readonly Piece[], marker: Ttl | undefined): readonly Piece[] =>
  marker === undefined
    ? pieces
    : pieces.map((piece, at) => (at === pieces.length - 1 ? { ...piece, marker: piece.marker ?? marker } : piece));

/** A result is one piece, together with the id of the call that it answers. */
const resultPiece = (at: BodyValue, members: readonly BodyMember[], { role, message, rules }: MessageTerms): Piece => {
  const parts = partPieces(memberAt(members, "content"), { role, message, rules });
  const tokens = parts.reduce((sum, part) => sum + part.tokens, 0);
  const marker = parts.findLast((part) => part.marker !== undefined)?.marker ?? controlOf(members, rules);
  const fields = fieldsOf(members, new Set(["role", "id"]));
  return { ...pieceOf({ at, kind: "tool_result", role, message, fields, marker }), tokens };
};

const callPiece = (at: BodyValue, { role, message }: MessageTerms): Piece => {
  const call = membersAt(at);
  const called = memberAt(call, "function");
  const counted = called ? countText(memberAt(membersAt(called), "arguments")) : countText(at);
  const fields = fieldsOf(call, new Set(["type", "index"]));
  return pieceOf({ at, kind: "tool_call", role, message, fields, counted });
};

// --- markers ---------------------------------------------------------------------------------------------------------

const ttlNamed = (at: BodyValue | undefined): Ttl | undefined => SHORTEST_FIRST.find((ttl) => ttl === stringAt(at));

const controlIn = (control: BodyValue | undefined, { defaultTtl }: Rules): Ttl | undefined => {
  if (!control || !isObjectHere(control)) return undefined;
  return ttlNamed(memberAt(membersAt(control), "ttl")) ?? defaultTtl ?? "5m";
};

const controlOf = (members: readonly BodyMember[], rules: Rules): Ttl | undefined =>
  controlIn(memberAt(members, "prompt_cache_breakpoint") ?? memberAt(members, "cache_control"), rules);

// --- parameters ------------------------------------------------------------------------------------------------------

/** Where a parameter is set: keys from the root down, in either format. */
const PLACES: readonly (readonly [Parameter, readonly (readonly string[])[]])[] = [
  ["model", [["model"]]],
  ["service_tier", [["service_tier"]]],
  ["cache_key", [["prompt_cache_key"]]],
  ["session_id", [["session_id"]]],
  ["cache_salt", [["cache_salt"]]],
  ["user_id", [["user_id"]]],
  ["thinking", [["thinking"], ["enable_thinking"], ["chat_template_kwargs"], ["reasoning", "max_tokens"]]],
  ["effort", [["reasoning", "effort"], ["reasoning_effort"]]],
  ["verbosity", [["text", "verbosity"], ["verbosity"]]],
  ["parallel_tool_calls", [["parallel_tool_calls"]]],
  ["output_format", [["text", "format"], ["response_format"]]],
  ["context_management", [["context_management"]]],
  ["tool_choice", [["tool_choice"]]],
];

/** In the order in which a first difference is reported. The number of images matters only for some models. */
export const openaiSettings = (
  members: readonly BodyMember[],
  rule: KeyOrderRule,
  images: number,
): readonly Setting[] => [
  ...PLACES.flatMap(([name, places]) => {
    const at = places.map((place) => memberBelow(members, place)).find((found) => found !== undefined);
    return at ? [{ name, text: stringAt(at) ?? unorderedText(at, rule), at }] : [];
  }),
  ...(images > 0 ? [{ name: "images", text: String(images) } as const] : []),
];
