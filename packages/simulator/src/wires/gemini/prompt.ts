/** Which prompt does a Gemini body contain?
 *  Invariant: blocks have the form of the Messages API, paths are the client's; a stored prompt comes before the
 *  request's own content.
 *  Elsewhere: which bodies get this far (validate*.ts), hashes and counts (../../prompt). */

import type { Json, JsonObject } from "@prefork/wire";
import { isObject, listOf, objectOf, type ReadBlock, type ReadMessage, stringOf } from "../../body.ts";
import { mergeTurns, presentOnly } from "../../neutral.ts";
import type { ReadPrompt, ReadTool } from "../../prompt/index.ts";
import type { CacheRules } from "../../rules/index.ts";
import { field } from "./complaints.ts";

export type PromptTerms = {
  readonly model: string;
  readonly rules: CacheRules;
  /** The stored prompt that the request names: tools, instructions and the turns before its own. */
  readonly stored?: JsonObject;
};

export const promptOf = (body: JsonObject, { model, rules, stored }: PromptTerms): ReadPrompt => {
  const config = objectOf(field(body, "generationConfig"));
  const head = stored ?? body;
  return {
    tools: toolsIn(head),
    system: systemIn(head),
    messages: mergeTurns(turnsOf(listOf(body.contents), listOf(stored?.contents))),
    parameters: presentOnly({
      model,
      tool_choice: field(head, "toolConfig"),
      thinking: field(config, "thinkingConfig"),
      output_format: field(config, "responseSchema") ?? field(config, "responseJsonSchema"),
      service_tier: field(body, "serviceTier"),
    }),
    earlierThinking: rules.earlierThinking,
  };
};

/** Each function declaration separately; other tools unchanged. */
const toolsIn = (body: JsonObject): readonly ReadTool[] =>
  listOf(body.tools).flatMap((entry, at): readonly ReadTool[] => {
    const tool = objectOf(entry);
    const declared = listOf(field(tool, "functionDeclarations")).map((declaration, index) => ({
      tool: objectOf(declaration),
      path: `tools[${at}].functionDeclarations[${index}]`,
      level: "tools" as const,
    }));
    const others = Object.keys(tool).filter((name) => !/^function_?declarations$/i.test(name));
    return others.length === 0
      ? declared
      : [...declared, { tool: { type: others.join(" ") }, path: `tools[${at}]`, level: "tools" }];
  });

/** What a script reads of a tool. */
export const neutralTool = ({ tool }: ReadTool): JsonObject => ({
  name: stringOf(tool.name) || stringOf(tool.type),
  description: stringOf(tool.description),
  input_schema: objectOf(field(tool, "parametersJsonSchema") ?? tool.parameters),
});

const systemIn = (body: JsonObject): readonly ReadBlock[] =>
  listOf(objectOf(field(body, "systemInstruction")).parts).map((part, index) => ({
    block: { type: "text", text: stringOf(objectOf(part).text) },
    path: `systemInstruction.parts[${index}]`,
  }));

const turnsOf = (contents: readonly Json[], stored: readonly Json[]): readonly ReadMessage[] => {
  let calls: readonly ReadBlock[] = [];
  return [...stored, ...contents].map((entry, at) => {
    const { role, parts } = objectOf(entry);
    const path = at < stored.length ? `cachedContent.contents[${at}]` : `contents[${at - stored.length}]`;
    const blocks = listOf(parts).map((part, index) =>
      blockOf(objectOf(part), `${path}.parts[${index}]`, `call_${at}_${index}`),
    );
    const answered = calls;
    calls = blocks.filter(({ block }) => block.type === "tool_use");
    return { role: role === "model" ? "assistant" : "user", path, blocks: answersInOrder(blocks, answered) };
  });
};

/** `place` is the id of a call that has none. */
const blockOf = (part: JsonObject, path: string, place: string): ReadBlock => {
  const call = field(part, "functionCall");
  const response = field(part, "functionResponse");
  if (isObject(call)) return callBlock(call, path, place);
  if (isObject(response)) return resultBlock(response, path);
  if (typeof part.text === "string") {
    if (part.thought !== true) return { block: { type: "text", text: part.text }, path };
    return { block: { type: "thinking", thinking: part.text }, path, shown: { thinking: ".text" } };
  }
  const inline = objectOf(field(part, "inlineData") ?? field(part, "fileData"));
  const isImage = stringOf(field(inline, "mimeType")).startsWith("image/");
  if (Object.keys(inline).length > 0) return { block: { type: isImage ? "image" : "document", source: inline }, path };
  return { block: { ...part, type: "part" }, path };
};

const callBlock = (call: JsonObject, path: string, place: string): ReadBlock => ({
  block: {
    type: "tool_use",
    id: stringOf(call.id) || place,
    name: stringOf(call.name),
    input: objectOf(call.args),
  },
  path,
  shown: { id: ".functionCall.id", name: ".functionCall.name", input: ".functionCall.args" },
});

/** The value under `output` or `error` is the result, otherwise the whole response. */
const resultBlock = (response: JsonObject, path: string): ReadBlock => {
  const output = objectOf(response.response);
  const isError = output.error !== undefined;
  const value: Json = output.error ?? output.output ?? output;
  return {
    block: {
      type: "tool_result",
      tool_use_id: stringOf(response.id),
      name: stringOf(response.name),
      content: typeof value === "string" ? value : JSON.stringify(value),
      ...(isError ? { is_error: true } : {}),
    },
    path,
    shown: {
      content: ".functionResponse.response",
      tool_use_id: ".functionResponse.id",
      name: ".functionResponse.name",
      is_error: ".functionResponse.response",
    },
  };
};

/** Responses without an id answer the calls with their name, in order. */
const answersInOrder = (blocks: readonly ReadBlock[], calls: readonly ReadBlock[]): readonly ReadBlock[] => {
  const open = calls.map(({ block }) => block);
  return blocks.map((read) => {
    const { block } = read;
    if (block.type !== "tool_result") return read;
    const at = open.findIndex(({ id, name }) =>
      block.tool_use_id === "" ? name === block.name : id === block.tool_use_id,
    );
    const [call] = at < 0 ? [] : open.splice(at, 1);
    return block.tool_use_id === "" ? { ...read, block: { ...block, tool_use_id: stringOf(call?.id) } } : read;
  });
};
