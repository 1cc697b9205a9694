/** How the members of a family are started: each with its budget and its expected cache reads, all from a prefix that
 *  is built once.
 *  Forks of the same bytes wait at the same gate, and the parent's own next request takes its turn at the same gate.
 *  Elsewhere: what asks for them (launcher.ts), bytes and order (../fork: family.ts), running them (runs.ts). */

import { addAbortListener } from "node:events";
import { entryLifetimeMs, growLine, type Ticket, type ToolResultBlock, USUAL_HIT_RATE } from "@prefork/wire";
import type { Account, Lineage, LineageState, NextRequest } from "../agent/index.ts";
import type { EventBody } from "../events.ts";
import {
  FamilyAlarm,
  type FamilyRequest,
  type ForkOptions,
  type GrownFamily,
  growFamily,
  SnapshotGates,
  type StoredFamily,
  type StoredPrefixes,
} from "../fork/index.ts";
import type { Clock, ForkPlan, Siblings } from "../ports.ts";
import type { ChildOrigin } from "./local-host.ts";
import type { RunStart } from "./running.ts";
import type { Runs } from "./runs.ts";

export type FamilyStarterOptions = {
  readonly clock: Clock;
  readonly runs: Pick<Runs, "freePlaces">;
  readonly conditionsFor: (model: string) => Pick<FamilyRequest, "facts" | "ttl" | "insideLastResult" | "diagnoses">;
  /** The session that these are children of. */
  readonly session: string;
  readonly origins: Map<string, ChildOrigin>;
  /** The main line. Its next request is not sent while a leader is unanswered. */
  readonly line: () => Lineage;
  readonly emit: (event: EventBody, agent?: string) => void;
  /** Stores shared prefixes by name, if the provider offers that. */
  readonly stored?: StoredPrefixes;
};

export class FamilyStarter {
  readonly #options: FamilyStarterOptions;
  readonly #gates = new SnapshotGates();
  /** How to send the parent's next request when a program has started forks. */
  #parentRequest: NextRequest | undefined;

  constructor(options: FamilyStarterOptions) {
    this.#options = options;
  }

  /** An agent that starts empty. */
  startEmpty(
    fork: ForkPlan,
    { family: budget, siblings }: Pick<Forking, "family" | "siblings">,
  ): Omit<RunStart, "notifies"> {
    return { child: { fork, siblings, begins: { kind: "empty" } }, budget };
  }

