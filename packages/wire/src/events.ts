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
export type Folded = { readonly response: ModelResponse; readonly complete: boolean };

export const nothingFolded: Folded = {
  response: { id: "", model: "", message: { role: "assistant", content: [] }, stop: "other", usage: noUsage },
  complete: false,
};

export const foldEvent = ({ response, complete }: Folded, event: ModelEvent): Folded => {
  switch (event.type) {
    case "response_started": {
      const { id, model, usage, diagnosis } = event;
      return { response: { ...response, id, model, usage, ...(diagnosis ? { diagnosis } : {}) }, complete };
    }
    case "block_stopped": {
      const content = [...response.message.content, event.block];
      return { response: { ...response, message: { role: "assistant", content } }, complete };
    }
    case "response_stopped": {
      const { stop, stopDetail, usage } = event;
      return { response: { ...response, stop, usage, ...(stopDetail ? { stopDetail } : {}) }, complete: true };
    }
    case "block_started":
    case "text_grew":
    case "thinking_grew":
    case "input_grew":
      return { response, complete };
  }
};

export const fold = (events: Iterable<ModelEvent>): Folded => {
  let folded = nothingFolded;
  for (const event of events) folded = foldEvent(folded, event);
  return folded;
};
