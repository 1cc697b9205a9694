/** What a model's answer says while it arrives, in one union for every protocol, and the answer as a whole.
 *  Invariant: a block is complete in `block_stopped`, with the provider's own text kept verbatim.
 *  Elsewhere: reading a provider's frames (protocols/), where frames come from (transport.ts). */

import type { Block, Message } from "./request.ts";
import { noUsage, type Usage } from "./usage.ts";

export type StopReason =
  | "end"
  | "tool-use"
  | "max-tokens"
  | "stop-sequence"
  | "pause"
  | "refusal"
  | "context-full"
  | "other";

/** The provider's own account of what the cache could not reuse. */
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
      /** The provider's word for it, and the stop sequence or refusal text where it gave one. */
      readonly stopDetail?: string;
      readonly usage: Usage;
      /** Where the provider tells it only at the end. */
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

/** The response so far. `complete` is false until the provider has said that it is: no tool may run before. */
export type Folded = {
  readonly response: ModelResponse;
  readonly complete: boolean;
  /** The provider's number of each block in `message.content`: blocks may stop in another order than they stand in. */
  readonly places: readonly number[];
};

export const nothingFolded: Folded = {
  response: { id: "", model: "", message: { role: "assistant", content: [] }, stop: "other", usage: noUsage },
  complete: false,
  places: [],
};

export const foldEvent = (folded: Folded, event: ModelEvent): Folded => {
  const { response, places } = folded;
  switch (event.type) {
    case "response_started": {
      const { id, model, usage, diagnosis } = event;
      return { ...folded, response: { ...response, id, model, usage, ...(diagnosis ? { diagnosis } : {}) } };
    }
    case "block_stopped": {
      const at = places.filter((place) => place < event.index).length;
      const content = response.message.content.toSpliced(at, 0, event.block);
      const message = { role: "assistant" as const, content };
      return { ...folded, response: { ...response, message }, places: places.toSpliced(at, 0, event.index) };
    }
    case "response_stopped": {
      const { stop, stopDetail, usage, diagnosis } = event;
      const told = { ...(stopDetail ? { stopDetail } : {}), ...(diagnosis ? { diagnosis } : {}) };
      const stopped = { ...response, stop, usage, ...told };
      return { ...folded, response: stopped, complete: true };
    }
    case "block_started":
    case "text_grew":
    case "thinking_grew":
    case "input_grew":
      return folded;
  }
};

export const fold = (events: Iterable<ModelEvent>): Folded => {
  let folded = nothingFolded;
  for (const event of events) folded = foldEvent(folded, event);
  return folded;
};
