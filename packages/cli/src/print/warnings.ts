/** What a run has to say beside its answer, as data: for JSON, for the error output, and for the exit code.
 *  Invariant: every format says the same; words come from events alone; their number is bounded, and what is left out is
 *  counted.
 *  Elsewhere: what happens (RuntimeEvent of @prefork/runtime), printing it (output.ts). */

import type { RuntimeEvent } from "@prefork/runtime";
import { formatWait } from "@prefork/wire";
import { visibleName } from "../visible.ts";

export type WarningKind =
  /** Told before it begins: settings, engine, flags that are not used. */
  | "notice"
  | "settings"
  | "denied"
  | "retried"
  | "journal"
  | "fork-failed"
  | "all-forks-failed"
  | "cache-missed"
  /** The provider did not report all of its usage. */
  | "estimated"
  | "merge"
  | "repaired"
  | "server-lost"
  /** One was skipped, or a hook of it failed. */
  | "extension"
  | "observer-failed"
  | "compaction-failed"
  /** How many more there were. */
  | "more";

export type Warning = {
  readonly kind: WarningKind;
  readonly message: string;
  /** Who it happened to, where that is a task. */
  readonly task?: string;
};

export type Said = {
  readonly all: readonly Warning[];
  /** What only shows at the end. */
  readonly last?: Warning;
  /** The answer is there, and something that it was to rest upon or to bring about is not. */
  readonly isIncomplete: boolean;
};

const MOST_WARNINGS = 200;

/** Damage by which something of the conversation is missing; a torn end was never told to anybody. */
const LOSSES: readonly string[] = ["unreadable", "lost", "changed"];

/** Ends that somebody wanted are no failures. */
const WANTED: readonly string[] = ["reported", "aborted"];

const ESTIMATED = "the provider did not report all of its usage; tokens and cost are partly estimates";

/** A wait that somebody notices. */
const inTime = (waitMs = 0): string => (waitMs < 1_000 ? "" : ` in ${formatWait(waitMs)}`);

/** One of a family speaks for all of it. */
const alike = (siblings = 0): string => (siblings === 0 ? "" : ` (and ${siblings} more of its family)`);

type Ended = { readonly end: string; readonly reason: string };

export class Warnings {
  readonly #all: Warning[] = [];
  #more = 0;
  #isDamaged = false;
  #isUnresolved = false;
  /** Forks and other agents that this run has started, by their last end. */
  readonly #ended = new Map<string, Ended>();
  /** Calls that went on as tasks: they are none of these. */
  readonly #calls = new Set<string>();
  readonly #agents = new Set<string>();

  notice(message: string): void {
    this.#add({ kind: "notice", message });
  }

  /** Gives what this event has to say, if anything. */
  event(event: RuntimeEvent): Warning | undefined {
    const warning = this.#take(event);
    if (warning) this.#add(warning);
    return warning;
  }

