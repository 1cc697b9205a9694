/** Did a run that may write in one folder leave everything else as it was?
 *  This is checked after every such run, by what is on disk. A change counts against the run only if one of its calls
 *  could have made it: it changed a file that the run named, or it happened while a call of the run was not confined
 *  to the read-only sandbox and nobody else in the session was writing. Such a change is reverted, and a copy of it is
 *  kept, since a person may have made it after all. Every other change is reported and left alone. If such a call left
 *  a tree that can no longer be compared completely, the run failed too, and the changes that were found are reverted
 *  all the same.
 *  Elsewhere: recording and reverting (@prefork/guard), refusing calls (@prefork/guard). */

import { existsSync, realpathSync } from "node:fs";
import { resolve } from "node:path";
import { classify, type Touches, type Watch, watchTrees } from "@prefork/guard";
import {
  type DatedBreach,
  type MemoryFolder,
  mayRunOutsideSandbox,
  partsBelow,
  shownName,
} from "@prefork/guard/internal";
import type { EventBody, RuntimeEvent } from "../events.ts";

export type AuditOptions = {
  readonly memory: MemoryFolder;
  /** What must stay as it is. */
  readonly roots: readonly string[];
  readonly cwd: string;
  /** The run's name in events. */
  readonly agent: string;
  /** Folders that the session itself writes in. */
  readonly ignoredFolders: readonly string[];
  /** Where copies are kept. */
  readonly keep: string;
  /** Do other commands of the session run in the background? They may write at any time. */
  readonly othersRun: boolean;
  /** Do its commands run in the read-only sandbox? */
  readonly hasReadOnlySandbox: () => Promise<boolean>;
  readonly follow: (follower: (event: RuntimeEvent) => void) => Disposable;
  readonly now?: () => number; // default: the clock that files are dated by
  readonly maxFiles?: number; // default: 50,000; what the run may at most add to them
};

export type Audited = {
  /** Why the run counts as failed. */
  readonly breach?: string;
  readonly notes: readonly string[];
  readonly event?: Omit<Extract<EventBody, { readonly type: "fork_breached" }>, "taskId">;
};

/** How many bytes of the tree are kept to revert changes. */
const MOST_BYTES = 8 * 1024 * 1024;
/** A file system's clock may be up to one tick behind ours. */
const TICK_MS = 20;
const MOST_NAMED = 10;
/** Reverted files that the text names; the event names all. */
const MAX_REPORTED = 200;

/** Large generated folders. They are skipped if the tree is too large otherwise. */
const MADE = /\/(?:node_modules|\.venv|venv|target|dist|build|\.cache|\.next|__pycache__)$/;

/** `isKeptIn`: if commands have a read-only sandbox, this one was confined to it. */
type Span = { readonly from: number; to: number; readonly isKeptIn: boolean };

/** Without `touches` it may write anything. */
type Proposed = { readonly touches?: Touches; readonly stays: boolean };

export class RunAudit implements AsyncDisposable {
  readonly #options: AuditOptions;
  readonly #watch: Watch;
  readonly #following: Disposable;
  readonly #proposed = new Map<string, Proposed>();
  readonly #open = new Map<string, Span>();
  readonly #commands: Span[] = [];
  readonly #others: Span[] = [];
  readonly #written = new Set<string>();

  private constructor(options: AuditOptions, watch: Watch) {
    this.#options = options;
    this.#watch = watch;
    for (const folder of options.ignoredFolders) watch.accountFor(folder);
    this.#following = options.follow((event) => this.#noticed(event));
  }

  /** A text says why nothing can be watched: then the run must not write. Throws if the folder no longer exists. */
  static async begin(options: AuditOptions): Promise<RunAudit | string> {
    const { memory, roots, maxFiles } = options;
    const problem = memory.problem();
    if (problem !== undefined) throw new Error(problem);
    const tops = roots.map(realPath);
    const isUpkeep = (path: string): boolean => isGitUpkeep(path, tops.find((top) => path.startsWith(`${top}/`)) ?? "");
    const watchExcept = (exclude: (path: string) => boolean) =>
      watchTrees({
        ...{ folders: topmost(roots), allowed: [memory.path], maxBytes: MOST_BYTES, beyond: "report", exclude },
        ...(maxFiles === undefined ? {} : { maxFiles }),
      });
    const started = await watchExcept(isUpkeep);
    const retried = started.ok ? started : await watchExcept((path) => isUpkeep(path) || MADE.test(path));
    return retried.ok ? new RunAudit(options, retried.watch) : retried.reason;
  }

