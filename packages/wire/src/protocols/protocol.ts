/** What every wire format must provide. One file per format, with the same order of sections in each.
 *  Invariant: all of it is pure; `step` sees one frame and the state before it, nothing else.
 *  Elsewhere: sending and waiting (../send). */

import type { ModelError } from "../errors.ts";
import type { SegmentEncoder } from "../prefix/index.ts";
import type { Block, Closing, JsonObject, KeySettings, RawJson, Ttl } from "../request.ts";
import type { CacheDiagnosis, Frame, ModelEvent, StopReason, Usage } from "../response.ts";

/** A block that is still arriving: what has arrived of it, verbatim. */
export type BlockDraft = {
  readonly start: Block;
  readonly text: string;
  readonly json: string;
  readonly signature: string;
  readonly citations: readonly RawJson[];
  /** Index of the part that grew last, or of the call: some providers number what is inside a block. */
  readonly part?: number;
  /** The reasoning that the provider wants back, piece by piece. */
  readonly details?: readonly JsonObject[];
};

/** What a parser knows between two frames. */
export type ParserState = {
  readonly drafts: ReadonlyMap<number, BlockDraft>;
  readonly usage: Usage;
  readonly stop: StopReason | undefined;
  readonly stopDetail: string | undefined;
  readonly diagnosis: CacheDiagnosis | undefined;
  readonly stopped: boolean;
  /** The start of the answer was reported; only if no frame of its own says so. */
  readonly begun?: boolean;
  /** How many blocks have started; only if frames do not number them. */
  readonly blocks?: number;
  /** A tool was called; only if the stop reason does not say so. */
  readonly called?: boolean;
  /** Usage reported so far; only if several frames report it. */
  readonly reported?: JsonObject;
  /** The provider gave its stop reason: no content follows, at most the usage. */
  readonly hasReason?: boolean;
  /** What has arrived may be a complete answer; only if the stop reason comes with the last event. */
  readonly canEnd?: boolean;
};

/** `closed`: the server ended it properly. `broken`: the connection was lost, stalled, or sent nonsense. */
export type StreamEnd = "closed" | "broken";

export type Step = readonly [ParserState, readonly ModelEvent[]];

export type FailedResponse = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body: string;
};

export type Credential =
  | { readonly kind: "api-key"; readonly value: string }
  | { readonly kind: "bearer"; readonly value: string };

/** The earliest moment at which another request can read what this one writes. */
export type ReadableMoment = "at-once" | "first-event" | "complete";

/** Limits of a provider beyond the order of sending. */
export type Pacing = {
  /** How long an entry is still being built after its readable moment. Default: not at all. */
  readonly settleMs?: number;
  /** More requests per minute with one prefix go to machines that do not have it. Default: no limit. */
  readonly perMinute?: number;
};

export type Protocol = {
  /** A journal finds the encoder again by this name, so a different encoding needs a different name. */
  readonly name: string;
  readonly readable: ReadableMoment;
  readonly pacing?: Pacing;
  /** Does it accept a request for no answer at all (`maxTokens: 0`), which only fills or renews the cache? */
  readonly emptyAnswers: boolean;
  /** Can a sibling read what the family shares beyond its parent, once another member has sent it? Default: yes. */
  readonly sharesTails?: boolean;
  /** Why cache reads may not be reported, if so: then a report of zero says nothing. */
  readonly unreportedReads?: string;
  /** Does it send `cacheKey`, which brings the requests of one conversation to the same machine? */
  readonly routes: boolean;
  /** The path of requests; a function if it names the model or how the answer should arrive. */
  readonly path: string | ((model: string, stream: boolean) => string);
  readonly encoder: SegmentEncoder;
  /** Everything after the last message, including the settings that this format encodes there. */
  readonly closing: (closing: Closing, model: string, settings: KeySettings) => string;
  readonly marker: (ttl: Ttl, model: string) => string;
  readonly headers: (credential: Credential | undefined, betas: readonly string[]) => Readonly<Record<string, string>>;
  readonly initial: ParserState;
  readonly step: (state: ParserState, frame: Frame) => Step;
  /** The stream ended without its last event. Undefined: what has arrived is not a complete answer. Blocks that are
   *  still open are closed as they are; an open call gets an input that is not a JSON object, so that it cannot run. */
  readonly end: (state: ParserState, how: StreamEnd) => Step | undefined;
  /** A response that is not streamed, as the events a stream would have given. */
  readonly whole: (body: string) => readonly ModelEvent[];
  readonly failure: (response: FailedResponse) => ModelError;
  /** Tokens as the provider reports them in one report; `before` is what it reported earlier for the same answer. */
  readonly usage: (reported: JsonObject, before?: Usage) => Usage;
};
