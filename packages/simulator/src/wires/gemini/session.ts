/** How is a Gemini request read, and what is stored for later ones?
 *  Invariant: what is kept while answering does not refer to the body.
 *  Elsewhere: which bodies are refused (validate*.ts), the prompt (prompt.ts), the answer (encode-answer.ts). */

import type { JsonObject } from "@prefork/wire";
import { stableId } from "../../answer.ts";
import { objectOf, type ReadBlock, stringOf } from "../../body.ts";
import { invalid } from "../../errors.ts";
import { neutralBody } from "../../neutral.ts";
import type { ReadPrompt } from "../../prompt/index.ts";
import type { ModelRules } from "../../rules/index.ts";
import {
  type ReadRequest,
  type Received,
  type Refused,
  refused,
  type StoredPromptCall,
  type StoreReply,
  type StoreTerms,
  type WireSession,
} from "../../wire.ts";
import { field } from "./complaints.ts";
import { answerEncoder } from "./encode-answer.ts";
import { neutralTool, promptOf } from "./prompt.ts";
import { type Asking, expiryOf, type StoredContent, StoredContents, storedBody } from "./stored.ts";
import { checkRequest, checkShape } from "./validate.ts";
import { checkTurns } from "./validate-turns.ts";

const encodableBlocks = new Set(["text", "thinking", "tool_use"]);

export class GeminiSession implements WireSession {
  readonly #stored = new StoredContents();

  read(received: Received, rules: ModelRules): ReadRequest | Refused {
    const { body, ordered } = received.parsed;
    const { model, stream } = received;
    const complaint = checkShape(body, "request");
    if (complaint !== undefined) return refused(complaint);
    const named = this.#named(body, received);
    if (named !== undefined && !named.ok) return named;
    const stored = named?.content;
    const wrong = checkRequest(body, rules, stored?.body);
    if (wrong !== undefined) return refused(wrong);
    const prompt = promptOf(ordered, {
      model,
      rules: rules.cache,
      ...(stored === undefined ? {} : { stored: stored.body }),
    });
    const config = objectOf(field(body, "generationConfig"));
    return {
      ok: true,
      prompt,
      body: neutralBody({
        model,
        stream,
        maxTokens: field(config, "maxOutputTokens"),
        tools: prompt.tools.map(neutralTool),
        system: prompt.system,
        messages: prompt.messages,
      }),
      prewarm: false,
      caching: { markers: 0, ...(stored === undefined ? {} : { storedTokens: stored.tokens }) },
      ids: { message: "gemini", call: "call" },
      sign: () => "",
      encodableBlocks,
      encoder: answerEncoder({
        includeThoughts: field(objectOf(field(config, "thinkingConfig")), "includeThoughts") === true,
        signs: rules.accepts.callSignatures,
        model,
      }),
      blocksOf: (message) => message.content.map((block): ReadBlock => ({ block, path: "" })),
      diagnose: () => null,
      onBegin: () => undefined,
    };
  }

  /** A count may contain a whole request. */
  readPrompt(received: Received, rules: ModelRules): { readonly ok: true; readonly prompt: ReadPrompt } | Refused {
    const { body } = received.parsed;
    const complaint = checkShape(body, "count");
    if (complaint !== undefined) return refused(complaint);
    const request = field(body, "generateContentRequest");
    const prompt = promptOf(request === undefined ? body : objectOf(request), { ...received, rules: rules.cache });
    return { ok: true, prompt };
  }

  store(call: StoredPromptCall, received: Received, terms: StoreTerms): StoreReply | Refused {
    const asking = { workspace: received.workspace, now: received.startedAt };
    if (call.action === "create") return this.#create(received, terms);
    if (call.action === "list")
      return { ok: true, body: { cachedContents: this.#stored.all(asking).map((stored) => storedBody(stored)) } };
    const stored = this.#stored.find(call.name, asking);
    if ("status" in stored) return refused(stored);
    switch (call.action) {
      case "get":
        return { ok: true, body: storedBody(stored) };
      case "delete":
        this.#stored.delete(call.name);
        stored.expiresAt = asking.now;
        return { ok: true, body: {}, stored: storageOf(stored) };
      case "update":
        return update(stored, received.parsed.body, asking);
    }
  }

  #create(received: Received, { rules, count }: StoreTerms): StoreReply | Refused {
    const { parsed, model, workspace, startedAt, sequence } = received;
    const { body, ordered } = parsed;
    const complaint = checkShape(body, "stored") ?? checkTurns(storedFields(ordered).contents, rules);
    if (complaint !== undefined) return refused(complaint);
    const expiresAt = expiryOf(body, startedAt);
    if (typeof expiresAt !== "number") return refused(expiresAt);
    const tokens = count(promptOf(ordered, { model, rules: rules.cache }));
    const least = rules.cache.minimumPrefix;
    if (tokens < least)
      return refused(
        invalid(`Cached content is too small. total_token_count=${tokens}, min_total_token_count=${least}`),
      );
    const content: StoredContent = {
      name: `cachedContents/${stableId("held", sequence, model).replaceAll("_", "-")}`,
      model,
      displayName: stringOf(field(body, "displayName")),
      workspace,
      body: storedFields(ordered),
      tokens,
      createdAt: startedAt,
      updatedAt: startedAt,
      expiresAt,
    };
    this.#stored.keep(content);
    return { ok: true, body: storedBody(content), stored: storageOf(content) };
  }

  /** The stored prompt that the request names, if any. */
  #named(body: JsonObject, { workspace, startedAt, model }: Received): Named | Refused | undefined {
    const name = stringOf(field(body, "cachedContent"));
    if (name === "") return undefined;
    const content = this.#stored.find(name, { workspace, now: startedAt });
    if ("status" in content) return refused(content);
    return content.model === model
      ? { ok: true, content }
      : refused(
          invalid(
            `Model used by GenerateContent request (models/${model}) and CachedContent (models/${content.model}) has to be the same.`,
          ),
        );
  }
}

type Named = { readonly ok: true; readonly content: StoredContent };

const storedFields = (body: JsonObject) => ({
  contents: Array.isArray(body.contents) ? body.contents : [],
  tools: body.tools ?? [],
  systemInstruction: field(body, "systemInstruction") ?? {},
  toolConfig: field(body, "toolConfig") ?? null,
});

const update = (content: StoredContent, body: JsonObject, { now }: Asking): StoreReply | Refused => {
  const complaint = checkShape(body, "change");
  const expiresAt = expiryOf(body, now);
  if (complaint !== undefined) return refused(complaint);
  if (typeof expiresAt !== "number") return refused(expiresAt);
  content.expiresAt = expiresAt;
  content.updatedAt = now;
  return { ok: true, body: storedBody(content), stored: storageOf(content) };
};

const storageOf = ({ name, tokens, createdAt, expiresAt }: StoredContent): StoreReply["stored"] & object => ({
  name,
  tokens,
  from: createdAt,
  until: expiresAt,
});
