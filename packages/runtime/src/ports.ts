/** What the runtime needs from outside and what its modules need from later ones, as small interfaces that one place
 *  fills.
 *  Types only. The agent's tools start forks, a fork runs the loop, and the loop runs tools: that circle is cut here,
 *  and only ../session closes it. What crosses `ChildHost` is plain data.
 *  Elsewhere: filling them (session/), the guard's words (@prefork/guard). */

import type { Touches } from "@prefork/guard";
import type {
  Addition,
  ChildProtocol,
  DocumentBlock,
  ImageBlock,
  Json,
  JsonObject,
  Message,
  TextBlock,
  Usage,
} from "@prefork/wire";
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

// --- money and tokens ----------------------------------------------------------------------------------------------------

export type SpendLimits = {
  readonly usd?: number;
  /** Prompt and output tokens of all requests. */
  readonly tokens?: number;
};

export type Spent = { readonly usage: Usage; readonly usd: number };

/** The worst case of one request. `usd` is 0 where the price is unknown. */
export type Reservation = { readonly usd: number; readonly tokens: number };

export type Shortage = { readonly limit: "usd" | "tokens"; readonly needed: number; readonly left: number };

/** What several agents spend from. */
export type Budget = {
  /** What may still be reserved. */
  readonly left: Reservation;
  /** What could be reserved if no request were in flight. */
  readonly unspent: Reservation;
  /** Is money limited? Then a model without a price cannot be used. */
  readonly countsMoney: boolean;
  readonly reserve: (amount: Reservation) => Shortage | undefined;
  /** The request has ended: what it really used takes the place of what was reserved. */
  readonly settle: (reservation: Reservation, used: Spent) => void;
  /** Resolves when a reservation was settled, or on `signal`. */
  readonly freed: (signal: AbortSignal) => Promise<void>;
};

// --- children ------------------------------------------------------------------------------------------------------------

/** How a task came to its end. Each leaves what it had done so far. */
export type TaskEnd = "reported" | "failed" | "aborted" | "timed-out" | "out-of-turns" | "over-budget" | "interrupted";

export type TaskResult = {
  /** One line. */
  readonly summary: string;
  readonly text: string;
  readonly usage: Usage;
  readonly usd: number;
  readonly turns: number;
  readonly toolUses: number;
  readonly ms: number;
};

/** Words for a task, under an id by which they are delivered once. `by`: whose; default: the main agent's. */
export type Mail = { readonly id: string; readonly message: string; readonly by?: "user" };

/** "sync": whoever asked for it waits for its result. */
export type DelegateMode = "sync" | "fire-and-forget";

export type Isolation = "worktree";

export type ForkLimits = SpendLimits & {
  readonly turns?: number; // default: 200
  /** Time that it may work; waiting for a person's answer does not count. */
  readonly ms?: number;
};

/** How much of the parent's turn under way a child is given. */
export type TailChoice = {
  /** "trim": nothing of it. Default: keep. */
  readonly inFlight?: "keep" | "trim";
  /** "all": constants even where a result is known. Default: forks. */
  readonly placeholders?: "forks" | "all";
};

/** What a child is to do. Kept with its task, so that a later life of the session can resume it. */
export type ForkPlan = {
  readonly task: string;
  /** Of this run, for traces. */
  readonly runId: string;
  readonly label: string;
  readonly agentType: string;
  readonly querySource: string;
  readonly mode: DelegateMode;
  readonly directive: string;
  readonly protocol: ChildProtocol;
  /** In place of the directive, where the caller brings messages of its own. */
  readonly messages?: readonly Message[];
  readonly tail: Required<TailChoice>;
  readonly limits: ForkLimits;
  /** Stands at the tail, before the directive. */
  readonly reminder?: string;
  /** What tools and traces call it. Default: the task's id. */
  readonly agentId?: string;
  /** Leaves no journal and no row. */
  readonly skipTranscript: boolean;
  /** A filter of the caller's narrows what it may call; it has to be given again to resume it. */
  readonly isFiltered: boolean;
  /** It works in a worktree of its own. */
  readonly isolation?: Isolation;
  /** The call that waits for it. */
  readonly call?: string;
};

