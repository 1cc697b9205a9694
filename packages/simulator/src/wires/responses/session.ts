/** How is a Responses request read, and what is remembered of it?
 *  Invariant: what is kept while answering does not refer to the body, unless the client lets the response be stored:
 *  then its items are kept. A chain of responses is stored link by link, without those that said `store: false`.
 *  Elsewhere: which bodies are refused (validate*.ts), the prompt (prompt.ts), the answer (encode-answer.ts). */

import type { JsonObject } from "@prefork/wire";
import { isObject, listOf, objectOf, stringOf } from "../../body.ts";
import { invalid, type Refusal } from "../../errors.ts";
import { neutralBody } from "../../neutral.ts";
import type { ReadPrompt } from "../../prompt/index.ts";
import type { ModelRules } from "../../rules/index.ts";
import {
  type ReadRequest,
  type Received,
  type Refused,
  refused,
  type StartedAnswer,
  type WireSession,
} from "../../wire.ts";
import { cachingOf, markersIn } from "../openai/index.ts";
import { Comparisons } from "./diagnose.ts";
import { answerEncoder } from "./encode-answer.ts";
import { itemsOf } from "./items.ts";
import { type PlacedItem, promptOf } from "./prompt.ts";
import { seal } from "./seal.ts";
import { checkRequest, typeOf } from "./validate.ts";
import { checkItems } from "./validate-items.ts";

const encodableBlocks = new Set(["text", "thinking", "redacted_thinking", "tool_use"]);

export class ResponsesSession implements WireSession {
  readonly #stored = new StoredResponses();
  readonly #comparisons = new Comparisons();
  readonly #madeWith = new Map<string, string>();

  read(received: Received, rules: ModelRules): ReadRequest | Refused {
    const read = this.#read(received, rules);
    if (!read.ok) return read;
    const { body } = received.parsed;
    const { prompt, items } = read;
    const { model, stream } = received;
    const options = objectOf(body.prompt_cache_options);
    const baseline = options.comparison_response_id;
    const showThinking = isObject(body.reasoning) && (body.reasoning.summary ?? null) !== null;
    const comparisons = this.#comparisons;
    return {
      ok: true,
      prompt,
      body: neutralBody({
        model,
        stream,
        maxTokens: body.max_output_tokens,
        tools: listOf(body.tools).map((tool) => neutralTool(objectOf(tool))),
        system: prompt.system,
        messages: prompt.messages,
      }),
      prewarm: options.prewarm === true,
      caching: cachingOf(body, rules.cache, markersIn(prompt)),
      ids: { message: "resp", call: "call" },
      sign: (thinking) => seal(thinking, model),
      encodableBlocks,
      encoder: answerEncoder({
        settings: echoOf(body, rules),
        showThinking,
        prewarm: options.prewarm === true,
        reports: rules.reports,
        byLifetime: rules.accepts.cacheOptions,
      }),
      blocksOf: () => [],
      diagnose: (looked) => comparisons.compare(baseline, looked),
      onBegin: this.#keeper(body, ownItems(items), showThinking),
    };
  }

  readPrompt(received: Received, rules: ModelRules): { readonly ok: true; readonly prompt: ReadPrompt } | Refused {
    return this.#read(received, rules);
  }

  #read({ parsed, model }: Received, rules: ModelRules): Read | Refused {
    const { body, ordered } = parsed;
    const complaint = checkRequest(body, rules);
    if (complaint !== undefined) return refused(complaint);
    const items = this.#resolve(ordered);
    if (!Array.isArray(items)) return refused(items as Refusal);
    const placed = items as readonly PlacedItem[];
    const terms = { model, madeWith: this.#madeWith };
    const misplaced = checkItems(
      placed.map(({ item }) => item),
      terms,
    );
    return misplaced === undefined
      ? { ok: true, prompt: promptOf(ordered, placed, rules), items: placed }
      : refused(misplaced);
  }

