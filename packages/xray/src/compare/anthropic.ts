/** An Anthropic Messages body as a prompt: tools, then system, then messages.
 *  Invariant: pieces follow the published render order and its exceptions (deferred tools are not in the prompt, web
 *  tools open the system level, some models drop earlier thinking); blocks of unknown types are pieces like any other.
 *  Elsewhere: which level a parameter invalidates (vendors.ts), where entries end (entries.ts). */

import type { Ttl } from "@prefork/wire";
import type { Body } from "./body.ts";
import { type Counted, countDocument, countObject, countText, sumCounts, tokensOf } from "./count.ts";
import { chainPieces, type Field, type Piece, type Prompt, type Setting, settingsPiece } from "./piece.ts";
import type { Level, Rules } from "./rules.ts";
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
  membersAt,
  orderedText,
  rawText,
  stringAt,
  unorderedText,
} from "./values.ts";

/** These members of a tool or a block come first; the others follow by name. */
const NAMED_FIRST = ["name", "id", "tool_use_id", "description", "input_schema", "input", "text", "thinking"];

export const anthropicPrompt = (body: Body, rules: Rules, betas: readonly string[] | undefined): Prompt => {
  const { members } = body;
  const turns = turnsOf(members);
  const settings = anthropicSettings(members, turns, betas);
  const byLevel = piecesByLevel({ members, turns, rules });
  const pieces = chainPieces(
    rules.levels.flatMap((level) => [settingsPiece(level, settings, rules), ...byLevel[level]]),
    rule,
  );
  const automatic = markerIn(memberAt(members, "cache_control"), rules);
  return {
    body,
    rules,
    text: rule,
    pieces,
    tokens: pieces.at(-1)?.end ?? 0,
    images: turns.flatMap(({ blocks }) => blocks.flatMap(imagesIn)),
    ...(automatic === undefined ? {} : { automatic }),
    fast: stringAt(memberAt(members, "speed")) === "fast",
    inUs: stringAt(memberAt(members, "inference_geo")) === "us",
    notes: memberAt(members, "context_management")
      ? ["context_management: the provider may drop earlier content by itself, which no body shows"]
      : [],
  };
};

// --- blocks ----------------------------------------------------------------------------------------------------------

/** A member whose value means the same as its absence. */
const saysNothing = (key: string, at: BodyValue): boolean =>
  key === "type" ||
  rule.unseen.has(key) ||
  (key === "is_error" && rawText(at) === "false") ||
  (key === "caller" && stringAt(memberAt(membersAt(at), "type")) === "direct");

const rank = (name: string): number => (NAMED_FIRST.indexOf(name) + NAMED_FIRST.length + 1) % (NAMED_FIRST.length + 1);

const byRank = (one: Field, other: Field): number =>
  rank(one.name) - rank(other.name) || (one.name < other.name ? -1 : 1);

const plainFields = (members: readonly BodyMember[], skipped?: string): readonly Field[] =>
  members
    .filter(({ key, at }) => !isNullHere(at) && key !== skipped && !saysNothing(key, at))
    .map(({ key, at }): Field => ({ name: key, at, form: rule.ordered.has(key) ? "ordered" : "unordered" }))
    .sort(byRank);

const isPlainText = ({ type, members, at }: Block): boolean =>
  type === "text" && (isStringHere(at) || memberAt(members, "citations") === undefined);

const fieldsOf = (block: Block): readonly Field[] => {
  const { at, type, members } = block;
  if (!isObjectHere(at)) return [{ name: "text", at, form: "unordered" }];
  if (isPlainText(block)) {
    const text = memberAt(members, "text");
    return text ? [{ name: "text", at: text, form: "unordered" }] : [];
  }
  if (type !== "tool_result") return plainFields(members);
  return [...plainFields(members, "content"), ...resultFields(memberAt(members, "content"))];
};

const resultFields = (content: BodyValue | undefined): readonly Field[] =>
  blocksOf(content).flatMap((part, index): readonly Field[] => {
    if (!isPlainText(part)) return [{ name: `content[${index}]`, at: part.at, form: "unordered" }];
    const text = isStringHere(part.at) ? part.at : memberAt(part.members, "text");
    return text ? [{ name: `content[${index}].text`, at: text, form: "unordered" }] : [];
  });

const countedBlock = ({ at, type, members }: Block): Counted => {
  if (!isObjectHere(at)) return countText(at);
  switch (type) {
    case "text":
      return countText(memberAt(members, "text"));
    case "thinking":
      return countText(memberAt(members, "thinking"));
    case "redacted_thinking":
      return countText(memberAt(members, "data"));
    case "tool_use": {
      const input = memberAt(members, "input");
      return { bytes: input ? Buffer.byteLength(orderedText(input)) : 2 };
    }
    case "tool_result":
      return sumCounts(blocksOf(memberAt(members, "content")).map(countedBlock));
    case "image":
      return { bytes: 0, images: 1 };
    case "document":
      return countDocument(at);
    default:
      return countObject(at, rule.unseen);
  }
};

