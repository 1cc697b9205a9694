/** Which prompt does a Messages body contain?
 *  Invariant: markers are read from the blocks and never part of them; everything that the vendor's invalidation table
 *  names is a parameter here.
 *  Elsewhere: hashes and counts (../../prompt), which bodies get this far (validate.ts). */

import type { Json, JsonObject, Ttl } from "@prefork/wire";
import {
  isObject,
  listOf,
  objectOf,
  type ReadBlock,
  type ReadMessage,
  readMessages,
  readResultContent,
  readSystem,
  stringOf,
} from "../../body.ts";
import type { CachingSettings } from "../../cache/index.ts";
import { citesIn, imagesIn, type Parameters, type ReadPrompt, type ReadTool } from "../../prompt/index.ts";
import type { CacheRules } from "../../rules/index.ts";

export type PromptTerms = {
  readonly betas: readonly string[];
  readonly rules: CacheRules;
  /** Paths of the thinking that the provider drops. */
  readonly dropped: ReadonlySet<string>;
};

export const promptOf = (body: JsonObject, { betas, rules, dropped }: PromptTerms): ReadPrompt => {
  const messages = readMessages(body).map((message, index) => {
    const settings = objectOf(listOf(body.messages)[index]).output_config;
    const blocks = message.blocks.map((read) => marked(read, rules));
    return { ...message, blocks, ...(settings === undefined ? {} : { settings }) };
  });
  return {
    tools: toolsIn(body, rules),
    system: readSystem(body).map((read) => marked(read, rules)),
    messages,
    parameters: parametersOf(body, { betas, rules, messages }),
    earlierThinking: rules.earlierThinking,
    dropped,
  };
};

/** What the body asks for besides the markers on its blocks. */
export const cachingOf = (body: JsonObject, rules: CacheRules): CachingSettings => {
  const control = body.cache_control;
  const scopes = {
    user_id: objectOf(body.metadata).user_id,
    cache_salt: body.cache_salt,
    prompt_cache_key: null,
    none: null,
  };
  const cacheScope = stringOf(scopes[rules.apart]);
  return {
    markers: markersIn(body),
    ...(isObject(control) && rules.markers !== "ignored"
      ? { last: (control.ttl as Ttl | undefined) ?? rules.defaultTtl }
      : {}),
    ...(cacheScope === "" ? {} : { cacheScope }),
  };
};

/** A lifetime that this provider does not offer. */
export const checkLifetimes = (
  prompt: ReadPrompt,
  caching: CachingSettings,
  { ttls }: CacheRules,
): string | undefined => {
  const blocks = [...prompt.tools, ...prompt.system, ...prompt.messages.flatMap((message) => message.blocks)];
  const asked = [caching.last, ...blocks.map(({ marker }) => marker)];
  const wrong = asked.find((ttl) => ttl !== undefined && ttls[ttl] === undefined);
  return (
    wrong && `cache_control.ttl: ${wrong} is not supported here; supported: ${Object.keys(ttls).join(", ") || "none"}`
  );
};

/** Every marker that the client wrote, including several that take effect at the same block. */
const markersIn = (body: JsonObject): number => {
  const blocks = [...readSystem(body), ...readMessages(body).flatMap((message) => message.blocks)].map(
    ({ block }) => block,
  );
  const inner = blocks
    .filter((block) => block.type === "tool_result")
    .flatMap((block) => readResultContent(block).map((part) => part.block));
  const carriers = [...listOf(body.tools).map(objectOf), ...blocks, ...inner];
  return carriers.filter((carrier) => isObject(carrier.cache_control)).length;
};

const marked = (read: ReadBlock, rules: CacheRules): ReadBlock => {
  const marker = markerOf(read.block, rules);
  return marker === undefined ? read : { ...read, marker };
};

const markerOf = (block: JsonObject, rules: CacheRules): Ttl | undefined => {
  if (rules.markers === "ignored") return undefined;
  const own = block.cache_control;
  // A marker inside a tool result takes effect at the end of that result: entries end at whole blocks.
  const inner = readResultContent(block).findLast((part) => isObject(part.block.cache_control))?.block;
  const control = isObject(own) ? own : block.type === "tool_result" ? inner?.cache_control : undefined;
  return isObject(control) ? ((control.ttl as Ttl | undefined) ?? rules.defaultTtl) : undefined;
};

const isWebTool = (tool: JsonObject): boolean => /^web_(search|fetch)_/.test(stringOf(tool.type));

const toolsIn = (body: JsonObject, rules: CacheRules): readonly ReadTool[] =>
  listOf(body.tools)
    .map((entry, index) => ({ tool: objectOf(entry), path: `tools[${index}]` }))
    // A deferred tool is not in the prompt until a search finds it.
    .filter(({ tool }) => tool.defer_loading !== true)
    .map(({ tool, path }) => {
      const marker = markerOf(tool, rules);
      const level = isWebTool(tool) ? rules.webToolsLevel : "tools";
      return { tool, path, level, ...(marker === undefined ? {} : { marker }) };
    });

type ParameterTerms = {
  readonly betas: readonly string[];
  readonly rules: CacheRules;
  readonly messages: readonly ReadMessage[];
};

const parametersOf = (body: JsonObject, { betas, rules, messages }: ParameterTerms): Parameters => {
  const { effort, ...output } = objectOf(body.output_config);
  // What happens to thinking that no longer fits is visible in the prompt itself: the cache restarts at the edit.
  const { block_binding: _binding, ...thinking } = objectOf(body.thinking);
  const blocks = messages.flatMap((message) => message.blocks);
  const images = blocks.reduce((count, { block }) => count + imagesIn(block), 0);
  const given: Readonly<Record<string, Json | undefined>> = {
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
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as Parameters;
};
