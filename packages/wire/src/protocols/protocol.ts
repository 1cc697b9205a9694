/** What every wire format must answer. One file a format, the same section order in each.
 *  Invariant: all of it is pure; `step` sees one frame and the state before it, nothing else.
 *  Elsewhere: sending and waiting (../transport.ts, ../client.ts). */

import type { ModelError } from "../errors.ts";
import type { SegmentEncoder } from "../prefix/index.ts";
import type { Block, Closing, JsonObject, KeySettings, RawJson, Ttl } from "../request.ts";
import type { CacheDiagnosis, Frame, ModelEvent, StopReason, Usage } from "../response.ts";

/** A block that is still arriving: what has come of it, verbatim. */
export type BlockDraft = {
  readonly start: Block;
  readonly text: string;
  readonly json: string;
  readonly signature: string;
  readonly citations: readonly RawJson[];
  /** Number of the part that grew last, or of the call: some providers number what is inside a block. */
  readonly part?: number;
  /** What the provider wants back of its reasoning, piece by piece. */
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
  /** The answer's start was told; only where no frame of its own says it. */
  readonly begun?: boolean;
  /** How many blocks have begun; only where frames do not number them. */
  readonly blocks?: number;
  /** A tool was called; only where the reason to stop does not tell. */
  readonly called?: boolean;
  /** What was reported of usage so far; only where several frames report it. */
  readonly reported?: JsonObject;
  /** The provider gave its reason to stop: no content follows, at most the usage. */
  readonly hasReason?: boolean;
  /** What has arrived can be a whole answer; only where the reason to stop comes with the last event. */
  readonly canEnd?: boolean;
};

/** `closed`: the server ended it properly. `broken`: the connection was lost, fell silent, or sent nonsense. */
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

/** What a provider needs beside an order of who is sent first. */
export type Pacing = {
  /** How long after its readable moment an entry is still being built. Default: not at all. */
  readonly settleMs?: number;
  /** More requests of one prefix in a minute go to machines that do not know it. Default: any number. */
  readonly perMinute?: number;
};

export type Protocol = {
  /** By which a journal finds the encoder again: another spelling needs another name. */
  readonly name: string;
  readonly readable: ReadableMoment;
  readonly pacing?: Pacing;
  /** Does it take a request for no answer at all (`maxTokens: 0`), which only fills or holds the cache? */
  readonly emptyAnswers: boolean;
  /** Can a sibling read what the family shares beyond its parent, once another has sent it? Default: yes. */
  readonly sharesTails?: boolean;
  /** Why a read may go untold, where it may: then nothing is known from a report of none. */
  readonly untoldReads?: string;
  /** Does it send `cacheKey`, by which requests of one conversation come to the same machine? */
  readonly routes: boolean;
  /** Where requests go; a function where the address names the model or says how the answer shall come. */
  readonly path: string | ((model: string, stream: boolean) => string);
  readonly encoder: SegmentEncoder;
  /** Everything after the last message; of the settings those that this format spells there. */
  readonly closing: (closing: Closing, model: string, settings: KeySettings) => string;
  readonly marker: (ttl: Ttl, model: string) => string;
  readonly headers: (credential: Credential | undefined, betas: readonly string[]) => Readonly<Record<string, string>>;
  readonly initial: ParserState;
  readonly step: (state: ParserState, frame: Frame) => Step;
  /** The stream is over without its last event. Undefined: what has arrived is not a whole answer. Blocks that are still
   *  open are closed as far as they came, a call among them with an input that is not a JSON object: it must not run. */
  readonly end: (state: ParserState, how: StreamEnd) => Step | undefined;
  /** A response that came in one piece, as the events a stream would have given. */
  readonly whole: (body: string) => readonly ModelEvent[];
  readonly failure: (response: FailedResponse) => ModelError;
  /** Tokens as the provider reports them in one place; `before` is what it had reported of the same answer until then. */
  readonly usage: (reported: JsonObject, before?: Usage) => Usage;
};