const isThinking = ({ type }: Block): boolean => type === "thinking" || type === "redacted_thinking";

// --- markers ---------------------------------------------------------------------------------------------------------

const markerIn = (control: BodyValue | undefined, { defaultTtl }: Rules): Ttl | undefined => {
  if (!control || !isObjectHere(control)) return undefined;
  return stringAt(memberAt(membersAt(control), "ttl")) === "1h" ? "1h" : (defaultTtl ?? "5m");
};

/** A marker inside a tool result takes effect at the end of that result. */
const markerOf = (block: Block, rules: Rules): { readonly marker?: Ttl } => {
  const inner = partsOf(block);
  const controls = [...inner.map((part) => part.members), block.members].map((list) => memberAt(list, "cache_control"));
  const marker = controls.map((control) => markerIn(control, rules)).findLast((ttl) => ttl !== undefined);
  return marker === undefined ? {} : { marker };
};

// --- levels ----------------------------------------------------------------------------------------------------------

type Parts = {
  readonly members: readonly BodyMember[];
  readonly turns: readonly Turn[];
  readonly rules: Rules;
};

const piecesByLevel = (parts: Parts): Readonly<Record<Level, readonly Piece[]>> => {
  const { members, rules } = parts;
  const tools = listAt(members, "tools").flatMap((at) => toolPiece(at, rules));
  const system = blocksOf(memberAt(members, "system")).map(
    (block): Piece => ({ ...blockPiece(block, rules), level: "system", role: "" }),
  );
  return {
    tools: tools.filter(({ level }) => level === "tools"),
    system: [...tools.filter(({ level }) => level === "system"), ...system],
    messages: messagePieces(parts),
  };
};

const isWebTool = (type: string): boolean => /^web_(?:search|fetch)_/.test(type);

/** A deferred tool is not in the prompt until a search finds it. */
const toolPiece = (at: BodyValue, rules: Rules): readonly Piece[] => {
  const members = membersAt(at);
  const deferred = memberAt(members, "defer_loading");
  if (deferred && rawText(deferred) === "true") return [];
  const type = memberAt(members, "type");
  const fields = isObjectHere(at) ? plainFields(members) : [{ name: "tool", at, form: "unordered" } as const];
  return [
    {
      level: isWebTool(stringAt(type) ?? "") ? "system" : "tools",
      kind: "tool",
      role: "",
      at,
      fields: type ? [...fields, { name: "tool_type", at: type, form: "unordered" }] : fields,
      settings: [],
      tokens: tokensOf(countObject(at, rule.unseen)),
      markable: true,
      ...markerOf({ at, type: "tool", members }, rules),
    },
  ];
};

const blockPiece = (block: Block, rules: Rules): Piece => {
  const tokens = tokensOf(countedBlock(block));
  return {
    level: "messages",
    kind: block.type,
    role: "",
    at: block.at,
    fields: fieldsOf(block),
    settings: [],
    tokens,
    markable: !isThinking(block) && !(block.type === "text" && tokens === 0),
    ...markerOf(block, rules),
  };
};

const messagePieces = ({ turns, rules }: Parts): readonly Piece[] => {
  const keptFrom = rules.stripsThinking
    ? turns.findLastIndex(({ role, blocks }) => role === "user" && blocks.some(({ type }) => type !== "tool_result"))
    : 0;
  const pieces: Piece[] = [];
  let stripped: BodyValue | undefined;
  for (const [message, { role, members, blocks }] of turns.entries()) {
    const own = memberAt(members, "output_config");
    if (own)
      pieces.push({
        level: "messages",
        kind: "settings",
        role,
        at: own,
        fields: [{ name: "output_config", at: own, form: "unordered" }],
        settings: [],
        tokens: 0,
        message,
        markable: false,
      });
    for (const block of blocks) {
      if (message < keptFrom && isThinking(block)) {
        stripped ??= block.at;
        continue;
      }
      pieces.push({ ...blockPiece(block, rules), role, message, ...(stripped ? { stripped } : {}) });
      stripped = undefined;
    }
  }
  return pieces;
};

// --- turns -----------------------------------------------------------------------------------------------------------

/** The key order matters where the model sees it; markers are not part of the prompt. */
export const rule: KeyOrderRule = {
  ordered: new Set(["input", "input_schema", "input_examples"]),
  unseen: new Set(["cache_control"]),
};

