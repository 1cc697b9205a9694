/** How is a Chat Completions request read?
 *  Invariant: what is kept while answering does not refer to the body.
 *  Elsewhere: which bodies are refused (validate*.ts), the prompt (prompt.ts), the answer (encode-answer.ts). */

import type { JsonObject } from "@prefork/wire";
import { listOf, objectOf, type ReadBlock, stringOf } from "../../body.ts";
import { neutralBody } from "../../neutral.ts";
import type { ReadPrompt } from "../../prompt/index.ts";
import type { ModelRules } from "../../rules/index.ts";
import { type ReadRequest, type Received, type Refused, refused, type WireSession } from "../../wire.ts";
import { cachingOf, markersIn } from "../openai/index.ts";
import { answerEncoder, messageBody } from "./encode-answer.ts";
import { promptOf, turnsOf } from "./prompt.ts";
import { checkRequest } from "./validate.ts";

const encodableBlocks = new Set(["text", "thinking", "tool_use"]);

export class ChatSession implements WireSession {
  read(received: Received, rules: ModelRules): ReadRequest | Refused {
    const read = this.readPrompt(received, rules);
    if (!read.ok) return read;
    const { body, ordered } = received.parsed;
    const { prompt } = read;
    const caching = cachingOf(body, rules.cache, markersIn(prompt));
    const { reports } = rules;
    const maxTokens = body.max_completion_tokens ?? body.max_tokens ?? body.n_predict;
    return {
      ok: true,
      prompt,
      body: neutralBody({
        model: received.model,
        stream: received.stream,
        maxTokens,
        tools: listOf(ordered.tools).map((tool) => neutralTool(objectOf(objectOf(tool).function))),
        system: prompt.system,
        messages: prompt.messages,
      }),
      prewarm: maxTokens === 0,
      caching,
      ids: { message: "chatcmpl", call: "call" },
      sign: () => "",
      encodableBlocks,
      encoder: answerEncoder({
        reports,
        marked: caching.markers > 0 && rules.cache.markers !== "ignored",
        includeUsage: objectOf(body.stream_options).include_usage === true,
      }),
      blocksOf: answerReader(reports),
      diagnose: () => null,
      onBegin: () => undefined,
    };
  }

  readPrompt({ parsed }: Received, rules: ModelRules): { readonly ok: true; readonly prompt: ReadPrompt } | Refused {
    const complaint = checkRequest(parsed.body, rules);
    return complaint === undefined ? { ok: true, prompt: promptOf(parsed.ordered, rules) } : refused(complaint);
  }
}

const answerReader =
  (reports: ModelRules["reports"]): ReadRequest["blocksOf"] =>
  (message): readonly ReadBlock[] =>
    turnsOf(messageBody(message, { reports }), reports.reasoning);

const neutralTool = ({ name, description, parameters }: JsonObject): JsonObject => ({
  name: stringOf(name),
  description: stringOf(description),
  input_schema: objectOf(parameters),
});