/** What a host opens a child from: plain data that survives `structuredClone` and JSON, so that any host can open it. */
export type ChildPlan = {
  readonly fork: ForkPlan;
  /** The tasks that were started together with it, in the order they were asked for. */
  readonly siblings: Siblings;
  readonly begins: /** From a prefix of its parent: the entry of that session's journal with this chain hash. Then what only it is told. */
    | {
        readonly kind: "fork";
        readonly from: { readonly session: string; readonly hash: string };
        readonly additions: readonly Addition[];
      }
    /** With nothing but its prompt. */
    | { readonly kind: "empty" }
    /** From its own journal. */
    | { readonly kind: "resume"; readonly session: string; readonly mail: readonly Mail[] };
  /** By its earlier runs. */
  readonly spent?: Spent;
};

/** `family`: as the rows of tasks name it. */
export type Siblings = { readonly family: string; readonly tasks: readonly string[] };

/** What of a child's journal its parent follows. */
export type ChildEntry =
  | { readonly kind: "message"; readonly message: Message }
  /** Its last turn is over: it reads nothing more. */
  | { readonly kind: "exchange_ended"; readonly end: ExchangeEnd };

/** What a child has of whoever started it. What goes in and comes out is plain data. */
export type ChildParent = {
  /** Events of a child begin while it is being opened. */
  readonly emit: (event: EventBody) => void;
  /** Puts a question to whoever answers for the session. Absent: there is nobody. */
  readonly ask?: Ask | undefined;
  /** What its requests are reserved from and settled with. */
  readonly budget: Budget;
  readonly append: (entry: ChildEntry) => void;
  /** Resolves when its first request may be sent: not beside a leader that is not answered. */
  readonly awaitTurn: (signal: AbortSignal) => Promise<void>;
  /** What became of that request: others may be waiting for it. */
  readonly reportTurn: (state: "readable" | "failed") => void;
};

export type ChildResult = {
  readonly end: TaskEnd;
  readonly summary: string;
  readonly text: string;
  readonly usage: Usage;
  readonly usd: number;
  readonly turns: number;
  /** Where it has the form that was asked for. */
  readonly report?: Report;
};

/** What a fork reported, by its headings. */
export type Report = {
  readonly scope: string;
  readonly result: string;
  readonly keyFiles: readonly string[];
  readonly filesChanged: readonly string[];
  readonly issues: string;
};

/** Why a child is stopped, where that is not its parent's or a user's wish. */
export type ChildEnding = { readonly end: TaskEnd; readonly reason: string };

export type OpenChild = {
  /** The session that keeps its own entries; absent where none is kept. */
  readonly session?: string | undefined;
  readonly cacheKeyHash: string;
  /** JSON path of the first byte that differs from what its parent had sent, if one does. */
  readonly diverged?: string | undefined;
  /** False: it has said its last, and reads nothing more. */
  readonly steer: (mail: Mail) => boolean;
  /** From now on every call is refused, with this reason. */
  readonly refuseCalls: (reason: string) => void;
  readonly stop: (ending?: ChildEnding) => void;
  /** Starts it, once. Resolves when it has ended and everything of it is closed. */
  readonly result: () => Promise<ChildResult>;
};

/** Where children run: in this process, in a worktree, or elsewhere. Whoever opens one does not know which. */
export type ChildHost = {
  /** Called for all that start together, before the first of them is opened. */
  readonly prepare?: (plans: readonly ChildPlan[]) => Promise<void>;
  readonly open: (plan: ChildPlan, parent: ChildParent, signal: AbortSignal) => Promise<OpenChild>;
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

export type Happened<T extends EventBody["type"]> = Extract<EventBody, { readonly type: T }>;

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
