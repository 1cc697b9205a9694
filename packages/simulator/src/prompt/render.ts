/** What prompt does a request render to, block by block, and what is the hash after each block?
 *  Invariant: hash i covers everything rendered up to block i and nothing else; markers and anything outside the key
 *  are never in it; two requests share a prefix exactly as far as their hashes agree.
 *  Elsewhere: what a wire format reads (prompt.ts), the text of one block (block.ts), positions inside a block
 *  (cuts.ts), where entries are written (../cache). */

import { hash } from "node:crypto";
import type { Json, JsonObject, Ttl } from "@prefork/wire";
import { type ReadBlock, stringOf } from "../body.ts";
import type { CacheRules, KeyParameter, Level } from "../rules/index.ts";
import type { TokenRule } from "../tokens.ts";
import {
  canonical,
  contentOf,
  countedRead,
  countedTool,
  type Field,
  fieldsOf,
  isThinking,
  structureOf,
} from "./block.ts";
import type { Parameters, ReadPrompt } from "./prompt.ts";

export type RenderedBlock = {
  readonly level: Level;
  /** `settings` for the parameters that open a level; they have no tokens and are not a position. */
  readonly kind: string;
  readonly role: string;
  readonly path: string;
  readonly hash: string;
  readonly tokens: number;
  /** Prompt tokens up to and including this block. */
  readonly end: number;
  readonly marker?: Ttl;
  readonly ending?: true;
  readonly digests: readonly (readonly [shown: string, digest: string])[];
  /** Path of the earlier thinking that was dropped just before this block. */
  readonly strippedBefore?: string;
  /** What comes before its text in the key, and the text if it can be shared partly. */
  readonly opening: string;
  readonly content?: string;
};

export type Rendered = {
  readonly blocks: readonly RenderedBlock[];
  readonly tokens: number;
  /** Before the first block. */
  readonly root: string;
  /** Each part separately, for the provider's own comparison of two requests. */
  readonly fingerprint: Fingerprint;
};

export type Fingerprint = {
  readonly tools: string;
  readonly system: string;
  readonly parameters: Readonly<Partial<Record<KeyParameter, string>>>;
};

export type RenderTerms = {
  readonly partition: string;
  readonly rules: CacheRules;
  readonly tokenRule: TokenRule;
};

type Piece = {
  readonly level: Level;
  readonly kind: string;
  readonly role: string;
  readonly path: string;
  readonly fields: readonly Field[];
  readonly tokens: number;
  readonly marker?: Ttl;
  readonly ending?: true;
  readonly strippedBefore?: string;
  readonly content?: string;
};

export const render = (prompt: ReadPrompt, terms: RenderTerms): Rendered => {
  const { rules, partition } = terms;
  const parts = piecesByLevel(prompt, terms.tokenRule);
  const settings = keptParameters(prompt.parameters, rules);
  const root = hash("sha256", `partition ${partition}`);
  const opened = rules.order.flatMap((level) => [settingsPiece(level, settings, rules), ...parts[level]]);
  const blocks = chain(opened, { hash: root, end: 0 });
  return { blocks, root, tokens: blocks.at(-1)?.end ?? 0, fingerprint: fingerprintOf(parts, settings) };
};

/** What follows a prompt that is already rendered: an answer, as it would come back. */
export const renderAfter = (
  answer: readonly ReadBlock[],
  before: Pick<RenderedBlock, "hash" | "end">,
  tokenRule: TokenRule,
): readonly RenderedBlock[] =>
  chain(
    answer.map((read) => blockPiece(read, "assistant", tokenRule)),
    before,
  );

const chain = (pieces: readonly Piece[], before: Pick<RenderedBlock, "hash" | "end">): readonly RenderedBlock[] => {
  const blocks: RenderedBlock[] = [];
  let { hash: link, end } = before;
  for (const piece of pieces) {
    link = hash("sha256", `${link}${keyText(piece, piece.fields)}`);
    end += piece.tokens;
    const { fields, ...rest } = piece;
    // The whole definition of a tool is text.
    const opening = keyText(piece, piece.kind === "tool" ? [] : structureOf(fields));
    blocks.push({ ...rest, hash: link, end, digests: digestsOf(fields), opening });
  }
  return blocks;
};

const fingerprintOf = (parts: Record<Level, readonly Piece[]>, parameters: Parameters): Fingerprint => {
  // Images and citations depend on the messages, so a change of theirs counts as a change of messages.
  const { images: _images, citations: _citations, ...rest } = parameters;
  const all = (pieces: readonly Piece[]): string =>
    hash("sha256", pieces.map((piece) => keyText(piece, piece.fields)).join(""));
  return {
    tools: all(parts.tools),
    system: all(parts.system),
    parameters: Object.fromEntries(Object.entries(rest).map(([name, value]) => [name, canonical(value as Json)])),
  };
};

