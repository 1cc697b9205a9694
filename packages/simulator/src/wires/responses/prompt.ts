/** Which prompt does a Responses body contain?
 *  Invariant: blocks have the form of the Messages API, paths are the client's; a call's arguments stay verbatim.
 *  Elsewhere: which bodies get this far (validate*.ts), items of earlier responses (session.ts). */

import type { Json, JsonObject } from "@prefork/wire";
import { listOf, objectOf, type ReadBlock, type ReadMessage, stringOf } from "../../body.ts";
import { inputOf, presentOnly } from "../../neutral.ts";
import type { ReadPrompt, ReadTool } from "../../prompt/index.ts";
import type { CacheRules, ModelRules } from "../../rules/index.ts";
import { markerOn, partTurns } from "../openai/index.ts";
import { unseal } from "./seal.ts";
import { typeOf } from "./validate.ts";

export type PlacedItem = { readonly item: JsonObject; readonly path: string };

export const promptOf = (body: JsonObject, items: readonly PlacedItem[], { cache }: ModelRules): ReadPrompt => {
  const turns = items.map((placed) => turnOf(placed, body, cache));
  const instructions: readonly ReadBlock[] =
    typeof body.instructions === "string"
      ? [{ block: { type: "text", text: body.instructions }, path: "instructions", bare: true }]
      : [];
  return {
    tools: listOf(body.tools)
      .map(readTool)
      // A deferred tool is not in the prompt until a search finds it.
      .filter(({ tool }) => tool.defer_loading !== true),
    ...partTurns(turns, instructions),
    parameters: presentOnly({
      model: body.model,
      effort: objectOf(body.reasoning).effort,
      verbosity: objectOf(body.text).verbosity,
      output_format: objectOf(body.text).format,
      service_tier: body.service_tier,
      parallel_tool_calls: body.parallel_tool_calls,
      tool_choice: body.tool_choice,
      context_management: body.context_management,
    }),
    earlierThinking: earlierThinking(objectOf(body.reasoning).context, cache),
  };
};

const earlierThinking = (context: Json | undefined, rules: CacheRules): CacheRules["earlierThinking"] => {
  if (context === "current_turn") return "last-turn";
  return context === "all_turns" ? "keep-all" : rules.earlierThinking;
};

const readTool = (entry: Json, index: number): ReadTool => ({
  tool: objectOf(entry),
  path: `tools[${index}]`,
  level: "tools",
});

const roles: Readonly<Record<string, string>> = { user: "user", assistant: "assistant" };

const turnOf = ({ item, path }: PlacedItem, body: JsonObject, rules: CacheRules): ReadMessage => {
  const type = typeOf(item);
  switch (type) {
    case "message":
      return {
        role: roles[stringOf(item.role)] ?? "system",
        path,
        blocks: contentBlocks(item.content, `${path}.content`, { body, rules }),
      };
    case "reasoning":
      return { role: "assistant", path, blocks: [thinkingBlock(item, path)] };
    case "function_call":
      return { role: "assistant", path, blocks: [callBlock(item, path)] };
    case "function_call_output":
      return { role: "user", path, blocks: [resultBlock(item, path, { body, rules })] };
    default:
      return { role: speakerOf(type), path, blocks: [{ block: item, path }] };
  }
};

/** The speaker of items of the provider's own tools: their outputs go to the model, the others come from it. */
const speakerOf = (type: string): string => {
  if (type === "additional_tools" || type === "configuration_update") return "system";
  return /_(?:output|response)$/.test(type) ? "user" : "assistant";
};

type Terms = { readonly body: JsonObject; readonly rules: CacheRules };

const contentBlocks = (content: Json | undefined, path: string, { body, rules }: Terms): readonly ReadBlock[] =>
  typeof content === "string"
    ? [{ block: { type: "text", text: content }, path, bare: true }]
    : listOf(content).map((entry, index) => {
        const part = objectOf(entry);
        return { block: partBlock(part), path: `${path}[${index}]`, ...markerOn(part, body, rules) };
      });

const partBlock = ({ type, text, refusal, prompt_cache_breakpoint: _mark, ...source }: JsonObject): JsonObject => {
  switch (type) {
    case "input_text":
    case "output_text":
      return { type: "text", text: stringOf(text) };
    case "refusal":
      return { type: "text", text: stringOf(refusal) };
    case "input_image":
      return { type: "image", source };
    default:
      return { type: "document", source };
  }
};

const resultBlock = (item: JsonObject, path: string, terms: Terms): ReadBlock => {
  const parts = contentBlocks(item.output, `${path}.output`, terms);
  const marker = parts.findLast((part) => part.marker !== undefined)?.marker;
  return {
    block: { type: "tool_result", tool_use_id: stringOf(item.call_id), content: parts.map(({ block }) => block) },
    path,
    shown: { content: ".output", tool_use_id: ".call_id" },
    ...(marker === undefined ? {} : { marker }),
  };
};

const thinkingBlock = (item: JsonObject, path: string): ReadBlock => {
  const sealed = stringOf(item.encrypted_content);
  const shown = [...listOf(item.summary), ...listOf(item.content)].map((part) => stringOf(objectOf(part).text));
  return {
    block: { type: "thinking", thinking: unseal(sealed) ?? shown.join("\n\n"), signature: sealed },
    path,
    shown: { thinking: ".summary", signature: ".encrypted_content" },
  };
};

const callBlock = (item: JsonObject, path: string): ReadBlock => {
  const verbatim = stringOf(item.arguments);
  return {
    block: { type: "tool_use", id: stringOf(item.call_id), name: stringOf(item.name), input: inputOf(verbatim) },
    path,
    verbatim,
    shown: { id: ".call_id", input: ".arguments" },
  };
};
