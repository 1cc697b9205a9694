/** How the members of a family are started: each with its account and what it should read, all from bytes that are grown
 *  once.
 *  Invariant: forks from the same bytes pass the same gate, and the parent's own next request is sent in their order.
 *  Elsewhere: who asks for them (host.ts), bytes and order (family.ts), running them (runs.ts). */

import { livesMs, type ToolResultBlock } from "@prefork/wire";
import type { EventBody } from "../events.ts";
import { Account, type Lineage, type LineageState, type NextRequest } from "../loop/index.ts";
import type { Clock } from "../ports.ts";
import { type Entering, type FamilyStart, type GrownFamily, growFamily } from "./family.ts";
import type { ForkPlan } from "./plan.ts";
import type { ForkOptions } from "./request.ts";
import type { Child, ChildTold, RunStart } from "./running.ts";
import { SnapshotGates } from "./snapshot-gates.ts";

/** What a fork is opened with. */
export type ForkStart = {
  readonly plan: ForkPlan;
  /** The parent's line, at the point that the child goes on from. */
  readonly parent: LineageState;
  readonly family: GrownFamily;
  readonly place: number;
  readonly words: readonly Entering[];
  readonly account: Account;
  readonly options: Pick<ForkOptions, "filter">;
  readonly told: ChildTold;
};

export type AgentStart = { readonly plan: ForkPlan; readonly account: Account; readonly told: ChildTold };

export type FamilyStartsOptions = {
  readonly clock: Clock;
  readonly around: (model: string) => Pick<FamilyStart, "facts" | "ttl" | "insideLastResult" | "diagnoses">;
  readonly openFork: (start: ForkStart) => Promise<Child>;
  readonly openAgent: (start: AgentStart) => Promise<Child>;
  /** The main line: its next request is not sent beside a leader that is not answered. */
  readonly line: () => Lineage;
  readonly emit: (event: EventBody, agent?: string) => void;
};

export class FamilyStarts {
  readonly #options: FamilyStartsOptions;
  readonly #gates = new SnapshotGates();
  /** How the conversation's next request is sent after forks of a program. */
  #left: NextRequest | undefined;

  constructor(options: FamilyStartsOptions) {
    this.#options = options;
  }

  /** One that starts empty. */
  agent(plan: ForkPlan, family: Account): Omit<RunStart, "notifies"> {
    const account = new Account(plan.limits, { above: family });
    return { plan, open: (told) => this.#options.openAgent({ plan, account, told }) };
  }

  /** Those that go on from their parent's bytes. */
  forks(
    plans: readonly ForkPlan[],
    { parent, held, parentFollows, options, family: above, isPrograms }: Forking,
  ): ForkStarts {
    const { clock, around, emit, openFork, line } = this.#options;
    const [first] = plans;
    if (!first) return NO_FORKS;
    const { tail } = first;
    const now = clock.now();
    const gates = isPrograms ? this.#gates : undefined;
    const known = around(parent.head.model);
    const gate = gates?.of(parent, tail, { now, lifetimeMs: livesMs(known.ttl, known.facts) });
    const grown = growFamily({
      ...{ parent, held, plans, tail, parentFollows, now, ...known, mayGrow: gates !== undefined },
      ...(gate ? { gate } : {}),
      ...(clock.sleep ? { edge: { wait: clock.sleep, now: clock.now } } : {}),
    });
    gates?.keep(parent, tail, { now, gate: grown.gate });
    if (gates) this.#leave(line(), { parent, grown });
    const { reason, advice } = grown;
    emit({ type: "family_launched", family: first.task, forks: plans.length, reason, advice });
    const starts = plans.map((plan, place): Omit<RunStart, "notifies"> => {
      const { filter, signal, onMessage } = options[place] ?? {};
      const account = new Account(plan.limits, { above });
      const words = grown.children[place] ?? [];
      const expectation = grown.expectations[place];
      const start = { plan, parent, family: grown, place, words, account, options: filter ? { filter } : {} };
      return {
        plan,
        open: (told) => openFork({ ...start, told }),
        ...(expectation ? { expectation } : {}),
        ...(signal ? { signal } : {}),
        ...(onMessage ? { observers: [onMessage].flat() } : {}),
      };
    });
    return { starts, next: grown.parent };
  }

  /** The conversation may go on at any moment: not beside a leader that is not answered. Where a request of it is under
   *  way, or a family of its own turn has another order for the next one, there is nothing to wait for here. */
  #leave(line: Lineage, { parent, grown }: Left): void {
    const { planned, state } = line;
    if (!grown.parent || state.markers !== parent.markers || (planned && planned !== this.#left)) return;
    this.#left = { ...grown.parent, isOver: () => grown.gate.isOpen };
    line.plan(this.#left);
  }
}

export type ForkStarts = {
  readonly starts: readonly Omit<RunStart, "notifies">[];
  /** How the parent's own next request is sent. */
  readonly next: NextRequest | undefined;
};

export const NO_FORKS: ForkStarts = { starts: [], next: undefined };

type Forking = {
  readonly parent: LineageState;
  readonly held: ToolResultBlock | undefined;
  readonly parentFollows: boolean;
  readonly options: readonly ForkOptions[];
  /** What all of them take from. */
  readonly family: Account;
  /** Then others may have been asked for before them, from the same bytes. */
  readonly isPrograms: boolean;
};

type Left = { readonly parent: LineageState; readonly grown: GrownFamily };