/** Values are preceded by their length, so that no content can imitate a boundary. */
const keyText = ({ level, role, kind }: Piece, fields: readonly Field[]): string =>
  `\n${level}/${role}/${kind}${fields.map((field) => `\n${field.name}:${field.value.length}:${field.value}`).join("")}`;

/** A single field needs no digest: if the block differs, that field does. */
const digestsOf = (fields: readonly Field[]): RenderedBlock["digests"] =>
  fields.length === 1
    ? fields.map((field) => [field.shown, ""])
    : fields.map((field) => [field.shown, hash("sha1", field.value).slice(0, 16)]);

/** Without parameters whose value means the same as their absence. */
const keptParameters = (given: Parameters, { defaults }: CacheRules): Parameters => {
  const kept: Partial<Record<KeyParameter, Json>> = {};
  for (const [name, value] of Object.entries(given) as [KeyParameter, Json | undefined][]) {
    const absent = defaults[name];
    if (value === undefined || value === null) continue;
    if (absent !== undefined && canonical(value) === canonical(absent)) continue;
    kept[name] = value;
  }
  return kept;
};

const settingsPiece = (level: Level, parameters: Parameters, rules: CacheRules): Piece => ({
  level,
  kind: "settings",
  role: "",
  path: "",
  tokens: 0,
  fields: (Object.keys(rules.invalidation) as KeyParameter[])
    .filter((name) => rules.invalidation[name] === level)
    .map((name) => ({ name, shown: name, value: parameters[name] === undefined ? "" : canonical(parameters[name]) })),
});

const blockPiece = (read: ReadBlock, role: string, tokenRule: TokenRule): Piece => {
  const content = contentOf(read);
  return {
    level: "messages",
    kind: stringOf(read.block.type),
    role,
    path: read.path,
    fields: fieldsOf(read),
    tokens: tokenRule(countedRead(read)),
    ...(content === undefined ? {} : { content }),
    ...(read.marker === undefined ? {} : { marker: read.marker }),
    ...(read.ending ? { ending: true as const } : {}),
  };
};

const piecesByLevel = (prompt: ReadPrompt, tokenRule: TokenRule): Record<Level, readonly Piece[]> => {
  const tools = prompt.tools.map(({ tool, path, level, marker, shown }): Piece => {
    const counted = countedTool(tool);
    return {
      level,
      kind: "tool",
      role: "",
      path,
      fields: fieldsOf({ block: typeAsField(tool), ...(shown === undefined ? {} : { shown }) }),
      tokens: tokenRule(counted),
      content: counted.text,
      ...(marker === undefined ? {} : { marker }),
    };
  });
  const at = (level: Level): Piece[] => tools.filter((tool) => tool.level === level);
  const system = prompt.system.map((read) => ({ ...blockPiece(read, "", tokenRule), level: "system" as const }));
  return {
    tools: at("tools"),
    system: [...at("system"), ...system],
    messages: [...at("messages"), ...messagePieces(prompt, tokenRule)],
  };
};

/** A block's type is its kind; a tool's is one of its fields. */
const typeAsField = (tool: JsonObject): JsonObject =>
  tool.type === undefined ? tool : { ...tool, tool_type: tool.type };

/** Messages before this index have lost their thinking, if the model keeps only the last turn's. */
const thinkingKeptFrom = ({ messages, earlierThinking }: ReadPrompt): number =>
  earlierThinking === "keep-all"
    ? 0
    : messages.findLastIndex(
        (message) => message.role === "user" && message.blocks.some(({ block }) => block.type !== "tool_result"),
      );

/** Messages are flattened: a change of role is in the key but a message boundary is not, so turns of the same role
 *  merge. */
const messagePieces = (prompt: ReadPrompt, tokenRule: TokenRule): readonly Piece[] => {
  const keptFrom = thinkingKeptFrom(prompt);
  const pieces: Piece[] = [];
  let stripped: string | undefined;
  for (const [index, { role, path, settings, blocks }] of prompt.messages.entries()) {
    if (settings !== undefined && settings !== null)
      pieces.push({
        level: "messages",
        kind: "settings",
        role,
        path,
        tokens: 0,
        fields: [{ name: "output_config", shown: ".output_config", value: canonical(settings) }],
      });
    for (const read of blocks) {
      if (prompt.dropped?.has(read.path)) continue;
      if (index < keptFrom && isThinking(read.block)) {
        stripped ??= read.path;
        continue;
      }
      const before = stripped === undefined ? {} : { strippedBefore: stripped };
      pieces.push({ ...blockPiece(read, role, tokenRule), ...before });
      stripped = undefined;
    }
  }
  return pieces;
};