  /** The items of the whole conversation, including those of earlier responses and referenced ones. */
  #resolve(body: JsonObject): readonly PlacedItem[] | Refusal {
    const previous = stringOf(body.previous_response_id);
    const earlier = previous === "" ? [] : this.#stored.upTo(previous);
    if (earlier === undefined)
      return invalid(`Previous response with id '${previous}' not found.`, {
        param: "previous_response_id",
        code: "previous_response_not_found",
      });
    const own = inputItems(body).map((item) => {
      const stored = this.#stored.item(stringOf(item.id));
      if (typeOf(item) === "item_reference") return stored;
      // Stored reasoning can be sent back without its encrypted content.
      return typeOf(item) === "reasoning" && !stringOf(item.encrypted_content) ? (stored ?? item) : item;
    });
    const missing = own.indexOf(undefined);
    if (missing >= 0)
      return invalid(`Item with id '${stringOf(inputItems(body)[missing]?.id)}' not found.`, { param: "input" });
    return [
      ...earlier.map((item, index) => ({ item, path: `previous_response[${index}]` })),
      ...own.map((item, index) => ({ item: item ?? {}, path: `input[${index}]` })),
    ];
  }

  /** Remembers an answer when it begins; its items only if they are to be stored. */
  #keeper(body: JsonObject, items: readonly JsonObject[], showThinking: boolean): (started: StartedAnswer) => void {
    const [stored, comparisons, madeWith] = [this.#stored, this.#comparisons, this.#madeWith];
    const previous = typeof body.previous_response_id === "string" ? body.previous_response_id : undefined;
    const kept = body.store === false ? undefined : { previous, items };
    return (started) => {
      comparisons.remember(started);
      const made = itemsOf(started.message, showThinking);
      for (const [id, reasoning] of pairsOf(made)) madeWith.set(id, reasoning);
      if (kept !== undefined)
        stored.keep(started.messageId, { previous: kept.previous, items: [...kept.items, ...made] });
    };
  }
}

type Read = { readonly ok: true; readonly prompt: ReadPrompt; readonly items: readonly PlacedItem[] };

const inputItems = (body: JsonObject): readonly JsonObject[] =>
  typeof body.input === "string"
    ? [{ type: "message", role: "user", content: body.input }]
    : listOf(body.input).map(objectOf);

const ownItems = (items: readonly PlacedItem[]): readonly JsonObject[] =>
  items.filter(({ path }) => path.startsWith("input")).map(({ item }) => item);

/** Items with the reasoning just before them. */
const pairsOf = (items: readonly JsonObject[]): readonly (readonly [string, string])[] =>
  items.flatMap((item, index) => {
    const before = items[index - 1];
    return before?.type === "reasoning" && item.type !== "reasoning"
      ? [[stringOf(item.id), stringOf(before.id)] as const]
      : [];
  });

const neutralTool = ({ name, description, parameters, type }: JsonObject): JsonObject => ({
  name: stringOf(name) || stringOf(type),
  description: stringOf(description),
  input_schema: objectOf(parameters),
});

/** The settings that every response repeats, with the provider's defaults. */
const echoOf = (body: JsonObject, { accepts, cache }: ModelRules): JsonObject => {
  const options = objectOf(body.prompt_cache_options);
  return {
    instructions: body.instructions ?? null,
    max_output_tokens: body.max_output_tokens ?? null,
    max_tool_calls: body.max_tool_calls ?? null,
    metadata: body.metadata ?? {},
    parallel_tool_calls: body.parallel_tool_calls ?? true,
    previous_response_id: body.previous_response_id ?? null,
    prompt_cache_key: body.prompt_cache_key ?? null,
    ...(accepts.cacheOptions
      ? { prompt_cache_options: { mode: options.mode ?? "implicit", ttl: options.ttl ?? cache.defaultTtl } }
      : {}),
    reasoning: { effort: objectOf(body.reasoning).effort ?? null, summary: objectOf(body.reasoning).summary ?? null },
    safety_identifier: body.safety_identifier ?? null,
    service_tier: body.service_tier ?? "default",
    store: body.store ?? true,
    temperature: body.temperature ?? 1,
    text: { format: { type: "text" }, ...objectOf(body.text) },
    tool_choice: body.tool_choice ?? "auto",
    tools: body.tools ?? [],
    top_logprobs: body.top_logprobs ?? 0,
    top_p: body.top_p ?? 1,
    truncation: body.truncation ?? "disabled",
    user: body.user ?? null,
  };
};

// --- stored responses ------------------------------------------------------------------------------------------------

type Link = {
  readonly previous: string | undefined;
  readonly items: readonly JsonObject[];
};

export class StoredResponses {
  readonly #links = new Map<string, Link>();
  readonly #items = new Map<string, JsonObject>();

  keep(id: string, link: Link): void {
    this.#links.set(id, link);
    for (const item of link.items) if (item.id !== undefined) this.#items.set(stringOf(item.id), item);
  }

  item(id: string): JsonObject | undefined {
    return this.#items.get(id);
  }

  /** All items up to the end of that response; undefined if it is not stored. */
  upTo(id: string): readonly JsonObject[] | undefined {
    const chain: (readonly JsonObject[])[] = [];
    for (let at: string | undefined = id; at !== undefined; ) {
      const link: Link | undefined = this.#links.get(at);
      if (link === undefined) return undefined;
      chain.push(link.items);
      at = link.previous;
    }
    return chain.reverse().flat();
  }
}
