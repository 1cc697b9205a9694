/** Where one child works: in its parent's checkout, shared with its siblings, or in a worktree of its own.
 *  It is in one of the two at any time, and its guard, tools and files agree on which. From a worktree no path leads
 *  into the parent's checkout. In the shared checkout a file has one writer among the children of a session, and is
 *  free again when that child has ended.
 *  Elsewhere: worktrees (worktrees.ts), what commands may touch (@prefork/guard), opening a child (local-host.ts). */

import { realpathSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import type { Policy, Touches } from "@prefork/guard";
import { movedPath, movedPolicy } from "@prefork/guard/internal";
import type { JsonObject } from "@prefork/wire";
import type { Agent, AgentOptions, AgentParts, WorkBounds } from "../agent/index.ts";
import type { ForkPlan, Question, TaskEnd } from "../ports.ts";
import type { NamedCall, Registry } from "../tools/index.ts";
import type { ChildWorktree, ChildWorktrees, Folders } from "./worktrees.ts";
import { worktreeNotice } from "./worktrees.ts";

export type ChildWorkspaceParts = {
  readonly plan: ForkPlan;
  readonly options: AgentOptions;
  readonly isolated: ChildWorktrees;
  readonly claims: FileClaims;
  readonly touchesOf: Registry["touches"];
  /** Called when it moves into a worktree while it works. */
  readonly moved: () => void;
  readonly worktree?: ChildWorktree | undefined;
  readonly signal: AbortSignal;
};

/** How often a child gets its conflicts back. */
const MOST_HANDED_BACK = 2;

export class ChildWorkspace {
  readonly #parts: ChildWorkspaceParts;
  #worktree: ChildWorktree | undefined;
  #agent: Agent | undefined;
  #handedBack = 0;
  #changed: readonly string[] | undefined;

  constructor(parts: ChildWorkspaceParts) {
    this.#parts = parts;
    this.#worktree = parts.worktree;
  }

  get isWorktree(): boolean {
    return this.#worktree !== undefined;
  }

  get cwd(): string {
    return this.#worktree?.folders.to ?? this.#parts.options.cwd;
  }

  /** The files it changed, as absolute paths, once it has ended. */
  get changed(): readonly string[] | undefined {
    const top = this.#worktree?.tops.to;
    return top === undefined ? undefined : this.#changed?.map((file) => join(top, file));
  }

  /** What it is told about its worktree, at the end of its directive. */
  get notice(): string | undefined {
    if (!this.#worktree) return undefined;
    const { folders, leftOut } = this.#worktree;
    return worktreeNotice(folders, { isFork: this.#parts.plan.agentType === "fork", leftOut });
  }

  /** The session's options, with the folders that it works in. */
  get options(): AgentOptions {
    const { options } = this.#parts;
    return this.#worktree ? { ...options, cwd: this.cwd, directories: this.#directories(this.#worktree) } : options;
  }

  /** Additional parts of an agent in a worktree. */
  get agentParts(): Pick<AgentParts, "visible" | "move"> {
    return this.#worktree ? { visible: [this.#worktree.repository], move: this.#worktree.tops } : {};
  }

  policy(policy: Policy): Policy {
    return this.#worktree ? movedPolicy(policy, this.#worktree.tops) : policy;
  }

  /** Rewrites a question for a person: with a note if no sandbox bounds the command, and with a rule that stays valid after
   *  the worktree is gone. */
  async rewriteQuestion(question: Question): Promise<Question> {
    if (!this.#worktree) return question;
    const { from, to } = this.#worktree.tops;
    const { rule, touches, notes } = question;
    const isOpen = (touches?.runs ?? []).length > 0 && !(await this.#agent?.world.isBounded());
    const more = `it works in the worktree ${to}, but without the sandbox this command could change ${from} too`;
    return {
      ...question,
      ...(rule === undefined ? {} : { rule: rule.replaceAll(`/${to}/`, `/${from}/`) }),
      notes: isOpen ? [...notes, more] : notes,
    };
  }

  /** From here on the agent may have to move into a worktree. */
  attach(agent: Agent): void {
    this.#agent = agent;
  }

  readonly bounds: WorkBounds = {
    relocate: (call) => this.#worktree && relocateCall(call, this.#worktree.tops, this.#parts.touchesOf),
    begin: async (touches = {}) => this.#mayBegin(touches),
  };

  async settle(end: TaskEnd, answer: string): Promise<readonly string[]> {
    const { claims, plan, isolated } = this.#parts;
    claims.release(plan.task);
    if (!this.#worktree) return [];
    const { notes, files } = await isolated.settle(this.#worktree, { end, answer, label: plan.label });
    this.#changed = files;
    return notes;
  }

  /** A message for it, if its work conflicts with the checkout and it should resolve that itself. */
  async conflicts(): Promise<string | undefined> {
    if (!this.#worktree || this.#handedBack >= MOST_HANDED_BACK) return undefined;
    this.#handedBack += 1;
    return this.#parts.isolated.handBackConflicts(this.#worktree).catch(() => undefined); // its end tells what is wrong
  }

  #directories({ tops }: ChildWorktree): readonly string[] {
    return this.#parts.options.directories.map((folder) => movedPath(folder, tops));
  }

  async #mayBegin(touches: Touches): Promise<string | undefined> {
    if (this.#worktree) return undefined;
    const { plan, claims, options, isolated, moved } = this.#parts;
    const conflict = claims.take(touches, { task: plan.task, label: plan.label, cwd: options.cwd });
    if (!conflict || options.permissions.policy.worktrees.onClaim !== "isolate" || !this.#agent)
      return conflict && claimedText(conflict);
    const { world, guard } = this.#agent;
    const worktree = await isolated
      .create(plan, { siblings: { family: `${plan.task} moves`, tasks: [plan.task] }, signal: this.#parts.signal })
      .catch((error: Error) => error);
    if (worktree instanceof Error)
      return `${claimedText(conflict)} No worktree could be made for you: ${worktree.message}`;
    this.#worktree = worktree;
    const place = { cwd: this.cwd, roots: [this.cwd, ...this.#directories(worktree)] };
    await world.moveTo({ ...place, visible: [worktree.repository] });
    guard.moveTo({ ...place, move: worktree.tops }, this.policy(guard.policy));
    moved();
    return `Not done: ${conflict.path} is being changed by ${conflict.task} (${conflict.label}). So that you are not in each other's way:\n${this.notice}\nDo it there.`;
  }
}

// --- paths and file claims -----------------------------------------------------------------------------------------------

/** Rewrites a call that touches the checkout to touch the worktree. The argument that names the path is found by changing it:
 *  then what the call touches changes too. */
export const relocateCall = (
  call: NamedCall,
  tops: Folders,
  touchesOf: (call: NamedCall) => Touches | undefined,
): { readonly input: string; readonly note: string } | undefined => {
  const before = pathsOf(touchesOf(call));
  const args = before.length === 0 ? undefined : objectIn(call.input);
  for (const [field, path] of Object.entries(args ?? {})) {
    if (typeof path !== "string" || !path.startsWith("/") || !before.includes(path)) continue;
    const plain = resolve(path);
    const moved = movedPath(plain, tops);
    const input = JSON.stringify({ ...args, [field]: moved });
    if (moved === plain || !pathsOf(touchesOf({ ...call, input })).includes(moved)) continue;
    const note = `[${plain} is in the checkout that you were forked from; this is ${moved} in your worktree]`;
    return { input, note };
  }
  return undefined;
};

const pathsOf = ({ reads = [], writes = [] }: Touches = {}): readonly string[] => [...reads, ...writes];

const objectIn = (input: string): JsonObject | undefined => {
  try {
    const value: unknown = JSON.parse(input);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as JsonObject) : undefined;
  } catch {
    return undefined;
  }
};

export type ClaimHolder = { readonly task: string; readonly label: string };

/** Which child writes which file of a shared checkout. A name that ends in a slash is a folder with everything below it. */
export class FileClaims {
  readonly #holders = new Map<string, ClaimHolder>();

  /** Claims the files that a call writes, all or none. Returns the claim of another child, if there is one. */
  take({ writes = [] }: Touches, { cwd, ...holder }: ClaimHolder & { readonly cwd: string }): FileClaim | undefined {
    const names = writes.map((path) => canonical(resolve(cwd, path)) + (path.endsWith("/") ? "/" : ""));
    for (const [claimedPath, other] of this.#holders) {
      const path = other.task === holder.task ? undefined : names.find((name) => overlap(name, claimedPath));
      if (path !== undefined) return { ...other, path };
    }
    for (const path of names) this.#holders.set(path, holder);
    return undefined;
  }

  release(task: string): void {
    for (const [path, holder] of this.#holders) if (holder.task === task) this.#holders.delete(path);
  }
}

const overlap = (one: string, other: string): boolean =>
  one === other ||
  (one.endsWith("/") && `${other}/`.startsWith(one)) ||
  (other.endsWith("/") && `${one}/`.startsWith(other));

export type FileClaim = ClaimHolder & { readonly path: string };

export const claimedText = ({ path, task, label }: FileClaim): string =>
  `Not done: ${path} is being changed by ${task} (${label}), which works beside you, and is free when that has ended. Do the rest of your part, or report what you would have changed here.`;

/** Gives a file one name, whatever links lead to its folder. */
const canonical = (path: string): string => {
  try {
    return join(realpathSync.native(dirname(path)), basename(path));
  } catch {
    return path;
  }
};
