/** Which prompt does a Chat Completions body contain?
 *  Invariant: blocks have the form of the Messages API, paths are the client's; a call's arguments stay verbatim.
 *  Elsewhere: which bodies get this far (validate.ts), hashes and counts (../../prompt). */

import type { Json, JsonObject } from "@prefork/wire";
import { listOf, objectOf, type ReadBlock, type ReadMessage, stringOf } from "../../body.ts";
import { inputOf, presentOnly } from "../../neutral.ts";
import type { ReadPrompt, ReadTool } from "../../prompt/index.ts";
import type { ModelRules } from "../../rules/index.ts";
import { markerOn, partTurns } from "../openai/index.ts";

export const promptOf = (body: JsonObject, rules: ModelRules): ReadPrompt => {
  const read = listOf(body.messages).map((message, at) =>
    turnOf(objectOf(message), `messages[${at}]`, { body, rules }),
  );
  return {
    tools: listOf(body.tools).map(readTool),
    ...partTurns(read),
    parameters: presentOnly({
      model: body.model,
      effort: body.reasoning_effort,
      verbosity: body.verbosity,
      service_tier: body.service_tier,
      parallel_tool_calls: body.parallel_tool_calls,
      tool_choice: body.tool_choice,
      output_format: body.response_format,
      thinking: body.thinking ?? body.enable_thinking ?? body.chat_template_kwargs,
    }),
    earlierThinking: rules.cache.earlierThinking,
  };
};

/** An answer's message as it would be sent back, in the only order the format has. */
export const turnsOf = (message: JsonObject, reasoning: string): readonly ReadBlock[] =>
  assistantBlocks(message, "", { reasoning, body: {}, rules: undefined });

const readTool = (entry: Json, index: number): ReadTool => ({
  tool: objectOf(objectOf(entry).function),
  path: `tools[${index}]`,
  level: "tools",
  shown: {
    name: ".function.name",
    description: ".function.description",
    parameters: ".function.parameters",
    strict: ".function.strict",
  },
});

type Terms = { readonly body: JsonObject; readonly rules: ModelRules };

const turnOf = (message: JsonObject, path: string, terms: Terms): ReadMessage => {
  switch (message.role) {
    case "assistant": {
      const { reasoning } = terms.rules.reports;
      return { role: "assistant", path, blocks: assistantBlocks(message, path, { ...terms, reasoning }) };
    }
    case "tool":
      return { role: "user", path, blocks: [resultBlock(message, path, terms)] };
    case "user":
      return { role: "user", path, blocks: contentBlocks(message.content, `${path}.content`, terms) };
    default:
      return { role: "system", path, blocks: contentBlocks(message.content, `${path}.content`, terms) };
  }
};

type ContentTerms = { readonly body: JsonObject; readonly rules: ModelRules | undefined };

const contentBlocks = (content: Json | undefined, path: string, { body, rules }: ContentTerms): readonly ReadBlock[] =>
  typeof content === "string"
    ? [{ block: { type: "text", text: content }, path, bare: true }]
    : listOf(content).map((entry, index) => {
        const part = objectOf(entry);
        const marker = rules === undefined ? {} : markerOn(part, body, rules.cache);
        return { block: partBlock(part), path: `${path}[${index}]`, ...marker };
      });

const partBlock = (part: JsonObject): JsonObject => {
  switch (part.type) {
    case "text":
      return { type: "text", text: stringOf(part.text) };
    case "refusal":
      return { type: "text", text: stringOf(part.refusal) };
    case "image_url":
      return { type: "image", source: objectOf(part.image_url) };
    case "file":
      return { type: "document", source: objectOf(part.file) };
    default:
      return { type: "document", source: objectOf(part.input_audio) };
  }
};

const resultBlock = (message: JsonObject, path: string, terms: Terms): ReadBlock => {
  const parts = contentBlocks(message.content, `${path}.content`, terms);
  const marker = parts.findLast((part) => part.marker !== undefined)?.marker;
  return {
    block: {
      type: "tool_result",
      tool_use_id: stringOf(message.tool_call_id),
      content: parts.map(({ block }) => block),
    },
    path,
    shown: { content: ".content", tool_use_id: ".tool_call_id" },
    ...(marker === undefined ? {} : { marker }),
  };
};

type SpokenTerms = ContentTerms & {
  /** The name under which reasoning is sent back. */
  readonly reasoning: string;
};

const assistantBlocks = (message: JsonObject, path: string, terms: SpokenTerms): readonly ReadBlock[] => {
  const thought = stringOf(message[terms.reasoning]);
  const refusal = stringOf(message.refusal);
  const content = message.content === "" ? [] : contentBlocks(message.content, `${path}.content`, terms);
  return [
    ...(thought === ""
      ? []
      : [
          {
            block: { type: "thinking", thinking: thought },
            path: `${path}.${terms.reasoning}`,
            shown: { thinking: "" },
          },
        ]),
    ...content,
    ...(refusal === ""
      ? []
      : [{ block: { type: "text", text: refusal }, path: `${path}.refusal`, bare: true as const }]),
    ...listOf(message.tool_calls).map((entry, index) => callBlock(objectOf(entry), `${path}.tool_calls[${index}]`)),
  ];
};

const callBlock = (call: JsonObject, path: string): ReadBlock => {
  const { name, arguments: text } = objectOf(call.function);
  const verbatim = stringOf(text);
  return {
    block: { type: "tool_use", id: stringOf(call.id), name: stringOf(name), input: inputOf(verbatim) },
    path,
    verbatim,
    shown: { name: ".function.name", input: ".function.arguments" },
  };
};
