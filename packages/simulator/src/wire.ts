/** What must a wire format provide, so that one engine can speak it?
 *  Invariant: only reading a request and encoding an answer differ between formats; caching, bills, faults and scripts
 *  are the same for all.
 *  Elsewhere: the formats (wires/), what happens to a request (engine.ts), sending (serve-answer.ts). */

import type { Json, JsonObject } from "@prefork/wire";
import type { SimMessage } from "./answer.ts";
import type { ParsedBody, ReadBlock } from "./body.ts";
import type { CachingSettings } from "./cache/index.ts";
import type { Refusal } from "./errors.ts";
import type { Fingerprint, ReadPrompt, Rendered } from "./prompt/index.ts";
import type { ModelRules, WireName } from "./rules/index.ts";

/** What a path asks for. Model and stream are in the body, unless the path has them. */
export type Call =
  | { readonly kind: "answer"; readonly model?: string; readonly stream?: boolean }
  | { readonly kind: "count"; readonly model?: string }
  | { readonly kind: "stored-prompt"; readonly action: StoredPromptAction; readonly name: string };

/** What can be done with a prompt that is stored by name. */
export type StoredPromptAction = "create" | "get" | "update" | "delete" | "list";

export type Received = {
  readonly parsed: ParsedBody;
  /** Lower-case names, without credentials. */
  readonly headers: Readonly<Record<string, string>>;
  readonly model: string;
  readonly stream: boolean;
  readonly workspace: string;
  readonly sequence: number;
  readonly requestId: string;
  readonly startedAt: number;
};

/** One server-sent event, and what it means for the answer once it has been written. */
export type SimEvent = {
  /** Events before the content are sent at once, and make entries readable. */
  readonly phase: "start" | "content" | "closing";
  readonly event?: string;
  readonly data: JsonObject | string;
  /** Where faults can break in: just before content begins, just before it ends, inside growing content. */
  readonly anchor?: "content-start" | "content-end";
  readonly grows?: true;
  /** Index of the block that is completely generated once this is sent. */
  readonly generated?: number;
};

/** How an answer is encoded. It must not keep the request in memory, which may be large. */
export type AnswerEncoder = {
  readonly events: (message: SimMessage) => Generator<SimEvent>;
  readonly whole: (message: SimMessage) => JsonObject;
  /** The last event of a stream that fails. */
  readonly failure: (refusal: Refusal) => SimEvent;
};

export type Ids = { readonly message: string; readonly call: string };

/** What is known about an answer when it begins. */
export type StartedAnswer = {
  readonly messageId: string;
  readonly message: SimMessage;
  readonly partition: string;
  readonly fingerprint: Fingerprint;
  readonly lastHash: string;
  /** Tokens that an equal prefix could read after the request. */
  readonly cached: number;
};

/** What is known about a request once it has looked into the cache. */
export type LookedUpRequest = { readonly rendered: Rendered; readonly partition: string; readonly read: number };

/** A request that the provider accepts. */
export type ReadRequest = {
  readonly ok: true;
  readonly prompt: ReadPrompt;
  /** The request in the form of the Messages API, which scripts read. */
  readonly body: JsonObject;
  /** Fills the cache without an answer. */
  readonly prewarm: boolean;
  readonly caching: CachingSettings;
  /** Uses the prices of another service class. */
  readonly fast?: boolean;
  /** It runs only in the US, which costs a tenth more. */
  readonly usOnly?: boolean;
  /** The beginnings of this format's ids. */
  readonly ids: Ids;
  readonly sign: (thinking: string) => string;
  /** Kinds of answer blocks that this format can encode. */
  readonly encodableBlocks: ReadonlySet<string>;
  readonly encoder: AnswerEncoder;
  /** An answer's blocks, as the client would send them back. */
  readonly blocksOf: (message: SimMessage) => readonly ReadBlock[];
  /** The provider's own explanation of a cache miss, if it was asked for one. */
  readonly diagnose: (looked: LookedUpRequest) => Json;
  readonly onBegin: (started: StartedAnswer) => void;
};

export type Refused = Refusal & { readonly ok: false };

export const refused = (refusal: Refusal): Refused => ({ ok: false, ...refusal });

/** A call that concerns a stored prompt. */
export type StoredPromptCall = Extract<Call, { readonly kind: "stored-prompt" }>;

export type StoreTerms = { readonly rules: ModelRules; readonly count: (prompt: ReadPrompt) => number };

export type StoreReply = {
  readonly ok: true;
  readonly body: JsonObject;
  /** From when, until when and how much is stored, if this call has changed it. */
  readonly stored?: { readonly name: string; readonly tokens: number; readonly from: number; readonly until: number };
};

/** What a format remembers between requests. */
export interface WireSession {
  read(received: Received, rules: ModelRules): ReadRequest | Refused;
  /** The prompt alone, to be counted. */
  readPrompt(received: Received, rules: ModelRules): { readonly ok: true; readonly prompt: ReadPrompt } | Refused;
  /** Only if prompts can be stored by name. */
  store?(call: StoredPromptCall, received: Received, terms: StoreTerms): StoreReply | Refused;
}

export type Wire = {
  readonly name: WireName;
  /** Undefined for a path of another format. */
  readonly callOf: (method: string, url: URL) => Call | Refused | undefined;
  readonly open: () => WireSession;
  readonly errorBody: (refusal: Refusal, requestId: string) => JsonObject;
  /** The header with the request id. */
  readonly idHeader: string;
  /** Refusals of requests that cannot even be parsed. */
  readonly refusals: {
    readonly noKey: Refusal;
    readonly noJson: (reason: string) => Refusal;
    readonly noObject: Refusal;
  };
  /** The answer to a token count. */
  readonly counted: (tokens: number) => JsonObject;
};
