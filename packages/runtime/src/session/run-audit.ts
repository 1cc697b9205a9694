/** Did a run that may write in one folder leave the rest as it was?
 *  Invariant: judged after every such run, by what stands on the disk. A change counts against the run only if one of its
 *  calls could have made it: a file that it named itself, or a change while a command of it ran outside a cell and nobody
 *  else of the session was writing. Such a change is put back, and what stood there is kept in a copy, since a person may
 *  have made it after all; every other change is told and left.
 *  Elsewhere: recording and putting back (../workspace), refusing calls (../guard). */

import { copyFileSync, lstatSync, mkdirSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import type { EventBody, RuntimeEvent } from "../events.ts";
import type { MemoryFolder } from "../guard/index.ts";
import { partsBelow } from "../paths/index.ts";
import { type DatedBreach, type Watch, watchTrees } from "../workspace/index.ts";

export type AuditOptions = {
  readonly memory: MemoryFolder;
  /** What must stay as it is. */
  readonly roots: readonly string[];
  readonly cwd: string;
  /** The run, as events name it. */
  readonly agent: string;
  /** Folders that the session itself writes in. */
  readonly ours: readonly string[];
  /** Where copies are kept. */
  readonly keep: string;
  /** Commands of the session that go on beside it and may write at any time. */
  readonly othersRun: boolean;
  /** Do its commands run where nothing can be written? */
  readonly hasCell: () => Promise<boolean>;
  readonly follow: (follower: (event: RuntimeEvent) => void) => Disposable;
  readonly now?: () => number; // default: the clock that files are dated by
};

export type Audited = {
  /** Why the run counts as failed. */
  readonly breach?: string;
  readonly notes: readonly string[];
  readonly event?: Omit<Extract<EventBody, { readonly type: "fork_breached" }>, "taskId">;
};

/** Bytes of the tree that are held, so that they can be put back. */
const MOST_BYTES = 8 * 1024 * 1024;
/** A file system dates by a clock that lags behind ours by up to a tick. */
const TICK_MS = 20;
const MOST_NAMED = 10;

/** Large, and made by programs: left out where the tree is too large without. */
const MADE = /\/(?:node_modules|\.venv|venv|target|dist|build|\.cache|\.next|__pycache__)$/;
/** What git keeps for itself, and every look at the repository may refresh. */
const KEPT_BY_GIT = /\/\.git\/(?!(?:config|config\.worktree|hooks|info)(?:\/|$))/;

const READS: readonly string[] = [
  ...["Read", "Glob", "Grep", "TodoWrite", "TaskOutput", "TaskStop", "Agent", "SendMessage", "Skill"],
];
const WRITES_FILES: readonly string[] = ["Write", "Edit", "MultiEdit", "NotebookEdit"];

type Span = { readonly from: number; to: number };

export class RunAudit implements AsyncDisposable {
  readonly #options: AuditOptions;
  readonly #watch: Watch;
  readonly #following: Disposable;
  readonly #named = new Map<string, { readonly tool: string; readonly path?: string; readonly stays: boolean }>();
  readonly #open = new Map<string, Span>();
  readonly #commands: Span[] = [];
  readonly #others: Span[] = [];
  readonly #written = new Set<string>();

  private constructor(options: AuditOptions, watch: Watch) {
    this.#options = options;
    this.#watch = watch;
    for (const folder of options.ours) watch.accountFor(folder);
    this.#following = options.follow((event) => this.#noticed(event));
  }

  /** A text is why nothing can be watched: then the run must not write. Throws where the folder is not there any more. */
  static async begin(options: AuditOptions): Promise<RunAudit | string> {
    const { memory, roots } = options;
    const problem = memory.problem();
    if (problem !== undefined) throw new Error(problem);
    const started = await watched(roots, memory.path, (path) => KEPT_BY_GIT.test(path));
    const again = started.ok
      ? started
      : await watched(roots, memory.path, (path) => KEPT_BY_GIT.test(path) || MADE.test(path));
    return again.ok ? new RunAudit(options, again.watch) : again.reason;
  }

  async end(): Promise<Audited> {
    this.#following[Symbol.dispose]();
    const { memory } = this.#options;
    const compared = await this.#watch.compare();
    if (!compared.ok)
      return { notes: [`whether it changed anything outside ${memory.path} is not known: ${compared.reason}`] };
    const hasCell = await this.#options.hasCell();
    const ownBreaches = compared.breaches.filter((breach) => this.#isOwn(breach, hasCell));
    const meanwhile = compared.breaches.filter((breach) => !ownBreaches.includes(breach));
    const notes =
      meanwhile.length === 0
        ? []
        : [
            `while it ran, this was done outside ${memory.path} when no call of it could have done it, and is left as it is: ${listed(meanwhile)}`,
          ];
    if (ownBreaches.length === 0) return { notes };
    const files = await this.#putBack(ownBreaches);
    const told = files.map(({ path, change, reverted, copy }) => {
      const kept = copy === undefined ? "" : `; what stood there is in ${copy}`;
      return `${change} ${path} (${reverted ? `put back${kept}` : "left as it is"})`;
    });
    const breach = `it changed what its filter does not let it change, outside ${memory.path}: ${told.join(", ")}`;
    return { breach, notes, event: { type: "fork_breached", folder: memory.path, files } };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#following[Symbol.dispose]();
    await this.#watch[Symbol.asyncDispose]();
  }

  /** Nothing is put back that could not be kept first. */
  async #putBack(breaches: readonly DatedBreach[]): Promise<NonNullable<Audited["event"]>["files"]> {
    const copies = new Map(breaches.map(({ path, change }, at) => [path, this.#copied(path, change, at)]));
    const reverted = await this.#watch.revert((path) => copies.get(path)?.ok === true);
    return breaches.map(({ path, change }) => {
      const copy = copies.get(path)?.copy;
      const isBack = reverted.some((one) => one.path === path && one.reverted);
      return { path, change, reverted: isBack, ...(copy === undefined ? {} : { copy }) };
    });
  }

  #copied(path: string, change: DatedBreach["change"], at: number): { readonly ok: boolean; readonly copy?: string } {
    try {
      if (change === "removed" || !lstatSync(path).isFile()) return { ok: true };
      mkdirSync(this.#options.keep, { recursive: true, mode: 0o700 });
      const copy = join(this.#options.keep, `outside-${this.#options.agent}-${at}-${basename(path)}`);
      copyFileSync(path, copy);
      return { ok: true, copy };
    } catch {
      return { ok: false };
    }
  }

  #isOwn({ path, atMs }: DatedBreach, hasCell: boolean): boolean {
    if (this.#written.has(path)) return true;
    const at = (span: Span): boolean => span.from - TICK_MS <= atMs && atMs <= span.to + 1;
    return !hasCell && !this.#options.othersRun && this.#commands.some(at) && !this.#others.some(at);
  }

  #noticed(event: RuntimeEvent): void {
    const { agent, cwd, now = Date.now } = this.#options;
    const isOwn = event.agent === agent;
    if (event.type === "call_proposed") {
      const { file_path: path, run_in_background: stays } = event.args;
      const named = typeof path === "string" ? { path: resolve(cwd, path) } : {};
      this.#named.set(`${event.agent} ${event.callId}`, { tool: event.tool, ...named, stays: stays === true });
    } else if (event.type === "call_started" && !READS.includes(event.tool)) {
      const key = `${event.agent} ${event.callId}`;
      const { path, stays = false } = this.#named.get(key) ?? {};
      if (path !== undefined && WRITES_FILES.includes(event.tool)) {
        if (isOwn) this.#written.add(path);
        else this.#watch.accountFor(path);
        return;
      }
      if (!isOwn && event.tool === "Bash" && /^every part only reads$/.test(event.reason)) return;
      const span: Span = { from: now(), to: Number.POSITIVE_INFINITY };
      (isOwn ? this.#commands : this.#others).push(span);
      if (!stays) this.#open.set(key, span);
    } else if (event.type === "call_ended") {
      const key = `${event.agent} ${event.callId}`;
      this.#named.delete(key);
      const span = this.#open.get(key);
      if (span) span.to = now();
      this.#open.delete(key);
    }
  }
}

const watched = (roots: readonly string[], allowed: string, leaveOut: (path: string) => boolean) => {
  // A folder inside another one is looked at with it.
  const tops = roots.filter((root) => !roots.some((other) => other !== root && isBelow(root, other)));
  return watchTrees({ folders: tops, allowed: [allowed], maxBytes: MOST_BYTES, beyond: "report", leaveOut });
};

const isBelow = (path: string, folder: string): boolean =>
  partsBelow(folder.split("/").filter(Boolean), path.split("/").filter(Boolean)) !== undefined;

const listed = (breaches: readonly DatedBreach[]): string => {
  const named = breaches.slice(0, MOST_NAMED).map(({ path, change }) => `${change} ${path}`);
  const more = breaches.length - named.length;
  return named.join(", ") + (more > 0 ? ` and ${more} more` : "");
};
