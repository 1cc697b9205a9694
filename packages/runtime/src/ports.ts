/** What the runtime needs from outside and from its own far side, as small interfaces that one place fills.
 *  Invariant: types and constants only; of the rooms only the guard's words are used. The agent's tools start forks, a fork runs the loop,
 *  the loop runs tools: that circle is cut here, and only session.ts closes it.
 *  Elsewhere: filling them (session.ts), what is asked (guard/). */

import type { Touches } from "@prefork/guard";
import type { DocumentBlock, ImageBlock, Json, JsonObject, TextBlock, Usage } from "@prefork/wire";
import type { CallFault, EventBody, ExchangeEnd, RuntimeEvent } from "./events.ts";

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

// --- extensions --------------------------------------------------------------------------------------------------------

/** A call as an extension sees it. */
export type HookedCall = {
  readonly callId: string;
  /** `main`, or the id of a task. */
  readonly agent: string;
  readonly tool: string;
  readonly args: JsonObject;
  readonly touches?: Touches;
};

/** What an extension says of a call before it runs. It can tighten and never loosen. */
export type CallVerdict =
  | { readonly kind: "deny"; readonly reason: string }
  | { readonly kind: "ask"; readonly reason: string }
  /** Runs with these arguments instead. They are checked and judged like any others; the model's own words stay, and the
   *  result says what ran. */
  | { readonly kind: "change"; readonly args: JsonObject };

/** Text for the model, at the tail. */
export type HookNote = { readonly note: string };

export type Hooked<T> = T | undefined | Promise<T | undefined>;

type Happened<T extends EventBody["type"]> = Extract<EventBody, { readonly type: T }>;

/** What an extension may do while a session runs. A hook has a time limit. One that throws, hangs or gives something odd is
 *  reported by an event, and the agent goes on; only `beforeCall` then denies its call. */
export type Hooks = {
  /** Before a call that the guard does not deny. */
  readonly beforeCall?: (call: HookedCall, signal: AbortSignal) => Hooked<CallVerdict>;
  /** After a call that ran. A note becomes part of its result. */
  readonly afterCall?: (
    call: HookedCall & { readonly text: string; readonly fault?: CallFault; readonly ms: number },
    signal: AbortSignal,
  ) => Hooked<HookNote>;
  /** A prompt of the user. A note stands before it. */
  readonly promptEntered?: (prompt: { readonly text: string }, signal: AbortSignal) => Hooked<HookNote>;
  readonly beforeCompaction?: (
    compaction: { readonly agent: string; readonly why: "threshold" | "context-full" | "asked" },
    signal: AbortSignal,
  ) => Hooked<unknown>;
  readonly sessionOpened?: (opened: Happened<"session_opened">, signal: AbortSignal) => Hooked<unknown>;
  readonly exchangeEnded?: (ended: Happened<"exchange_ended">, signal: AbortSignal) => Hooked<unknown>;
  readonly forkStarted?: (started: Happened<"fork_started">, signal: AbortSignal) => Hooked<unknown>;
  readonly taskEnded?: (ended: Happened<"task_ended">, signal: AbortSignal) => Hooked<unknown>;
  /** The session waits for this one, within the time limit. */
  readonly sessionClosed?: (closed: { readonly session: string }, signal: AbortSignal) => Hooked<unknown>;
};

// --- whoever is attached to a session ------------------------------------------------------------------------------------

/** Events as they happen. `keptFrom`: the oldest seq that could still be had when it began; older ones are in the journal. */
export type Subscription = AsyncIterableIterator<RuntimeEvent> & Disposable & { readonly keptFrom: number };

export type PromptEnd = {
  readonly end: ExchangeEnd;
  readonly reason: string;
  /** The last answer's text. */
  readonly text: string;
  readonly turns: number;
  readonly usage: Usage;
  readonly usd: number;
};

/** How a terminal, another process, an editor or a page takes part in a session. Any number may be attached. */
export type SessionControl = {
  readonly session: string;
  /** From this seq on, as far as events are kept, then live. Default: live only. Kept are the latest 5,000 since the first
   *  control of the session was asked for, without those of level debug, and at most 16 million characters of text. */
  readonly subscribe: (fromSeq?: number) => Subscription;
  /** One at a time: while an exchange runs it is refused, whoever began that. */
  readonly prompt: (
    prompt: string | readonly (TextBlock | ImageBlock | DocumentBlock)[],
    options?: { readonly signal?: AbortSignal; readonly tasks?: "wait" | "leave" },
  ) => Promise<PromptEnd>;
  /** Questions that nobody has answered yet. */
  readonly questions: () => readonly Question[];
  /** The first answer to a question counts. False: it does not wait any more, and nothing has happened. */
  readonly answer: (questionId: string, answer: Answer) => boolean;
  /** Words for the main agent while it works, or for a task: read at the next boundary. A task that has ended is woken. */
  readonly steer: (text: string, taskId?: string) => Promise<void>;
  /** Ends a task, or without an id the exchange that runs; resolves when that has ended. */
  readonly stop: (taskId?: string) => Promise<void>;
  /** Whoever waits for this task, or for any, goes on; the task does too. */
  readonly background: (taskId?: string) => void;
};