  /** Forks, which continue their parent's bytes. */
  startForks(
    plans: readonly ForkPlan[],
    { parent, lastResult, parentFollows, options, family: above, siblings, startedByProgram }: Forking,
  ): ForkStarts {
    const { clock, conditionsFor, emit, line } = this.#options;
    const [first] = plans;
    if (!first) return NO_FORKS;
    const { tail } = first;
    const now = clock.now();
    const gates = startedByProgram ? this.#gates : undefined;
    const known = conditionsFor(parent.head.model);
    const gate = gates?.of(parent, tail, { now, lifetimeMs: entryLifetimeMs(known.ttl, known.facts) });
    const family = growFamily({
      ...{ parent, lastResult, plans, tail, parentFollows, now, ...known, mayGrow: gates !== undefined },
      places: this.#options.runs.freePlaces,
      ...(gate ? { gate } : {}),
      ...(clock.sleep ? { clock: { wait: clock.sleep, now: clock.now } } : {}),
    });
    gates?.keep(parent, tail, { now, gate: family.gate });
    const reads = plans.reduce((sum, { limits }) => sum + (limits.turns === 1 ? 1 : EXPECTED_TURNS), 0);
    const store = this.#options.stored?.begin({
      ...{ family: first.task, tokens: family.sharedTokens, facts: known.facts, account: above },
      reads: reads + (parentFollows ? 1 : 0),
      hitRate: hitRateOf(parent),
      lines: () => family.children.slice(0, 2).map((words) => growLine(family.shared?.prefix ?? family.base, words)),
    });
    const grown = store ? withStoredPrefix(family, store) : family;
    if (gates) this.#planParentRequest(line(), { parent, grown });
    const { reason, advice } = grown;
    emit({ type: "family_launched", family: first.task, forks: plans.length, reason, advice });
    const alarm = new FamilyAlarm(plans.map(({ task }) => task));
    const from = { session: this.#options.session, hash: grown.base.hash };
    const starts = plans.map((fork, order): Omit<RunStart, "notifies"> => {
      const { filter, signal, onMessage } = options[order] ?? {};
      this.#options.origins.set(fork.task, { fork: { parent, family: grown, order }, filter });
      return {
        child: { fork, siblings, begins: { kind: "fork", from, additions: grown.children[order] ?? [] } },
        budget: above,
        ...{ signal, alarm, expectation: grown.expectations[order] },
        admit: grown.requests[order]?.admit,
        observers: onMessage ? [onMessage].flat() : [],
      };
    });
    return { starts, next: grown.parent, onAllEnded: async () => store?.release(startedByProgram) };
  }

  /** The conversation may continue at any moment, but not while a leader is unanswered. If one of its requests is in flight, or
   *  a family of its own turn has already planned the next one, there is nothing to wait for. */
  #planParentRequest(line: Lineage, { parent, grown }: ParentOfForks): void {
    const { plannedNext: planned, state } = line;
    if (!grown.parent || state.markers !== parent.markers || (planned && planned !== this.#parentRequest)) return;
    this.#parentRequest = { ...grown.parent, isOver: () => grown.gate.isOpen };
    line.planNext(this.#parentRequest);
  }
}

export type ForkStarts = {
  readonly starts: readonly Omit<RunStart, "notifies">[];
  /** How the parent's own next request is sent. */
  readonly next: NextRequest | undefined;
  /** Call this when all forks have ended. */
  readonly onAllEnded: () => Promise<void>;
};

export const NO_FORKS: ForkStarts = { starts: [], next: undefined, onAllEnded: async () => undefined };

/** A fork that may use a tool is expected to use it at least once. */
const EXPECTED_TURNS = 2;

/** The hit rate of this conversation so far, or the usual one. */
const hitRateOf = ({ warmth }: LineageState): number =>
  warmth && warmth.readable > 0 ? warmth.read / warmth.readable : USUAL_HIT_RATE;

/** Once the shared prefix is stored, all members may be sent at once. If storing fails, they are sent as usual. */
const withStoredPrefix = (family: GrownFamily, store: StoredFamily): GrownFamily => {
  const waiting = (request: NextRequest): NextRequest => ({
    ...request,
    admit: async (signal) => ((await storedUnlessAborted(store, signal)) ? NO_WAITING : request.admit(signal)),
  });
  return {
    ...family,
    reason: `all at once, as soon as the shared prefix is stored by name (${store.reason})`,
    requests: family.requests.map(waiting),
    parent: family.parent && waiting(family.parent),
  };
};

const storedUnlessAborted = async ({ ready }: StoredFamily, signal: AbortSignal): Promise<boolean> => {
  const { promise: aborted, resolve } = Promise.withResolvers<false>();
  using _listening = addAbortListener(signal, () => resolve(false));
  return await Promise.race([ready, aborted]);
};

const NO_WAITING: Ticket = { readable: () => undefined, failed: () => undefined };

type Forking = {
  readonly parent: LineageState;
  readonly lastResult: ToolResultBlock | undefined;
  readonly parentFollows: boolean;
  readonly options: readonly ForkOptions[];
  /** The family's shared budget. */
  readonly family: Account;
  readonly siblings: Siblings;
  /** A program requested them, possibly after earlier forks of the same snapshot. */
  readonly startedByProgram: boolean;
};

type ParentOfForks = { readonly parent: LineageState; readonly grown: GrownFamily };
