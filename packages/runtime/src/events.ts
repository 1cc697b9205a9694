/** What happens in a session, as facts for everyone who observes it: the terminal, a program, the ledger, traces.
 *  An event's type names its subject first and is in the past tense. Its fields are ids and facts, never display text.
 *  A journal entry is written before its event is emitted. Code that emits events never imports code that reads them.
 *  Elsewhere: what must survive a crash (journal/), what goes over the wire (ModelEvent of @prefork/wire). */

import type { Touches } from "@prefork/guard";
import type { JsonObject, MarkerPlace, ModelErrorReason, StopReason, Usage } from "@prefork/wire";

export type Level = "debug" | "info" | "warn" | "error";

export type EpochReason = "start" | "compaction" | "model" | "clear";

/** Why an exchange ended. */
export type ExchangeEnd =
  | "done"
  | "refused"
  | "max-turns"
  | "over-budget"
  | "out-of-time"
  | "context-full"
  | "aborted"
  | "provider-failed"
  | "journal-failed";

/** What is wrong with a journal entry, in the journal's own terms. */
export type JournalDamage = "torn" | "unreadable" | "unknown" | "lost" | "changed" | "mended";

/** Why a call returned an error instead of its result. */
export type CallFault = "unknown-tool" | "bad-input" | "denied" | "failed" | "timed-out" | "aborted" | "interrupted";

