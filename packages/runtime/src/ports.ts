/** What the runtime needs from outside and from its own far side, as small interfaces that one place fills.
 *  Invariant: types and constants only; of the rooms only the guard's words are used. The agent's tools start forks, a fork runs the loop,
 *  the loop runs tools: that circle is cut here, and only session.ts closes it.
 *  Elsewhere: filling them (session.ts), what is asked (guard/). */

import type { ImageBlock, Json, JsonObject, TextBlock, Usage } from "@prefork/wire";
import type { Touches } from "./guard/index.ts";

/** The time, from one place, so that a test can hold it still. */
export type Clock = {
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Resolves after this time, or on `signal`. Default: the real one. */
  readonly sleep?: (ms: number, signal: AbortSignal) => Promise<void>;
};

/** New names: unique, and without meaning. */
export type Ids = { readonly next: (kind: "session" | "task" | "shell" | "question" | "notice" | "run") => string };

export type Question = {
  readonly id: string;
  /** Who asks: `main`, or the id of a task. Never a name that a model chose. */
  readonly agent: string;
  /** What that task is for, as its parent put it. */
  readonly scope?: string;
  readonly tool: string;
  readonly args: JsonObject;
  /** As the tool declares it; absent where it does not: then it may touch anything. */
  readonly touches?: Touches;
  readonly reason: string;
  /** What would allow this and little more, for good. */
  readonly rule?: string;
  /** What a person should know before saying yes. */
  readonly notes: readonly string[];
};

/** `all`: the same for every other question that waits at this moment, whoever asks it. */
export type Answer =
  /** This once. `reason`: why, where no person said so. */
  | { readonly kind: "allow"; readonly reason?: string; readonly all?: boolean }
  /** Allowed now and from here on by this rule; for all: only what the rule covers. */
  | { readonly kind: "always"; readonly rule: string; readonly all?: boolean }
  /** `stop`: whoever asked this is to end, and nobody else. */
  | { readonly kind: "deny"; readonly reason?: string; readonly stop?: boolean; readonly all?: boolean };

/** Puts a question to whoever answers for the session. */
export type Ask = (question: Question, signal: AbortSignal) => Promise<Answer>;

/** Starts work beside the main line: filled by the rooms of tasks and forks. */
export type Spawn = {
  /** One answer on top of all that was said so far, without tools; the main line does not see it. */
  readonly aside: (directive: string, options: AsideOptions) => Promise<Aside>;
};

export type AsideOptions = { readonly label: string; readonly maxTokens: number; readonly signal: AbortSignal };
export type Aside = { readonly text: string; readonly usage: Usage };

/** Tools whose far side is a room that comes later in the data flow. Absent: the tool says that it is not available. */
export type Delegation = {
  readonly agent?: DelegatedCall;
  readonly taskOutput?: DelegatedCall;
  readonly taskStop?: DelegatedCall;
  readonly sendMessage?: DelegatedCall;
  readonly mcpCall?: DelegatedCall;
  readonly skill?: DelegatedCall;
};

export type DelegatedCall = (
  args: JsonObject,
  caller: { readonly callId: string; readonly agent: string; readonly signal: AbortSignal },
) => Promise<Delegated>;

export type Delegated = {
  readonly text: string;
  /** In place of the text, where there is more than text. */
  readonly content?: readonly (TextBlock | ImageBlock)[];
  readonly isError?: boolean;
  readonly facts?: Json;
};
