/** The place that one child works in: its parent's checkout, shared with its siblings, or a copy of its own.
 *  Invariant: it is in one of the two at any time, and guard, tools and files agree on which; what it was is settled once.
 *  Elsewhere: copies (isolation.ts), paths and claims (bounds.ts), composing a child (children.ts). */

import { join } from "node:path";
import type { Policy, Touches } from "@prefork/guard";
import { movedPath, movedPolicy } from "@prefork/guard/internal";
import type { Agent, AgentOptions, AgentParts, Bounds } from "../agent/index.ts";
import type { ForkPlan, Question, TaskEnd } from "../ports.ts";
import type { Registry } from "../tools/index.ts";
import { heldText, relocated, type WriteClaims } from "./bounds.ts";
import type { IsolatedWork, Placed } from "./isolation.ts";
import { worktreeNotice } from "./worktree-notice.ts";

export type ChildPlaceParts = {
  readonly plan: ForkPlan;
  readonly options: AgentOptions;
  readonly isolated: IsolatedWork;
  readonly claims: WriteClaims;
  readonly touchesOf: Registry["touches"];
  /** Told when it moves into a copy while it works. */
  readonly moved: () => void;
  readonly placed?: Placed | undefined;
  readonly signal: AbortSignal;
};

/** Times that conflicts are given back to who made them. */
const MOST_HANDED_BACK = 2;

export class ChildPlace {
  readonly #parts: ChildPlaceParts;
  #placed: Placed | undefined;
  #agent: Agent | undefined;
  #handedBack = 0;
  #changed: readonly string[] | undefined;

  constructor(parts: ChildPlaceParts) {
    this.#parts = parts;
    this.#placed = parts.placed;
  }

  get isOwn(): boolean {
    return this.#placed !== undefined;
  }

  get cwd(): string {
    return this.#placed?.folders.to ?? this.#parts.options.cwd;
  }

  /** What it differs in from what it began with, once it has ended: absolute. */
  get changed(): readonly string[] | undefined {
    const top = this.#placed?.tops.to;
    return top === undefined ? undefined : this.#changed?.map((file) => join(top, file));
  }

  /** Said at the end of what it is given. */
  get notice(): string | undefined {
    if (!this.#placed) return undefined;
    const { folders, leftOut } = this.#placed;
    return worktreeNotice(folders, { isFork: this.#parts.plan.agentType === "fork", leftOut });
  }

  /** The session's options, as they are from here. */
  get options(): AgentOptions {
    const { options } = this.#parts;
    return this.#placed ? { ...options, cwd: this.cwd, directories: this.#directories(this.#placed) } : options;
  }

  /** What an agent in a copy is made with beside. */
  get making(): Pick<AgentParts, "visible" | "move"> {
    return this.#placed ? { visible: [this.#placed.repository], move: this.#placed.tops } : {};
  }

  policy(policy: Policy): Policy {
    return this.#placed ? movedPolicy(policy, this.#placed.tops) : policy;
  }

  /** A question of it as a person should read it: with what is not bounded, and with a rule that outlives the copy. */
  async asked(question: Question): Promise<Question> {
    if (!this.#placed) return question;
    const { from, to } = this.#placed.tops;
    const { rule, touches, notes } = question;
    const isOpen = (touches?.runs ?? []).length > 0 && !(await this.#agent?.world.isBounded());
    const more = `it works in the worktree ${to}, but without the sandbox this command could change ${from} too`;
    return {
      ...question,
      ...(rule === undefined ? {} : { rule: rule.replaceAll(`/${to}/`, `/${from}/`) }),
      notes: isOpen ? [...notes, more] : notes,
    };
  }

  /** From here on it may have to move. */
  livesIn(agent: Agent): void {
    this.#agent = agent;
  }

  readonly bounds: Bounds = {
    relocate: (call) => this.#placed && relocated(call, this.#placed.tops, this.#parts.touchesOf),
    begin: async (touches = {}) => this.#mayBegin(touches),
  };

  async settle(end: TaskEnd, said: string): Promise<readonly string[]> {
    const { claims, plan, isolated } = this.#parts;
    claims.release(plan.task);
    if (!this.#placed) return [];
    const { notes, files } = await isolated.settle(this.#placed, { end, said, label: plan.label });
    this.#changed = files;
    return notes;
  }

  /** Words for it, where its work does not fit the checkout any more and is to be put right by itself. */
  async conflicts(): Promise<string | undefined> {
    if (!this.#placed || this.#handedBack >= MOST_HANDED_BACK) return undefined;
    this.#handedBack += 1;
    return this.#parts.isolated.handedBack(this.#placed).catch(() => undefined); // its end tells what is wrong
  }

  #directories({ tops }: Placed): readonly string[] {
    return this.#parts.options.directories.map((folder) => movedPath(folder, tops));
  }

  async #mayBegin(touches: Touches): Promise<string | undefined> {
    if (this.#placed) return undefined;
    const { plan, claims, options, isolated, moved } = this.#parts;
    const held = claims.take(touches, { task: plan.task, label: plan.label, cwd: options.cwd });
    if (!held || options.permissions.policy.worktrees.onClaim !== "isolate" || !this.#agent)
      return held && heldText(held);
    const { world, guarding } = this.#agent;
    const placed = await isolated
      .place(plan, { siblings: { family: `${plan.task} moves`, tasks: [plan.task] }, signal: this.#parts.signal })
      .catch((error: Error) => error);
    if (placed instanceof Error) return `${heldText(held)} No worktree could be made for you: ${placed.message}`;
    this.#placed = placed;
    const place = { cwd: this.cwd, roots: [this.cwd, ...this.#directories(placed)] };
    await world.moveTo({ ...place, visible: [placed.repository] });
    guarding.moveTo({ ...place, move: placed.tops }, this.policy(guarding.policy));
    moved();
    return `Not done: ${held.path} is being changed by ${held.task} (${held.label}). So that you are not in each other's way:\n${this.notice}\nDo it there.`;
  }
}
