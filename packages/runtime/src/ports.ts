/** The small interfaces through which the runtime uses the outside world, and its modules use modules that they may not
 *  import.
 *  This file has only types. The agent's tools start forks, a fork runs the loop, and the loop runs tools: these types
 *  break that cycle, and only session/ closes it again. Only plain data crosses `ChildHost`.
 *  Elsewhere: the implementations (session/ wires them together), the guard's types (@prefork/guard). */

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

/** The only source of time, so that a test can stop it. */
export type Clock = {
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Resolves after this time, or when `signal` is aborted. Default: real time. */
  readonly sleep?: (ms: number, signal: AbortSignal) => Promise<void>;
};

/** New ids. They are unique and have no meaning. */
export type Ids = { readonly next: (kind: "session" | "task" | "shell" | "question" | "notice" | "run") => string };

export type Question = {
  readonly id: string;
  /** The agent that asks: `main`, or the id of a task. Never a name that a model chose. */
  readonly agent: string;
  /** What that task is for, in its parent's words. */
  readonly scope?: string;
  readonly tool: string;
  readonly args: JsonObject;
  /** What the tool declares that the call touches. Absent if the tool declares nothing: the call may touch anything. */
  readonly touches?: Touches;
  readonly reason: string;
  /** The rule that would allow this call, and little more, from now on. */
  readonly rule?: string;
  /** What a person should know before allowing it. */
  readonly notes: readonly string[];
};

/** `all`: the answer also applies to every other question that is waiting now, from any agent. */
export type Answer =
  /** Allows this one call. `reason`: why, if no person decided it. */
  | { readonly kind: "allow"; readonly reason?: string; readonly all?: boolean }
  /** Allows this call, and from now on everything that this rule covers. With `all`: only the questions that the rule
   *  covers. */
  | { readonly kind: "always"; readonly rule: string; readonly all?: boolean }
  /** `stop`: also stops the agent that asked, and no other. */
  | { readonly kind: "deny"; readonly reason?: string; readonly stop?: boolean; readonly all?: boolean };

/** Puts a question to the person or program that answers for the session. */
export type Ask = (question: Question, signal: AbortSignal) => Promise<Answer>;

/** Tools that are implemented in a module that the tools may not import. If one is absent, the tool says that it is not
 *  available. */
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
  /** Replaces `text` if the result has more than text. */
  readonly content?: readonly (TextBlock | ImageBlock)[];
  readonly isError?: boolean;
  readonly facts?: Json;
};

// --- money and tokens ----------------------------------------------------------------------------------------------------

export type SpendLimits = {
  readonly usd?: number;
  /** Prompt and output tokens of all requests together. */
  readonly tokens?: number;
};

export type Spent = { readonly usage: Usage; readonly usd: number };

/** The worst case of one request. `usd` is 0 where the price is unknown. */
export type Reservation = { readonly usd: number; readonly tokens: number };

export type Shortage = { readonly limit: "usd" | "tokens"; readonly needed: number; readonly left: number };

/** A budget that several agents share. */
export type Budget = {
  /** What may still be reserved. */
  readonly left: Reservation;
  /** What could be reserved if no request were in flight. */
  readonly unspent: Reservation;
  /** Is money limited? Then a model without a price cannot be used. */
  readonly countsMoney: boolean;
  readonly reserve: (amount: Reservation) => Shortage | undefined;
  /** The request has ended: its actual cost replaces its reservation. */
  readonly settle: (reservation: Reservation, used: Spent) => void;
  /** Resolves when a reservation has been settled, or when `signal` is aborted. */
  readonly freed: (signal: AbortSignal) => Promise<void>;
};

// --- children ------------------------------------------------------------------------------------------------------------

/** How a task ended. In every case its work so far is kept. */
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

/** A message for a task. Its id ensures that it is delivered only once. `by`: who wrote it; default: the main agent. */
export type Mail = { readonly id: string; readonly message: string; readonly by?: "user" };

/** "sync": the caller waits for the result. */
export type DelegateMode = "sync" | "fire-and-forget";