  async end(): Promise<Audited> {
    this.#following[Symbol.dispose]();
    const { memory, keep: folder, agent } = this.#options;
    const compared = await this.#watch.compare();
    const hasReadOnlySandbox = await this.#options.hasReadOnlySandbox();
    const isOwn = (breach: DatedBreach): boolean => this.#isOwn(breach, hasReadOnlySandbox);
    const ownBreaches = compared.breaches.filter(isOwn);
    const meanwhile = compared.breaches.filter((breach) => !isOwn(breach));
    const unknown = compared.ok
      ? []
      : [`whether it changed anything else outside ${memory.path} is not known: ${compared.reason}`];
    const hidItself = !compared.ok && this.#couldHaveWritten(hasReadOnlySandbox);
    const notes = [
      ...(meanwhile.length === 0
        ? []
        : [
            `while it ran, this was done outside ${memory.path} when no call of it could have done it, and is left as it is: ${listed(meanwhile)}`,
          ]),
      ...(hidItself ? [] : unknown),
    ];
    if (ownBreaches.length === 0 && !hidItself) return { notes };
    const files = await this.#watch.revertSome(ownBreaches, { folder, prefix: `outside-${agent}` });
    const descriptions = files.map(({ path, change, reverted, copy }) => {
      const kept = copy === undefined ? "" : `; what stood there is in ${copy}`;
      return `${change} ${shownName(path)} (${reverted ? `put back${kept}` : "left as it is"})`;
    });
    const changed = `it changed what its filter does not let it change, outside ${memory.path}: ${first(descriptions, MAX_REPORTED)}`;
    const breach = [...(files.length === 0 ? [] : [changed]), ...(hidItself ? unknown : [])].join("; ");
    return { breach, notes, event: { type: "fork_breached", folder: memory.path, files } };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#following[Symbol.dispose]();
    await this.#watch[Symbol.asyncDispose]();
  }

