/** What a model answers: what it used, the events that arrive, and the whole answer, the same for every protocol.
 *  Invariant: a block is complete in `block_stopped`, with the provider's own text kept verbatim; the parts of a usage never
 *  overlap: plain + read + all writes = the prompt's tokens, whatever the provider's own fields mean.
 *  Elsewhere: reading a provider's frames and figures (protocols/), where frames come from (send/), money (cost/). */

import type { Block, Message, Ttl } from "./request.ts";

// --- usage -----------------------------------------------------------------------------------------------------------

export type Usage = {
  /** Prompt tokens neither read from nor written to a cache. */
  readonly plain: number;
  readonly read: number;
  /** Tokens written to the cache, by the lifetime that was paid for. */
  readonly written: Readonly<Partial<Record<Ttl, number>>>;
  /** Everything the model produced, thinking included. */
  readonly output: number;
  /** The part of `output` that was thinking, if the provider reports it. */
  readonly thinking?: number;
  /** How many of these tokens were not reported as numbers, and are estimated from what was sent and received. */
  readonly estimated?: number;
};

export const noUsage: Usage = { plain: 0, read: 0, written: {}, output: 0 };

export const writtenTokens = (usage: Usage): number =>
  Object.values(usage.written).reduce((sum, tokens) => sum + tokens, 0);

export const promptTokens = (usage: Usage): number => usage.plain + usage.read + writtenTokens(usage);

/** What remains of `a` without `b`, which is part of it. */
export const subtractUsage = (a: Usage, b: Usage): Usage => {
  const less = (had: number, taken: number): number => Math.max(0, had - taken);
  const ttls = Object.entries(a.written) as [Ttl, number][];
  return {
    plain: less(a.plain, b.plain),
    read: less(a.read, b.read),
    written: Object.fromEntries(ttls.map(([ttl, tokens]) => [ttl, less(tokens, b.written[ttl] ?? 0)])),
    output: less(a.output, b.output),
    ...(a.thinking === undefined ? {} : { thinking: less(a.thinking, b.thinking ?? 0) }),
    ...estimatedPart(less(a.estimated ?? 0, b.estimated ?? 0)),
  };
};

export const addUsage = (a: Usage, b: Usage): Usage => {
  const written: Partial<Record<Ttl, number>> = { ...a.written };
  for (const [ttl, tokens] of Object.entries(b.written) as [Ttl, number][]) written[ttl] = (written[ttl] ?? 0) + tokens;
  const thinking = (a.thinking ?? 0) + (b.thinking ?? 0);
  return {
    plain: a.plain + b.plain,
    read: a.read + b.read,
    written,
    output: a.output + b.output,
    ...(a.thinking === undefined && b.thinking === undefined ? {} : { thinking }),
    ...estimatedPart((a.estimated ?? 0) + (b.estimated ?? 0)),
  };
};

/** Absent if everything was reported. */
export const estimatedPart = (tokens: number): Pick<Usage, "estimated"> => (tokens > 0 ? { estimated: tokens } : {});

/** Rounded up: JSON has about 3.5 bytes per token, prose more. */
export const BYTES_PER_TOKEN = 3;

/** `usage` with estimates for figures that cannot be zero: every prompt has tokens, and so has content. `content`: how
 *  many bytes of it arrived. */
export const completeUsage = (
  usage: Usage,
  { prompt, content }: { readonly prompt: number; readonly content: number },
): Usage => {
  const plain = promptTokens(usage) === 0 ? prompt : 0;
  const output = usage.output === 0 ? Math.ceil(content / BYTES_PER_TOKEN) : 0;
  if (plain + output === 0) return usage;
  const estimated = (usage.estimated ?? 0) + plain + output;
  return { ...usage, plain: usage.plain + plain, output: usage.output + output, estimated };
};

// --- events ----------------------------------------------------------------------------------------------------------

export type StopReason =
  | "end"
  | "tool-use"
  | "max-tokens"
  | "stop-sequence"
  | "pause"
  | "refusal"
  | "context-full"
  | "other";

/** The provider's own explanation of what the cache could not reuse. */
export type CacheDiagnosis =
  | { readonly status: "pending" }
  | { readonly status: "missed"; readonly cause: string; readonly missedTokens?: number };

export type ModelEvent =
  | {
      readonly type: "response_started";
      readonly id: string;
      readonly model: string;
      readonly usage: Usage;
      readonly diagnosis?: CacheDiagnosis;
    }
  | { readonly type: "block_started"; readonly index: number; readonly kind: Block["type"]; readonly name?: string }
  | { readonly type: "text_grew"; readonly index: number; readonly text: string }
  | { readonly type: "thinking_grew"; readonly index: number; readonly text: string }
  | { readonly type: "input_grew"; readonly index: number; readonly json: string }
  | { readonly type: "block_stopped"; readonly index: number; readonly block: Block }
  | {
      readonly type: "response_stopped";
      readonly stop: StopReason;
      /** The provider's own word for it, and the stop sequence or refusal text if there is one. */
      readonly stopDetail?: string;
      readonly usage: Usage;
      /** Only if the provider reports it at the end. */
      readonly diagnosis?: CacheDiagnosis;
    };

export type ModelResponse = {
  readonly id: string;
  readonly model: string;
  readonly message: Message;
  readonly stop: StopReason;
  readonly stopDetail?: string;
  readonly usage: Usage;
  readonly diagnosis?: CacheDiagnosis;
};

/** One server-sent event. */
export type Frame = { readonly event: string; readonly data: string };

/** The response so far. `complete` is false until the provider has said so; no tool may run before. */
export type FoldedResponse = {
  readonly response: ModelResponse;
  readonly complete: boolean;
  /** The provider's index of each block in `message.content`, because blocks may stop in a different order. */
  readonly indexes: readonly number[];
};

export const emptyFold: FoldedResponse = {
  response: { id: "", model: "", message: { role: "assistant", content: [] }, stop: "other", usage: noUsage },
  complete: false,
  indexes: [],
};

export const foldEvent = (folded: FoldedResponse, event: ModelEvent): FoldedResponse => {
  const { response, indexes: places } = folded;
  switch (event.type) {
    case "response_started": {
      const { id, model, usage, diagnosis } = event;
      return { ...folded, response: { ...response, id, model, usage, ...(diagnosis ? { diagnosis } : {}) } };
    }
    case "block_stopped": {
      const at = places.filter((place) => place < event.index).length;
      const content = response.message.content.toSpliced(at, 0, event.block);
      const message = { role: "assistant" as const, content };
      return { ...folded, response: { ...response, message }, indexes: places.toSpliced(at, 0, event.index) };
    }
    case "response_stopped": {
      const { stop, stopDetail, usage, diagnosis } = event;
      const details = { ...(stopDetail ? { stopDetail } : {}), ...(diagnosis ? { diagnosis } : {}) };
      const stopped = { ...response, stop, usage, ...details };
      return { ...folded, response: stopped, complete: true };
    }
    case "block_started":
    case "text_grew":
    case "thinking_grew":
    case "input_grew":
      return folded;
  }
};

export const fold = (events: Iterable<ModelEvent>): FoldedResponse => {
  let folded = emptyFold;
  for (const event of events) folded = foldEvent(folded, event);
  return folded;
};
