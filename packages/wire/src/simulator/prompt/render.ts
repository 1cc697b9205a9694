/** What prompt does a request render to, block by block, and which hash stands behind each block?
 *  Invariant: hash i covers everything rendered up to block i and nothing else; markers, stream, max_tokens,
 *  metadata and diagnostics are never in it; two requests share a prefix exactly as far as their hashes agree.
 *  Elsewhere: the text of one block (block.ts), where entries are written (../cache). */

import { hash } from "node:crypto";
import type { Json, JsonObject, Ttl } from "../../request.ts";
import { isObject, listOf, objectOf, readMessages, readResultContent, readSystem, stringOf } from "../body.ts";
import type { CacheRules, KeyParameter, Level } from "../rules/index.ts";
import { levels } from "../rules/index.ts";
import type { TokenRule } from "../tokens.ts";
import type { Field } from "./block.ts";
import { canonical, citesIn, countedBlock, countedTool, fieldsOf, imagesIn, isThinking } from "./block.ts";

export type RenderedBlock = {
  readonly level: Level;
  /** `settings` for the parameters that open a level; they hold no tokens and are no position. */
  readonly kind: string;
  readonly role: string;
  readonly path: string;
  readonly hash: string;
  readonly tokens: number;
  /** Prompt tokens up to and including this block. */
  readonly end: number;
  readonly marker?: Ttl;
  readonly digests: readonly (readonly [shown: string, digest: string])[];
  /** Path of the earlier thinking left out just before this block. */
  readonly strippedBefore?: string;
};

export type Rendered = {
  readonly blocks: readonly RenderedBlock[];
  readonly tokens: number;
  /** Each part by itself, for the provider's own comparison of two requests. */
  readonly fingerprint: {
    readonly model: string;
    readonly tools: string;
    readonly system: string;
    readonly parameters: string;
  };
};

export type RenderInput = {
  readonly body: JsonObject;
  readonly betas: readonly string[];
  readonly partition: string;
  readonly rules: CacheRules;
  readonly tokenRule: TokenRule;
  /** Paths of the thinking that the provider takes out before the model sees the prompt. */
  readonly dropped: ReadonlySet<string>;
};

type Piece = {
  readonly level: Level;
  readonly kind: string;
  readonly role: string;
  readonly path: string;
  readonly fields: readonly Field[];
  readonly tokens: number;
  readonly marker?: Ttl;
  readonly strippedBefore?: string;
};

export const render = (input: RenderInput): Rendered => {
  const parts = piecesByLevel(input);
  const settings = keyParameters(input);
  const blocks: RenderedBlock[] = [];
  let chain = hash("sha256", `partition ${input.partition}`);
  let end = 0;
  for (const level of levels) {
    for (const piece of [settingsPiece(level, settings, input.rules), ...parts[level]]) {
      chain = hash("sha256", `${chain}${keyText(piece)}`);
      end += piece.tokens;
      const { fields, ...rest } = piece;
      blocks.push({ ...rest, hash: chain, end, digests: digestsOf(fields) });
    }
  }
  return { blocks, tokens: end, fingerprint: fingerprintOf(parts, settings) };
};

const fingerprintOf = (parts: Record<Level, readonly Piece[]>, parameters: Parameters): Rendered["fingerprint"] => {
  // Images and citations follow from the messages, so a change of theirs is a change of messages.
  const { model, speed, images: _images, citations: _citations, ...rest } = parameters;
  return {
    model: canonical([model ?? "", speed ?? ""]),
    tools: hash("sha256", parts.tools.map(keyText).join("")),
    system: hash("sha256", parts.system.map(keyText).join("")),
    parameters: canonical(rest as JsonObject),
  };
};

/** Lengths stand before values, so that no content can imitate a boundary. */
const keyText = (piece: Piece): string =>
  `\n${piece.level}/${piece.role}/${piece.kind}${piece.fields
    .map((field) => `\n${field.name}:${field.value.length}:${field.value}`)
    .join("")}`;

/** One field alone needs no digest: if the block differs, that field does. */
const digestsOf = (fields: readonly Field[]): RenderedBlock["digests"] =>
  fields.length === 1
    ? fields.map((field) => [field.shown, ""])
    : fields.map((field) => [field.shown, hash("sha1", field.value).slice(0, 16)]);

type Parameters = Readonly<Partial<Record<KeyParameter, Json>>>;