export type Block = {
  readonly at: BodyValue;
  readonly type: string;
  readonly members: readonly BodyMember[];
};

export type Turn = {
  readonly role: string;
  readonly at: BodyValue;
  readonly members: readonly BodyMember[];
  readonly blocks: readonly Block[];
};

/** A string is one block of text. */
export const blocksOf = (content: BodyValue | undefined): readonly Block[] => {
  if (content === undefined) return [];
  if (!isArrayHere(content)) return [{ at: content, type: "text", members: [] }];
  return itemsAt(content).map((at) => {
    const members = membersAt(at);
    return { at, type: stringAt(memberAt(members, "type")) ?? "", members };
  });
};

export const turnsOf = (members: readonly BodyMember[]): readonly Turn[] => {
  const messages = memberAt(members, "messages");
  return (messages ? itemsAt(messages) : []).map((at) => {
    const inside = membersAt(at);
    const blocks = blocksOf(memberAt(inside, "content"));
    return { role: stringAt(memberAt(inside, "role")) ?? "", at, members: inside, blocks };
  });
};

/** The blocks inside a tool result. */
export const partsOf = ({ type, members }: Block): readonly Block[] =>
  type === "tool_result" ? blocksOf(memberAt(members, "content")) : [];

// --- parameters ------------------------------------------------------------------------------------------------------

/** Asks for citations, itself or in one of its parts. */
const citesIn = (block: Block): boolean => {
  const citations = memberAt(block.members, "citations");
  const enabled = citations && memberAt(membersAt(citations), "enabled");
  return (enabled !== undefined && rawText(enabled) === "true") || partsOf(block).some(citesIn);
};

export const imagesIn = (block: Block): readonly BodyValue[] =>
  [block, ...partsOf(block)].filter((part) => part.type === "image").map(({ at }) => at);

/** `auto`, with parallel calls allowed, means the same as no choice. */
const toolChoiceText = (at: BodyValue): string => {
  const parallel = memberAt(membersAt(at), "disable_parallel_tool_use");
  const isPlain = parallel === undefined || rawText(parallel) === "false";
  const text = isPlain ? textWithout(at, "disable_parallel_tool_use") : unorderedText(at, rule);
  return text === '{"type":"auto"}' ? "auto" : text;
};

const textWithout = (object: BodyValue, key: string): string =>
  unorderedText(object, { ...rule, unseen: new Set([...rule.unseen, key]) });

/** In the order in which a first difference is reported. */
export const anthropicSettings = (
  members: readonly BodyMember[],
  turns: readonly Turn[],
  betas: readonly string[] | undefined,
): readonly Setting[] => {
  const blocks = turns.flatMap((turn) => turn.blocks);
  const images = blocks.flatMap(imagesIn);
  const citing = blocks.find(citesIn);
  const output = memberAt(members, "output_config");
  const effort = output && memberAt(membersAt(output), "effort");
  const format = memberAt(members, "output_format");
  const otherOutput = output && textWithout(output, "effort");
  const thinking = memberAt(members, "thinking");
  const metadata = memberAt(members, "metadata");
  const user = metadata && memberAt(membersAt(metadata), "user_id");
  const plain = (["model", "speed", "context_management", "mcp_servers", "tool_choice"] as const).flatMap((name) => {
    const at = memberAt(members, name);
    return at
      ? [{ name, text: name === "tool_choice" ? toolChoiceText(at) : (stringAt(at) ?? unorderedText(at, rule)), at }]
      : [];
  });
  return [
    ...plain.filter(({ name }) => name === "model" || name === "speed"),
    // Only in DeepSeek's key.
    ...(user ? [{ name: "user_id", text: stringAt(user) ?? rawText(user), at: user } as const] : []),
    // What happens to thinking that no longer fits is visible in the prompt itself.
    ...(thinking ? [{ name: "thinking", text: textWithout(thinking, "block_binding"), at: thinking } as const] : []),
    ...(effort ? [{ name: "effort", text: stringAt(effort) ?? rawText(effort), at: effort } as const] : []),
    ...(format
      ? [{ name: "output_format", text: unorderedText(format, rule), at: format } as const]
      : output && otherOutput !== "{}"
        ? [{ name: "output_format", text: otherOutput ?? "", at: output } as const]
        : []),
    ...plain.filter(({ name }) => name !== "model" && name !== "speed"),
    ...(betas && betas.length > 0 ? [{ name: "betas", text: [...new Set(betas)].sort().join(",") } as const] : []),
    ...(citing ? [{ name: "citations", text: "on", at: citing.at } as const] : []),
    ...(images.length > 0 ? [{ name: "images", text: String(images.length) } as const] : []),
  ];
};