  #isOwn({ path, atMs }: DatedBreach, hasReadOnlySandbox: boolean): boolean {
    if (this.#written.has(path)) return true;
    if ([...this.#written].some((name) => name.endsWith("/") && path.startsWith(name))) return true;
    const at = (span: Span): boolean => span.from - TICK_MS <= atMs && atMs <= span.to + 1;
    const couldHave = (span: Span): boolean => at(span) && !(hasReadOnlySandbox && span.isKeptIn);
    return !this.#options.othersRun && this.#commands.some(couldHave) && !this.#others.some(at);
  }

  /** The comparison was possible before the run and is not any more. Was a call of the run the only one working? */
  #couldHaveWritten(hasReadOnlySandbox: boolean): boolean {
    const overlaps = (a: Span, b: Span): boolean => a.from <= b.to && b.from <= a.to;
    const isFree = (span: Span): boolean => !(hasReadOnlySandbox && span.isKeptIn);
    const alone = (span: Span): boolean => !this.#others.some((other) => overlaps(span, other));
    return !this.#options.othersRun && this.#commands.some((span) => isFree(span) && alone(span));
  }

  #noticed(event: RuntimeEvent): void {
    const { agent, cwd, now = Date.now } = this.#options;
    const isOwn = event.agent === agent;
    const key = "callId" in event ? `${event.agent} ${event.callId}` : "";
    if (event.type === "call_proposed" || event.type === "call_changed") {
      const { touches, args } = event;
      this.#proposed.set(key, { ...(touches ? { touches } : {}), stays: args.run_in_background === true });
    } else if (event.type === "call_started") {
      const { touches, stays = false } = this.#proposed.get(key) ?? {};
      const { writes = [], runs = [], reaches = [] } = touches ?? {};
      if (touches && runs.length + reaches.length === 0) {
        for (const [path, name] of writes.map((name) => [resolve(cwd, name), name] as const))
          if (isOwn) this.#written.add(name.endsWith("/") ? `${path}/` : path);
          else this.#watch.accountFor(path);
        return;
      }
      const isPlan = event.asPlan === true;
      if (!isOwn && isPlan && runs.every((command) => classify(command).verdict === "read-only")) return;
      const isKeptIn = isPlan && runs.every(staysInSandbox);
      const span: Span = { from: now(), to: Number.POSITIVE_INFINITY, isKeptIn };
      (isOwn ? this.#commands : this.#others).push(span);
      if (!stays) this.#open.set(key, span);
    } else if (event.type === "call_ended") {
      this.#proposed.delete(key);
      const span = this.#open.get(key);
      if (span) span.to = now();
      this.#open.delete(key);
    }
  }
}

/** Commands that report on the system run outside the sandbox. */
const staysInSandbox = (command: string): boolean => {
  const judged = classify(command);
  return judged.verdict === "read-only" && !mayRunOutsideSandbox(judged.plan.steps);
};

const realPath = (path: string): string => {
  try {
    return realpathSync.native(path);
  } catch {
    return path; // the watch says what is wrong with it
  }
};

/** A folder inside another one is compared with it. */
const topmost = (roots: readonly string[]): readonly string[] =>
  roots.filter((root) => !roots.some((other) => other !== root && isBelow(root, other)));

const isBelow = (path: string, folder: string): boolean =>
  partsBelow(folder.split("/").filter(Boolean), path.split("/").filter(Boolean)) !== undefined;

const listed = (breaches: readonly DatedBreach[]): string =>
  first(
    breaches.map(({ path, change }) => `${change} ${shownName(path)}`),
    MOST_NAMED,
  );

const first = (texts: readonly string[], most: number): string =>
  texts.slice(0, most).join(", ") + (texts.length > most ? ` and ${texts.length - most} more` : "");

// --- names below `.git` that git changes by itself ----------------------------------------------------------------------
// Nothing that can make git run something is among them, now or later: settings, hooks, attributes, files that lead to
// another repository, the steps of a rebase; in submodules and worktrees as in the repository itself.

/** Including everything below them. */
const WATCHED = /^(?:config|config\.worktree|commondir|gitdir|hooks|info)$/;
/** Folders that hold repositories, or parts of them. */
const HOLDS_MORE = /^(?:modules|worktrees|rebase-merge|rebase-apply|sequencer)$/;
const STEPS = /^(?:git-rebase-todo|todo)$/;
/** Names that git uses inside a repository. A submodule may have such a name too; then it has a `config`. */
const KEPT =
  /^(?:objects|refs|logs|lfs|annex|branches|index|description|shallow|packed-refs|HEAD|\w+_HEAD|\w+_(?:MSG|MODE|RR|EDITMSG)|COMMIT_EDITMSG|gc\.\w+|.*\.(?:lock|pid))$/;

/** `path` is below `root`. */
export const isGitUpkeep = (path: string, root: string): boolean => {
  const [, ...below] = path.slice(root.length).split("/.git/");
  const names = below.join("/.git/").split("/");
  return below.length > 0 && isKept(names, path);
};

const isKept = ([first = "", ...rest]: readonly string[], path: string): boolean => {
  if (WATCHED.test(first)) return false;
  if (!HOLDS_MORE.test(first)) return true;
  const [, ...inside] = rest;
  if (rest.length === 0) return false;
  if (first === "modules") return isKeptInModule(rest, path);
  // A worktree by its name, or the state of a rebase.
  if (first === "worktrees") return inside.length > 0 && isKept(inside, path);
  return !STEPS.test(rest[0] ?? "");
};

/** The name of a submodule may have several parts, so any name that is not git's own may be part of it. */
const isKeptInModule = (names: readonly string[], path: string): boolean => {
  const at = names.findIndex((name, index) => index > 0 && (WATCHED.test(name) || HOLDS_MORE.test(name)));
  if (at > 0) return isKept(names.slice(at), path);
  return names.length > 1 && KEPT.test(names.at(-1) ?? "") && !existsSync(`${path}/config`);
};
