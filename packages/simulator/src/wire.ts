/** What must a wire be able to do, so that one engine can speak it?
 *  Invariant: reading a request and spelling an answer is all that differs between wires; caching, bills, faults and
 *  scripts are the same behind each.
 *  Elsewhere: the wires (wires/), what happens to a request (engine.ts), sending (serve-answer.ts). */

import type { Json, JsonObject } from "@prefork/wire";
import type { SimMessage } from "./answer.ts";
import type { ParsedBody, ReadBlock } from "./body.ts";
import type { CachingAsked } from "./cache/index.ts";
import type { Refusal } from "./errors.ts";
import type { Fingerprint, ReadPrompt, Rendered } from "./prompt/index.ts";
import type { ModelRules, WireName } from "./rules/index.ts";

/** What a path asks for. Model and stream stand in the body, except where the path says them. */
export type Call =
  | { readonly kind: "answer"; readonly model?: string; readonly stream?: boolean }
  | { readonly kind: "count"; readonly model?: string }
  | { readonly kind: "held"; readonly action: HeldAction; readonly name: string };

/** What can be done with a prompt that is held by name. */
export type HeldAction = "create" | "get" | "update" | "delete" | "list";

export type Received = {
  readonly parsed: ParsedBody;
  /** Lower-case names; credentials are left out. */
  readonly headers: Readonly<Record<string, string>>;
  readonly model: string;
  readonly stream: boolean;
  readonly workspace: string;
  readonly sequence: number;
  readonly requestId: string;
  readonly startedAt: number;
};

/** One server-sent event, and what happens to the answer when it has been written. */
export type SimEvent = {
  /** Events before the content begins are sent at once, and let entries be read. */
  readonly phase: "start" | "content" | "closing";
  readonly event?: string;
  readonly data: JsonObject | string;
  /** Where faults break in: just before content begins, just before it ends, inside what grows. */
  readonly anchor?: "content-start" | "content-end";
  readonly grows?: true;
  /** Numbers of the blocks that are generated once this is sent. */
  readonly generated?: number;
};

/** How an answer looks on a wire. It must not hold on to the request, which may be large. */
export type Spelling = {
  readonly events: (message: SimMessage) => Generator<SimEvent>;
  readonly whole: (message: SimMessage) => JsonObject;
  /** The last event of a stream that fails. */
  readonly failure: (refusal: Refusal) => SimEvent;
};

export type Ids = { readonly message: string; readonly call: string };

/** What an answer was made for, when it begins. */
export type Begun = {
  readonly messageId: string;
  readonly message: SimMessage;
  readonly partition: string;
  readonly fingerprint: Fingerprint;
  readonly lastHash: string;
  /** Tokens in cached reach after the request: what an equal prefix could read. */
  readonly cached: number;
};

/** What is known of a request once it has looked into the cache. */
export type Looked = { readonly rendered: Rendered; readonly partition: string; readonly read: number };

/** A request that the provider accepts. */
export type Reading = {
  readonly ok: true;
  readonly prompt: ReadPrompt;
  /** The request in the words of the Messages API: what scripts read. */
  readonly body: JsonObject;
  /** Fills the cache and answers nothing. */
  readonly prewarm: boolean;
  readonly caching: CachingAsked;
  /** Prices of another class of service. */
  readonly fast?: boolean;
  /** A region that costs a tenth more. */
  readonly inUs?: boolean;
  /** Beginnings of the ids of this wire. */
  readonly ids: Ids;
  readonly sign: (thinking: string) => string;
  /** Kinds of answer blocks that this wire can say. */
  readonly says: ReadonlySet<string>;
  readonly spelling: Spelling;
  /** An answer as it would come back. */
  readonly heard: (message: SimMessage) => readonly ReadBlock[];
  /** The provider's own account of a miss, where it was asked for one. */
  readonly diagnose: (looked: Looked) => Json;
  readonly begun: (begun: Begun) => void;
};

export type Refused = Refusal & { readonly ok: false };

export const refused = (refusal: Refusal): Refused => ({ ok: false, ...refusal });

/** A call to a prompt that is held by name. */
export type HeldCall = Extract<Call, { readonly kind: "held" }>;

export type HoldTerms = { readonly rules: ModelRules; readonly count: (prompt: ReadPrompt) => number };

export type Held = {
  readonly ok: true;
  readonly body: JsonObject;
  /** Since when, until when and how much is held, where this call has changed it. */
  readonly holding?: { readonly name: string; readonly tokens: number; readonly from: number; readonly until: number };
};

/** What a wire remembers between requests. */
export interface WireSession {
  read(received: Received, rules: ModelRules): Reading | Refused;
  /** The prompt alone, to be counted. */
  readPrompt(received: Received, rules: ModelRules): { readonly ok: true; readonly prompt: ReadPrompt } | Refused;
  /** Only where prompts can be held by name. */
  hold?(call: HeldCall, received: Received, terms: HoldTerms): Held | Refused;
}

export type Wire = {
  readonly name: WireName;
  /** Undefined for a path of another wire. */
  readonly callOf: (method: string, url: URL) => Call | Refused | undefined;
  readonly open: () => WireSession;
  readonly errorBody: (refusal: Refusal, requestId: string) => JsonObject;
  /** The header that names a request. */
  readonly idHeader: string;
  /** What it says to requests that it cannot begin to read. */
  readonly refusals: {
    readonly noKey: Refusal;
    readonly noJson: (reason: string) => Refusal;
    readonly noObject: Refusal;
  };
  /** What a count of tokens looks like. */
  readonly counted: (tokens: number) => JsonObject;
};
