/** The warnings of a run, as data: for JSON, for standard error, and for the exit code.
 *  Invariant: every format has the same warnings; they come only from events; their number is limited, and the rest is
 *  counted.
 *  Elsewhere: the events (RuntimeEvent of @prefork/runtime), printing them (output.ts). */

import type { RuntimeEvent } from "@prefork/runtime";
import { formatWait } from "@prefork/wire";
import { visibleName } from "../visible.ts";

export type WarningKind =
  /** Printed before the run starts: settings, engine, unused flags. */
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
  /** An extension was skipped, or one of its hooks failed. */
  | "extension"
  | "observer-failed"
  | "compaction-failed"
  /** Counts the warnings beyond the limit. */
  | "more";

export type Warning = {
  readonly kind: WarningKind;
  readonly message: string;
  /** The task that it is about, if it is about one. */
  readonly task?: string;
};

export type WarningSummary = {
  readonly all: readonly Warning[];
  /** A warning that is known only at the end. */
  readonly last?: Warning;
  /** There is an answer, but something that it depends on, or should have done, is missing. */
  readonly isIncomplete: boolean;
};

const MAX_WARNINGS = 200;

/** Damage that lost part of the conversation. A torn last line does not count: nobody had seen it. */
const LOSSES: readonly string[] = ["unreadable", "lost", "changed"];

/** Ends that are not failures. */
const INTENDED_ENDS: readonly string[] = ["reported", "aborted"];

const ESTIMATED = "the provider did not report all of its usage; tokens and cost are partly estimates";

/** Only if the wait is long enough to notice. */
const afterWait = (waitMs = 0): string => (waitMs < 1_000 ? "" : ` in ${formatWait(waitMs)}`);

/** One warning stands for the whole family. */
const siblingText = (siblings = 0): string => (siblings === 0 ? "" : ` (and ${siblings} more of its family)`);

type Ended = { readonly end: string; readonly reason: string };

export class Warnings {
  readonly #all: Warning[] = [];
  #more = 0;
  #isDamaged = false;
  #isUnresolved = false;
  /** The last end of each agent that this run started. */
  readonly #ended = new Map<string, Ended>();
  /** Calls that continued as tasks; they are not agents. */
  readonly #calls = new Set<string>();
  readonly #agents = new Set<string>();

  notice(message: string): void {
    this.#add({ kind: "notice", message });
  }

  /** The warning of this event, if it has one. */
  event(event: RuntimeEvent): Warning | undefined {
    const warning = this.#take(event);
    if (warning) this.#add(warning);
    return warning;
  }

  /** All warnings of the exchange that just ended. The next one starts with none. */
  finish(): WarningSummary {
    const failed = this.#allFailed();
    const last = failed && allFailedWarning(failed);
    if (last) this.#add(last);
    const more: Warning = { kind: "more", message: `${this.#more} more warnings are not listed` };
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
    return ended.length > 0 && ended.every(({ end }) => !INTENDED_ENDS.includes(end)) ? ended : undefined;
  }

  #add(warning: Warning): void {
    if (this.#all.length < MAX_WARNINGS) this.#all.push(warning);
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
          message: `retrying (attempt ${event.attempt})${afterWait(event.waitMs)}: ${event.message}`,
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
        return { kind: "extension", message: `extension ${event.extension} was skipped: ${event.reason}` };
      case "hook_failed":
        return { kind: "extension", message: `extension ${event.extension}: ${event.hook} failed: ${event.reason}` };
      case "observer_failed":
        return about(event, {
          kind: "observer-failed",
          message: `an observer of ${event.taskId} failed: ${event.reason}`,
        });
      case "compaction_failed":
        return { kind: "compaction-failed", message: `the conversation could not be summarized: ${event.reason}` };
      case "fork_cache_missed": {
        if (!event.isWarning) return undefined;
        const { read, expected, cause, siblings } = event;
        const message = `a fork${siblingText(siblings)} read ${read} of ${expected} tokens that the cache should have had: ${cause}`;
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
    if (INTENDED_ENDS.includes(end)) return undefined;
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
