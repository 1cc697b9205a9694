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
  type Held,
  type HeldCall,
  type HoldTerms,
  type ReadRequest,
  type Received,
  type Refused,
  refused,
  type WireSession,
} from "../../wire.ts";
import { field } from "./complaints.ts";
import { answerEncoder } from "./encode-answer.ts";
import { type Asking, expiryOf, type HeldContent, HeldContents, heldBody } from "./held.ts";
import { neutralTool, promptOf } from "./prompt.ts";
import { checkRequest, checkShape } from "./validate.ts";
import { checkTurns } from "./validate-turns.ts";

const says = new Set(["text", "thinking", "tool_use"]);

export class GeminiSession implements WireSession {
  readonly #held = new HeldContents();

  read(received: Received, rules: ModelRules): ReadRequest | Refused {
    const { body, ordered } = received.parsed;
    const { model, stream } = received;
    const complaint = checkShape(body, "request");
    if (complaint !== undefined) return refused(complaint);
    const named = this.#named(body, received);
    if (named !== undefined && !named.ok) return named;
    const held = named?.content;
    const wrong = checkRequest(body, rules, held?.body);
    if (wrong !== undefined) return refused(wrong);
    const prompt = promptOf(ordered, { model, rules: rules.cache, ...(held === undefined ? {} : { held: held.body }) });
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
      caching: { markers: 0, ...(held === undefined ? {} : { held: held.tokens }) },
      ids: { message: "gemini", call: "call" },
      sign: () => "",
      says,
      encoder: answerEncoder({
        includeThoughts: field(objectOf(field(config, "thinkingConfig")), "includeThoughts") === true,
        signs: rules.accepts.callSignatures,
        model,
      }),
      heard: (message) => message.content.map((block): ReadBlock => ({ block, path: "" })),
      diagnose: () => null,
      begun: () => undefined,
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

  hold(call: HeldCall, received: Received, terms: HoldTerms): Held | Refused {
    const asking = { workspace: received.workspace, now: received.startedAt };
    if (call.action === "create") return this.#create(received, terms);
    if (call.action === "list")
      return { ok: true, body: { cachedContents: this.#held.all(asking).map((held) => heldBody(held)) } };
    const held = this.#held.find(call.name, asking);
    if ("status" in held) return refused(held);
    switch (call.action) {
      case "get":
        return { ok: true, body: heldBody(held) };
      case "delete":
        this.#held.delete(call.name);
        held.expiresAt = asking.now;
        return { ok: true, body: {}, holding: holdingOf(held) };
      case "update":
        return update(held, received.parsed.body, asking);
    }
  }

  #create(received: Received, { rules, count }: HoldTerms): Held | Refused {
    const { parsed, model, workspace, startedAt, sequence } = received;
    const { body, ordered } = parsed;
    const complaint = checkShape(body, "held") ?? checkTurns(held(ordered).contents, rules);
    if (complaint !== undefined) return refused(complaint);
    const expiresAt = expiryOf(body, startedAt);
    if (typeof expiresAt !== "number") return refused(expiresAt);
    const tokens = count(promptOf(ordered, { model, rules: rules.cache }));
    const least = rules.cache.minimumPrefix;
    if (tokens < least)
      return refused(
        invalid(`Cached content is too small. total_token_count=${tokens}, min_total_token_count=${least}`),
      );
    const content: HeldContent = {
      name: `cachedContents/${stableId("held", sequence, model).replaceAll("_", "-")}`,
      model,
      displayName: stringOf(field(body, "displayName")),
      workspace,
      body: held(ordered),
      tokens,
      createdAt: startedAt,
      updatedAt: startedAt,
      expiresAt,
    };
    this.#held.keep(content);
    return { ok: true, body: heldBody(content), holding: holdingOf(content) };
  }

  /** The stored prompt that the request names, if any. */
  #named(body: JsonObject, { workspace, startedAt, model }: Received): Named | Refused | undefined {
    const name = stringOf(field(body, "cachedContent"));
    if (name === "") return undefined;
    const content = this.#held.find(name, { workspace, now: startedAt });
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

type Named = { readonly ok: true; readonly content: HeldContent };

const held = (body: JsonObject) => ({
  contents: Array.isArray(body.contents) ? body.contents : [],
  tools: body.tools ?? [],
  systemInstruction: field(body, "systemInstruction") ?? {},
  toolConfig: field(body, "toolConfig") ?? null,
});

const update = (content: HeldContent, body: JsonObject, { now }: Asking): Held | Refused => {
  const complaint = checkShape(body, "change");
  const expiresAt = expiryOf(body, now);
  if (complaint !== undefined) return refused(complaint);
  if (typeof expiresAt !== "number") return refused(expiresAt);
  content.expiresAt = expiresAt;
  content.updatedAt = now;
  return { ok: true, body: heldBody(content), holding: holdingOf(content) };
};

const holdingOf = ({ name, tokens, createdAt, expiresAt }: HeldContent): Held["holding"] & object => ({
  name,
  tokens,
  from: createdAt,
  until: expiresAt,
});