  /** At the end of an exchange: all that it had to say. The next one begins with nothing. */
  finish(): Said {
    const failed = this.#allFailed();
    const last = failed && allFailedWarning(failed);
    if (last) this.#add(last);
    const more: Warning = { kind: "more", message: `${this.#more} more warnings were left out` };
    const all = [...this.#all.splice(0), ...(this.#more === 0 ? [] : [more])];
    const isIncomplete = this.#isDamaged || this.#isUnresolved || last !== undefined;
    this.#ended.clear();
    this.#more = 0;
    this.#isDamaged = false;
    this.#isUnresolved = false;
    return { all, isIncomplete, ...(last ? { last } : {}) };
  }

  #allFailed(): readonly Ended[] | undefined {
    const ended = [...this.#ended.values()].filter(({ end }) => end !== "aborted");
    return ended.length > 0 && ended.every(({ end }) => !WANTED.includes(end)) ? ended : undefined;
  }

  #add(warning: Warning): void {
    if (this.#all.length < MOST_WARNINGS) this.#all.push(warning);
    else this.#more += 1;
  }

  #take(event: RuntimeEvent): Warning | undefined {
    switch (event.type) {
      case "call_ended":
        if (event.fault !== "denied") return undefined;
        return { kind: "denied", message: `${event.tool}: ${firstLine(event.text)}`, ...taskOf(event.agent) };
      case "request_retried":
        return {
          kind: "retried",
          message: `trying again (${event.attempt})${inTime(event.waitMs)}: ${event.message}`,
          ...taskOf(event.agent),
        };
      case "journal_troubled":
        this.#isDamaged ||= event.damage !== undefined && LOSSES.includes(event.damage);
        return { kind: "journal", message: `journal: ${event.problem}` };
      case "settings_noticed":
        return { kind: "settings", message: event.notice };
      case "server_lost":
        return { kind: "server-lost", message: `tool server ${event.server}: ${event.reason}` };
      case "extension_skipped":
        return { kind: "extension", message: `extension ${event.extension} is skipped: ${event.reason}` };
      case "hook_failed":
        return { kind: "extension", message: `extension ${event.extension}: ${event.hook} failed: ${event.reason}` };
      case "observer_failed":
        return about(event, {
          kind: "observer-failed",
          message: `an observer of ${event.taskId} failed: ${event.reason}`,
        });
      case "compaction_failed":
        return { kind: "compaction-failed", message: `the conversation could not be summed up: ${event.reason}` };
      case "fork_cache_missed": {
        if (!event.isWarning) return undefined;
        const { read, expected, cause, siblings } = event;
        const message = `a fork${alike(siblings)} read ${read} of ${expected} tokens that it could have read: ${cause}`;
        return about(event, { kind: "cache-missed", message });
      }
      case "exchange_ended":
        return event.usage.estimated === undefined ? undefined : { kind: "estimated", message: ESTIMATED };
      case "worktree_repaired":
        return { kind: "repaired", message: `${event.what}: ${event.done}` };
      case "worktree_merged":
        return this.#merged(event);
      case "task_backgrounded":
        if (!this.#agents.has(event.taskId)) this.#calls.add(event.taskId);
        return undefined;
      case "fork_started":
        this.#agents.add(event.taskId);
        this.#calls.delete(event.taskId);
        return undefined;
      case "task_ended":
        return this.#endedTask(event);
      default:
        return undefined;
    }
  }

  #merged(event: Extract<RuntimeEvent, { type: "worktree_merged" }>): Warning | undefined {
    const { outcome, unresolved, taskId } = event;
    if (unresolved) {
      this.#isUnresolved = true;
      const message = `${taskId}: merged into this checkout with conflicts left in ${unresolved.map(visibleName).join(", ")}`;
      return about(event, { kind: "merge", message });
    }
    if (outcome === "merged" || outcome === "nothing-new") return undefined;
    const why =
      outcome === "conflicts" ? "it conflicts" : outcome === "check-failed" ? "the check failed" : "it failed";
    const message = `${taskId}: not merged: ${why} (prefork merge --preview ${taskId})`;
    return about(event, { kind: "merge", message });
  }

  #endedTask(event: Extract<RuntimeEvent, { type: "task_ended" }>): Warning | undefined {
    const { taskId, end, reason = end } = event;
    if (this.#calls.has(taskId)) return undefined;
    this.#ended.set(taskId, { end, reason });
    if (WANTED.includes(end)) return undefined;
    return about(event, { kind: "fork-failed", message: `${taskId}: ${reason}` });
  }
}

const allFailedWarning = (failed: readonly Ended[]): Warning => {
  const what = failed.length === 1 ? "the only fork failed" : `all ${failed.length} forks failed`;
  return { kind: "all-forks-failed", message: `${what}: ${failed[0]?.reason ?? ""}` };
};

const about = ({ taskId }: { readonly taskId: string }, warning: Warning): Warning => ({ ...warning, task: taskId });

const taskOf = (agent: string): Pick<Warning, "task"> => (agent === "main" ? {} : { task: agent });

const firstLine = (text: string): string => text.split("\n", 1)[0] ?? "";