export type Isolation = "worktree";

export type ForkLimits = SpendLimits & {
  readonly turns?: number; // default: 200
  /** How long it may work. Time spent waiting for a person's answer does not count. */
  readonly ms?: number;
};

/** How much of the parent's turn in flight a child sees. */
export type TailChoice = {
  /** "trim": the child sees nothing of it. Default: keep. */
  readonly inFlight?: "keep" | "trim";
  /** "all": every result is a placeholder, even if it is known. Default: forks. */
  readonly placeholders?: "forks" | "all";
};

/** What a child should do. It is stored with its task, so that a later run of the session can resume it. */
export type ForkPlan = {
  readonly task: string;
  /** Identifies this run in traces. */
  readonly runId: string;
  readonly label: string;
  readonly agentType: string;
  readonly querySource: string;
  readonly mode: DelegateMode;
  readonly directive: string;
  readonly protocol: ChildProtocol;
  /** Replace the directive if the caller supplies its own messages. */
  readonly messages?: readonly Message[];
  readonly tail: Required<TailChoice>;
  readonly limits: ForkLimits;
  /** Text at the tail, before the directive. */
  readonly reminder?: string;
  /** Its name in tools and traces. Default: the task's id. */
  readonly agentId?: string;
  /** It leaves no journal and no row in the task table. */
  readonly skipTranscript: boolean;
  /** A filter of the caller restricts which tools it may call. To resume it, the caller must pass the filter again. */
  readonly isFiltered: boolean;
  /** It works in a worktree of its own. */
  readonly isolation?: Isolation;
  /** The call that waits for it. */
  readonly call?: string;
};

/** What a host opens a child from: plain data that survives `structuredClone` and JSON, so that any host can open it. */
export type ChildPlan = {
  readonly fork: ForkPlan;
  /** The tasks that were started together with it, in the order in which they were requested. */
  readonly siblings: Siblings;
  /** "fork": from a prefix of its parent, which is the entry with this chain hash in the journal of that session;
   *  `additions` is what only this child reads after it. "empty": with only its prompt. "resume": from its own journal. */
  readonly begins:
    | {
        readonly kind: "fork";
        readonly from: { readonly session: string; readonly hash: string };
        readonly additions: readonly Addition[];
      }
    | { readonly kind: "empty" }
    | { readonly kind: "resume"; readonly session: string; readonly mail: readonly Mail[] };
  /** What its earlier runs spent. */
  readonly spent?: Spent;
};

/** `family`: its id in the task table. */
export type Siblings = { readonly family: string; readonly tasks: readonly string[] };

/** The entries of a child's journal that its parent follows. */
export type ChildEntry =
  | { readonly kind: "message"; readonly message: Message }
  /** Its last turn has ended: it reads no more messages. */
  | { readonly kind: "exchange_ended"; readonly end: ExchangeEnd };

/** What a child can use of the session that started it. Arguments and results are plain data. */
export type ChildParent = {
  /** A child's first events are emitted while it is being opened. */
  readonly emit: (event: EventBody) => void;
  /** Puts a question to the person or program that answers for the session. Absent if there is none. */
  readonly ask?: Ask | undefined;
  /** The budget in which its requests are reserved and settled. */
  readonly budget: Budget;
  readonly append: (entry: ChildEntry) => void;
  /** Resolves when its first request may be sent: not while its family's leader is unanswered. */
  readonly awaitTurn: (signal: AbortSignal) => Promise<void>;
  /** Reports the outcome of that request, because others may be waiting for it. */
  readonly reportTurn: (state: "readable" | "failed") => void;
};

export type ChildResult = {
  readonly end: TaskEnd;
  readonly summary: string;
  readonly text: string;
  readonly usage: Usage;
  readonly usd: number;
  readonly turns: number;
  /** Present if it has the requested form. */
  readonly report?: Report;
};

/** A fork's report, one field per heading. */
export type Report = {
  readonly scope: string;
  readonly result: string;
  readonly keyFiles: readonly string[];
  readonly filesChanged: readonly string[];
  readonly issues: string;
};