const keyParameters = ({ body, betas, rules }: RenderInput): Parameters => {
  const { effort, ...output } = objectOf(body.output_config);
  // What happens to thinking that no longer fits shows in the prompt by itself: the cache restarts at the edit.
  const { block_binding: _binding, ...thinking } = objectOf(body.thinking);
  const blocks = readMessages(body).flatMap((message) => message.blocks);
  const images = blocks.reduce((count, { block }) => count + imagesIn(block), 0);
  const given: Partial<Record<KeyParameter, Json | undefined>> = {
    model: body.model,
    speed: body.speed,
    thinking: isObject(body.thinking) ? thinking : undefined,
    effort,
    tool_choice: body.tool_choice,
    output_format: body.output_format ?? (Object.keys(output).length > 0 ? output : undefined),
    context_management: body.context_management,
    mcp_servers: body.mcp_servers,
    betas: betas.length > 0 ? [...new Set(betas)].sort() : undefined,
    citations: blocks.some(({ block }) => citesIn(block)) || undefined,
    images: rules.images === "none" || images === 0 ? undefined : rules.images === "count" ? images : true,
  };
  const kept: Partial<Record<KeyParameter, Json>> = {};
  for (const [name, value] of Object.entries(given) as [KeyParameter, Json | undefined][]) {
    const absent = rules.defaults[name];
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

const markerOf = (block: JsonObject, rules: CacheRules): { readonly marker?: Ttl } => {
  const own = block.cache_control;
  // A marker inside a tool result takes effect at the end of that result: entries end at whole blocks.
  const inner = readResultContent(block).findLast((part) => isObject(part.block.cache_control))?.block;
  const control = isObject(own) ? own : block.type === "tool_result" ? inner?.cache_control : undefined;
  if (!isObject(control)) return {};
  return { marker: (control.ttl as Ttl | undefined) ?? rules.defaultTtl };
};

const isWebTool = (tool: JsonObject): boolean => /^web_(search|fetch)_/.test(stringOf(tool.type));

const piecesByLevel = (input: RenderInput): Record<Level, readonly Piece[]> => {
  const { body, rules, tokenRule } = input;
  const tools = listOf(body.tools)
    .map((entry, index) => ({ tool: objectOf(entry), path: `tools[${index}]` }))
    // A deferred tool stands outside the prompt until a search finds it.
    .filter(({ tool }) => tool.defer_loading !== true)
    .map(({ tool, path }) => ({
      level: isWebTool(tool) ? rules.webToolsLevel : ("tools" as Level),
      kind: "tool",
      role: "",
      path,
      fields: fieldsOf(tool.type === undefined ? tool : { ...tool, tool_type: tool.type }),
      tokens: tokenRule(countedTool(tool)),
      ...markerOf(tool, rules),
    }));
  const at = (level: Level): Piece[] => tools.filter((tool) => tool.level === level);
  const system = readSystem(body).map(({ block, path, bare }) => ({
    level: "system" as const,
    kind: stringOf(block.type),
    role: "",
    path,
    fields: fieldsOf(block, bare),
    tokens: tokenRule(countedBlock(block)),
    ...markerOf(block, rules),
  }));
  return {
    tools: at("tools"),
    system: [...at("system"), ...system],
    messages: [...at("messages"), ...messagePieces(input)],
  };
};

/** Messages before this index have lost their thinking, where the model keeps only the last turn's. */
const thinkingKeptFrom = (body: JsonObject, rules: CacheRules): number =>
  rules.earlierThinking === "keep-all"
    ? 0
    : readMessages(body).findLastIndex(
        (message) => message.role === "user" && message.blocks.some(({ block }) => block.type !== "tool_result"),
      );

/** Messages are flattened: a role change is in the key, a message boundary is not, so same-role turns merge. */
const messagePieces = ({ body, rules, tokenRule, dropped }: RenderInput): readonly Piece[] => {
  const keptFrom = thinkingKeptFrom(body, rules);
  const pieces: Piece[] = [];
  let stripped: string | undefined;
  readMessages(body).forEach((message, index) => {
    const effort = objectOf(listOf(body.messages)[index]).output_config;
    if (effort !== undefined && effort !== null)
      pieces.push({
        level: "messages",
        kind: "settings",
        role: message.role,
        path: message.path,
        tokens: 0,
        fields: [{ name: "output_config", shown: ".output_config", value: canonical(effort) }],
      });
    for (const { block, path, bare } of message.blocks) {
      if (dropped.has(path)) continue;
      if (index < keptFrom && isThinking(block)) {
        stripped ??= path;
        continue;
      }
      pieces.push({
        level: "messages",
        kind: stringOf(block.type),
        role: message.role,
        path,
        fields: fieldsOf(block, bare),
        tokens: tokenRule(countedBlock(block)),
        ...markerOf(block, rules),
        ...(stripped === undefined ? {} : { strippedBefore: stripped }),
      });
      stripped = undefined;
    }
  });
  return pieces;
};