export type EventBody =
  | {
      readonly type: "session_opened";
      readonly sessionId: string;
      readonly resumed: boolean;
      readonly cwd: string;
      readonly model: string;
      readonly engine: string;
      readonly mode: string;
    }
  | { readonly type: "epoch_started"; readonly epoch: number; readonly reason: EpochReason; readonly bytes: number }
  | { readonly type: "prompt_entered"; readonly text: string }
  | { readonly type: "note_entered"; readonly kind: NoteKind; readonly text: string }
  | {
      readonly type: "turn_started";
      readonly turn: number;
      readonly prefixHash: string;
      readonly bytes: number;
      readonly markers: readonly MarkerPlace[];
    }
  | {
      readonly type: "request_retried";
      readonly attempt: number;
      readonly reason: ModelErrorReason;
      readonly message: string;
      /** The delay before the next attempt, if there is one. */
      readonly waitMs?: number;
    }
  | { readonly type: "answer_restarted"; readonly turn: number }
  | { readonly type: "text_grew"; readonly turn: number; readonly text: string }
  | { readonly type: "thinking_grew"; readonly turn: number; readonly text: string }
  | { readonly type: "text_entered"; readonly turn: number; readonly text: string }
  | {
      readonly type: "turn_ended";
      readonly turn: number;
      readonly stop: StopReason;
      readonly usage: Usage;
      readonly usd?: number;
      readonly ms: number;
      /** The provider's own name for the part that its cache could not reuse. */
      readonly missed?: string;
    }
  | {
      readonly type: "call_proposed";
      readonly callId: string;
      readonly tool: string;
      readonly args: JsonObject;
      /** What the tool declares that this call touches. Absent if the tool declares nothing, or if nothing will run. */
      readonly touches?: Touches;
    }
  /** An extension replaced the model's arguments. */
  | {
      readonly type: "call_changed";
      readonly callId: string;
      readonly tool: string;
      readonly args: JsonObject;
      readonly touches?: Touches;
      readonly extension: string;
    }
  /** A question waits for an answer. The event holds everything that is needed to answer it. */
  | {
      readonly type: "question_opened";
      readonly questionId: string;
      readonly tool: string;
      readonly args: JsonObject;
      readonly touches?: Touches;
      readonly reason: string;
      readonly rule?: string;
      readonly notes: readonly string[];
    }
  /** The question was answered, or its answer is no longer needed. */
  | { readonly type: "question_closed"; readonly questionId: string }
  | { readonly type: "question_asked"; readonly callId: string; readonly reason: string; readonly rule?: string }
  | { readonly type: "question_answered"; readonly callId: string; readonly answer: "allow" | "always" | "deny" }
  | {
      readonly type: "call_started";
      readonly callId: string;
      readonly tool: string;
      readonly reason: string;
      /** The command only reads, so its parsed `CommandPlan` runs instead of its text. */
      readonly asPlan?: true;
    }
  | { readonly type: "call_progressed"; readonly callId: string; readonly text: string }
  | {
      readonly type: "call_ended";
      readonly callId: string;
      readonly tool: string;
      readonly text: string;
      readonly fault?: CallFault;
      readonly ms: number;
    }
  | { readonly type: "result_replaced"; readonly callId: string; readonly bytes: number; readonly file: string }
  | { readonly type: "mode_changed"; readonly from: string; readonly to: string }
  | { readonly type: "todos_changed"; readonly todos: readonly Todo[] }
  | {
      readonly type: "compaction_started";
      readonly tokens: number;
      readonly why: "threshold" | "asked" | "context-full";
    }
  | {
      readonly type: "compaction_ended";
      readonly usage: Usage;
      readonly bytesBefore: number;
      readonly bytesAfter: number;
      readonly economics: string;
    }
  | { readonly type: "compaction_failed"; readonly reason: string }
  | {
      readonly type: "family_launched";
      readonly family: string;
      readonly forks: number;
      /** Why its members' requests are sent in this order. */
      readonly reason: string;
      readonly advice: readonly string[];
    }
  | {
      readonly type: "fork_started";
      readonly taskId: string;
      /** Identifies this run: a task that is resumed gets a new one. */
      readonly runId: string;
      /** The agent that started it. */
      readonly parent: string;
      readonly label: string;
      readonly querySource: string;
      readonly mode: "sync" | "fire-and-forget";
      readonly skipTranscript: boolean;
      /** The fork's own session, if it keeps a journal. The event itself belongs to the parent's session. */
      readonly session?: string;
      readonly cacheKeyHash: string;
    }
  | {
      readonly type: "fork_cache_missed";
      readonly taskId: string;
      readonly expected: number;
      readonly read: number;
      readonly prompt: number;
      readonly cause: string;
      /** JSON path of the first byte that differs from the parent's request, if one does. */
      readonly diverged?: string;
      /** At least half of the prompt could have been read from the cache and was not. In a family only the first member
       *  warns. */
      readonly isWarning: boolean;
      /** How many other forks of the family missed as much. The warning covers all of them. */
      readonly siblings?: number;
    }
  | { readonly type: "fork_tool_denied"; readonly taskId: string; readonly tool: string; readonly reason: string }
  /** A run that may write in one folder changed something outside it. `reverted`: the file was restored. `copy`: the file
   *  that keeps what the run had written there. */
  | {
      readonly type: "fork_breached";
      readonly taskId: string;
      readonly folder: string;
      readonly files: readonly {
        readonly path: string;
        readonly change: "created" | "changed" | "removed";
        readonly reverted: boolean;
        readonly copy?: string;
      }[];
    }
  | { readonly type: "observer_failed"; readonly taskId: string; readonly reason: string }
  /** Nobody waits for the task in the foreground any more. It continues in the background. */
  | { readonly type: "task_backgrounded"; readonly taskId: string }
  | { readonly type: "worktree_created"; readonly taskId: string; readonly path: string; readonly branch: string }
  /** The task's work is committed. A worktree without changes is removed. */
  | { readonly type: "worktree_finished"; readonly taskId: string; readonly files: number; readonly isRemoved: boolean }
  /** `what` a crash left behind of a worktree, and what was `done` about it. */
  | { readonly type: "worktree_repaired"; readonly what: string; readonly done: string }
  /** `unresolved`: files in the checkout that still have conflicts. */
  | {
      readonly type: "worktree_merged";
      readonly taskId: string;
      readonly outcome: string;
      readonly files: number;
      readonly unresolved?: readonly string[];
    }
  /** The provider stores what a family shares by name, as long as its members run. */
  | {
      readonly type: "prefix_stored";
      readonly family: string;
      readonly name: string;
      readonly tokens: number;
      readonly usd: number;
      readonly reason: string;
    }
  | { readonly type: "prefix_not_stored"; readonly family: string; readonly reason: string }
  /** `left`: it could not be removed, and expires by itself. `usd`: what the storage cost. */
  | {
      readonly type: "prefix_released";
      readonly name: string;
      readonly tokens: number;
      readonly ms: number;
      readonly usd: number;
      readonly how: "removed" | "gone" | "left";
    }
  | { readonly type: "keep_alive_sent"; readonly read: number; readonly usd?: number; readonly reason: string }
  | {
      readonly type: "task_ended";
      readonly taskId: string;
      readonly end: string;
      /** Why it ended, if it did not report. */
      readonly reason?: string;
      readonly turns: number;
      readonly usage: Usage;
      readonly usd: number;
    }
  | { readonly type: "notification_entered"; readonly id: string; readonly taskId: string }
  /** `damage`: what is wrong with an entry from an earlier run of the session, if that is the problem. */
  | { readonly type: "journal_troubled"; readonly problem: string; readonly damage?: JournalDamage }
  | { readonly type: "settings_noticed"; readonly notice: string }
  /** The session went back to an earlier point, or to one that it had left. `node`: the new branch in its tree.
   *  `files`: how many were restored or removed. */
  | {
      readonly type: "rewound";
      readonly node: string;
      readonly to: string;
      readonly place: "before" | "after";
      readonly restored: "conversation" | "files" | "both";
      readonly files: number;
    }
  /** A hook threw, timed out or returned an invalid value. The agent continues. */
  | { readonly type: "hook_failed"; readonly extension: string; readonly hook: string; readonly reason: string }
  /** The session opened without this extension. */
  | { readonly type: "extension_skipped"; readonly extension: string; readonly reason: string }
  /** A tool server has sent its list of tools, for the first time or after a change. */
  | { readonly type: "server_listed"; readonly server: string; readonly tools: number }
  /** The tool server did not start, or its connection was lost. Calls of its tools return an error until it is back. */
  | { readonly type: "server_lost"; readonly server: string; readonly reason: string }
  | {
      readonly type: "exchange_ended";
      readonly end: ExchangeEnd;
      readonly reason: string;
      readonly turns: number;
      readonly usage: Usage;
      readonly usd?: number;
    };