/** Why a child is stopped, if neither its parent nor a user asked for it. */
export type ChildEnding = { readonly end: TaskEnd; readonly reason: string };

export type OpenChild = {
  /** The session that keeps its own entries. Absent if nothing is kept. */
  readonly session?: string | undefined;
  readonly cacheKeyHash: string;
  /** JSON path of the first byte that differs from its parent's request, if one does. */
  readonly diverged?: string | undefined;
  /** False: its last turn has ended, and it reads no more messages. */
  readonly steer: (mail: Mail) => boolean;
  /** Refuses every call from now on, with this reason. */
  readonly refuseCalls: (reason: string) => void;
  readonly stop: (ending?: ChildEnding) => void;
  /** Starts it; call this once. Resolves when it has ended and all its resources are closed. */
  readonly result: () => Promise<ChildResult>;
};

/** Where children run: in this process, in a worktree, or elsewhere. The code that opens a child does not know which. */
export type ChildHost = {
  /** Called once for all children that start together, before the first of them is opened. */
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

/** What an extension decides about a call before it runs. It can make permissions stricter, never looser. */
export type CallVerdict =
  | { readonly kind: "deny"; readonly reason: string }
  | { readonly kind: "ask"; readonly reason: string }
  /** The call runs with these arguments instead. They are checked and judged like any others. The conversation keeps the
   *  model's own arguments, and the result says what ran. */
  | { readonly kind: "change"; readonly args: JsonObject };

/** Text for the model, at the tail. */
export type HookNote = { readonly note: string };

export type Hooked<T> = T | undefined | Promise<T | undefined>;

export type Happened<T extends EventBody["type"]> = Extract<EventBody, { readonly type: T }>;

/** What an extension may do while a session runs. A hook has a time limit. If a hook throws, hangs or returns an invalid
 *  value, an event reports it and the agent continues; if that hook is `beforeCall`, its call is denied. */
export type Hooks = {
  /** Runs before a call that the guard does not deny. */
  readonly beforeCall?: (call: HookedCall, signal: AbortSignal) => Hooked<CallVerdict>;
  /** Runs after a call that ran. A note becomes part of its result. */
  readonly afterCall?: (
    call: HookedCall & { readonly text: string; readonly fault?: CallFault; readonly ms: number },
    signal: AbortSignal,
  ) => Hooked<HookNote>;
  /** The user entered a prompt. A note is put before it. */
  readonly promptEntered?: (prompt: { readonly text: string }, signal: AbortSignal) => Hooked<HookNote>;
  readonly beforeCompaction?: (
    compaction: { readonly agent: string; readonly why: "threshold" | "context-full" | "asked" },
    signal: AbortSignal,
  ) => Hooked<unknown>;
  readonly sessionOpened?: (opened: Happened<"session_opened">, signal: AbortSignal) => Hooked<unknown>;
  readonly exchangeEnded?: (ended: Happened<"exchange_ended">, signal: AbortSignal) => Hooked<unknown>;
  readonly forkStarted?: (started: Happened<"fork_started">, signal: AbortSignal) => Hooked<unknown>;
  readonly taskEnded?: (ended: Happened<"task_ended">, signal: AbortSignal) => Hooked<unknown>;
  /** The session waits for this hook, up to the time limit. */
  readonly sessionClosed?: (closed: { readonly session: string }, signal: AbortSignal) => Hooked<unknown>;
};

// --- clients of a session ------------------------------------------------------------------------------------------------

/** Events as they happen. `keptFrom`: the oldest seq that was still available when the subscription began; older events are
 *  in the journal. */
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

/** A point at which the conversation can be continued.
 *  `prompt`: the exchange that a prompt started. `compaction`: the context was replaced by a summary. `branch`: the
 *  conversation went back, and what follows continues from the parent. */
export type TreeNode = {
  readonly id: string;
  /** The node that this one continues. Absent for the first. */
  readonly parent?: string;
  /** For a branch: the node that the conversation left. */
  readonly left?: string;
  readonly at: number;
  readonly kind: "prompt" | "branch" | "compaction";
  /** The first line of the prompt, without control characters and cut to a line. */
  readonly title: string;
  /** The number of its first entry in the journal. */
  readonly entry: number;
  /** The forks and agents that were started in it. */
  readonly forks: readonly { readonly task: string; readonly label: string; readonly state: string }[];
  /** The conversation is here now. Exactly one node, unless there is none. */
  readonly current: boolean;
  /** It belongs to the current conversation, so the model has it in its context or in a summary of it. */
  readonly onLine: boolean;
  /** The files can be restored to what they were before it. */
  readonly files: boolean;
  /** When the cache entry of its last request expires, if that is not renewed. Absent if nothing was cached. */
  readonly warmUntil?: number;
  readonly priceToContinue?: ContinuationPrice;
};

/** What the next request costs before its own words: tokens that are read from the cache, and tokens that are written
 *  again. Dollars if the price of the model is known. */
export type ContinuationPrice = { readonly read: number; readonly written: number; readonly usd?: number };

export type RewindOptions = {
  /** The id of a node. */
  readonly to: string;
  /** `before`: as it was before that prompt was sent; before a branch: where the conversation was when it went back.
   *  `after`: to continue that node. Default: before. */
  readonly place?: "before" | "after";
  readonly restore?: "conversation" | "files" | "both"; // default: conversation
  /** Only say what would happen. */
  readonly preview?: boolean;
};

export type RewindResult = {
  /** The new branch in the tree. To undo this rewind, go back to before it. Absent in a preview. */
  readonly node?: string;
  /** The prompt before which the conversation is now, in full, so that it can be edited and sent again. */
  readonly prompt?: string;
  /** Present if files are restored. */
  readonly files?: RestoredFiles;
};

export type RestoredFiles = {
  readonly restored: readonly FileRestore[];
  readonly removed: readonly FileRestore[];
  /** What was not restored, and why. */
  readonly skipped: readonly string[];
  /** Where the files as they were just before are kept. Absent in a preview. */
  readonly saved?: string;
};

/** `added`, `deleted`: lines. Absent for files that are not text. */
export type FileRestore = { readonly path: string; readonly added?: number; readonly deleted?: number };

/** How a terminal, another process, an editor or a web page takes part in a session. Any number may be attached. */
export type SessionControl = {
  readonly session: string;
  /** Yields the kept events from this seq on, then live ones. Default: live events only. The session keeps the latest
   *  5,000 events since its first control was created, without those of level debug, and at most 16 million characters
   *  of text. */
  readonly subscribe: (fromSeq?: number) => Subscription;
  /** Refused while an exchange runs, no matter which client started it. */
  readonly prompt: (
    prompt: string | readonly (TextBlock | ImageBlock | DocumentBlock)[],
    options?: { readonly signal?: AbortSignal; readonly tasks?: "wait" | "leave" },
  ) => Promise<PromptEnd>;
  /** Questions that nobody has answered yet. */
  readonly questions: () => readonly Question[];
  /** The first answer to a question counts. False: the question is no longer open, and nothing happened. A promise where
   *  the session runs in another process. */
  readonly answer: (questionId: string, answer: Answer) => boolean | Promise<boolean>;
  /** Sends a message to the main agent while it works, or to a task. The agent reads it at its next turn boundary. A task
   *  that has ended is resumed. */
  readonly steer: (text: string, taskId?: string) => Promise<void>;
  /** Stops a task, or without an id the running exchange. Resolves when it has ended. */
  readonly stop: (taskId?: string) => Promise<void>;
  /** Moves this task to the background, or without an id every task that somebody waits for. The waiting callers
   *  continue, and so does the task. */
  readonly background: (taskId?: string) => void;
  /** The points of the session that can be continued, oldest first. A promise where the session runs in another process. */
  readonly tree: () => readonly TreeNode[] | Promise<readonly TreeNode[]>;
  /** Goes back to a node, or forward to one that was left. Refused while an exchange runs. */
  readonly rewind: (options: RewindOptions) => Promise<RewindResult>;
};