/** What a note at the tail tells the model, because it changed after the conversation began. */
export type NoteKind =
  | "date"
  | "mode"
  | "conventions"
  | "git"
  | "reminder"
  | "resumed"
  | "compacted"
  | "tasks"
  | "servers";

export type Todo = { readonly content: string; readonly status: "pending" | "in_progress" | "completed" };

/** An event with its origin, so that readers of several sessions, or in another process, need no other source. */
export type RuntimeEvent = EventBody & {
  readonly seq: number;
  /** Milliseconds since 1970, by the session's clock. */
  readonly at: number;
  readonly session: string;
  readonly level: Level;
  /** The agent that the event belongs to: `main`, or the id of a task. Never a name that a model chose. */
  readonly agent: string;
  /** For a child: the id of its family, as in the task table. */
  readonly family?: string;
};

const LEVELS: Readonly<Partial<Record<EventBody["type"], Level>>> = {
  text_grew: "debug",
  thinking_grew: "debug",
  call_progressed: "debug",
  request_retried: "warn",
  compaction_failed: "warn",
  fork_tool_denied: "debug",
  fork_breached: "warn",
  observer_failed: "warn",
  journal_troubled: "warn",
  settings_noticed: "warn",
  hook_failed: "warn",
  extension_skipped: "warn",
  server_lost: "warn",
  prefix_not_stored: "warn",
};

export const levelOf = (event: EventBody): Level => {
  if (event.type === "fork_cache_missed") return event.isWarning ? "warn" : "info";
  return LEVELS[event.type] ?? "info";
};
