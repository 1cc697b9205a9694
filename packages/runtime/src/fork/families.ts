/** What do families have in common over the life of a session: their budgets, and the gates at which forks of the same
 *  bytes wait?
 *  All members of a family spend from one account, also when they are resumed later, and what an earlier run of the
 *  session spent counts. Forks of the same bytes pass the same gate for as long as their cache entry lives, so nobody
 *  writes what another is writing. What a family shares may never have been written before a crash: then the first to
 *  be sent marks its end, and all others, the parent's next request included, wait for it.
 *  Elsewhere: starting a family (family.ts), resuming a task and why (../children: launcher.ts). */

import {
  addUsage,
  childTtl,
  entryLifetimeMs,
  type FrozenPrefix,
  familyMarkers,
  LaunchGate,
  type LaunchOrder,
  type Marker,
  type ModelFacts,
  nextMarkers,
  noUsage,
  type Pacing,
  type Ticket,
  type Ttl,
} from "@prefork/wire";
import type { Lineage, LineageState, NextRequest } from "../agent/index.ts";
import { Account } from "../agent/index.ts";
import type { SpendLimits, Spent, TailChoice } from "../ports.ts";
import type { TaskTable } from "../tasks/index.ts";
import { TRANSIT_MS } from "./family.ts";

/** A family that an earlier run of the session left unsent. */
export type UnsentFamily = {
  /** What all members share. */
  readonly shared: FrozenPrefix;
  /** The markers of the parent's last request before the fan-out, and when it was sent. */
  readonly markers: readonly Marker[];
  readonly askedAt: number | undefined;
};

export type FamilyConditions = { readonly facts: ModelFacts | undefined; readonly ttl: Ttl; readonly now: number };

/** Followers wait as long as in a cold family, because the leader may have to write the whole prefix again. */
const ORDER: LaunchOrder = { launch: "leader-first", waitCapMs: 60_000 };

export class ResumedFamilies {
  readonly #gates = new Map<string, LaunchGate>();
  readonly #pacing: () => Pacing | undefined;

  constructor(pacing: () => Pacing | undefined) {
    this.#pacing = pacing;
  }

  /** Waits for the turn of a fork that was never answered. */
  admit(family: string, signal: AbortSignal): Promise<Ticket> {
    return this.#gateOf(family).admit(signal);
  }

  /** Plans the parent's own next request, if it was to follow the family. */
  ofParent(family: string, line: Lineage, { shared, conditions }: Joining): void {
    const { lastSent, askedAt, markers, prefix } = line.state;
    const isSent = lastSent !== undefined && lastSent.byteLength >= shared.byteLength;
    // A request that was sent and not answered already has the markers.
    const isMarked = markers.some(({ role }) => role === "shared");
    if (isSent || !prefix.startsWith(shared)) return; // its context may have been begun anew since
    const unsent = { shared, markers, askedAt };
    const next = this.#request(family, unsent, {
      line: "parent",
      ttl: conditions.ttl,
      cold: isCold(unsent, conditions),
    });
    line.planNext(
      isMarked
        ? { ...next, markers: (grown) => nextMarkers(grown, markers, { ttl: conditions.ttl, unanswered: true }) }
        : next,
    );
  }

  #request(family: string, unsent: UnsentFamily, marking: Marking): NextRequest {
    return { markers: (grown) => markersFor(grown, unsent, marking), admit: (signal) => this.admit(family, signal) };
  }

  #gateOf(family: string): LaunchGate {
    const gate = this.#gates.get(family) ?? new LaunchGate({ ...ORDER, ...this.#pacing() });
    this.#gates.set(family, gate);
    return gate;
  }
}

/** The markers for the first request of a fork that was never answered. */
export const resumedMarkers = (
  grown: FrozenPrefix,
  unsent: UnsentFamily,
  { tail, ...conditions }: FamilyConditions & { readonly tail: boolean },
): readonly Marker[] =>
  markersFor(grown, unsent, { line: "fork", tail, ttl: childTtl(conditions.facts), cold: isCold(unsent, conditions) });

const markersFor = (grown: FrozenPrefix, { shared, markers }: UnsentFamily, marking: Marking): readonly Marker[] =>
  familyMarkers(grown, markers, { ...marking, ...(shared.tip ? { sharedEnd: shared.tip } : {}) });

type Joining = { readonly shared: FrozenPrefix; readonly conditions: FamilyConditions };
type Marking = { readonly line: "fork" | "parent"; readonly tail?: boolean; readonly ttl: Ttl; readonly cold: boolean };

const isCold = ({ askedAt }: UnsentFamily, { ttl, now, facts }: FamilyConditions): boolean =>
  askedAt === undefined || entryLifetimeMs(ttl, facts) - (now - askedAt) < TRANSIT_MS;

/** Forks that a program asks for one by one from the same bytes are one family. The first one leads it. */

type Kept = { readonly key: string; readonly gate: LaunchGate; readonly at: number };

export class SnapshotGates {
  #last: Kept | undefined;

  of(
    parent: LineageState,
    tail: TailChoice,
    { now, lifetimeMs }: { readonly now: number; readonly lifetimeMs: number },
  ): LaunchGate | undefined {
    const last = this.#last;
    return last?.key === keyOf(parent, tail) && now - last.at < lifetimeMs ? last.gate : undefined;
  }

  keep(
    parent: LineageState,
    tail: TailChoice,
    { gate, now }: { readonly gate: LaunchGate; readonly now: number },
  ): void {
    this.#last = { key: keyOf(parent, tail), gate, at: now };
  }
}

const keyOf = ({ prefix }: LineageState, { inFlight, placeholders }: TailChoice): string =>
  `${prefix.hash} ${inFlight} ${placeholders}`;

/** What each family may still spend, however its members were started. */

export type FamilyAccountsOptions = {
  readonly limits: SpendLimits;
  readonly table: TaskTable;
  /** The session's account, from which all families spend. */
  readonly session: () => Account;
};

export class FamilyAccounts {
  readonly #options: FamilyAccountsOptions;
  readonly #kept = new Map<string, Account>();

  constructor(options: FamilyAccountsOptions) {
    this.#options = options;
  }

  /** `family`: the id in the rows of its tasks. */
  of(family: string): Account {
    const known = this.#kept.get(family);
    if (known) return known;
    const account = this.#open(this.#options.table.all.filter((task) => task.family === family).reduce(added, NOTHING));
    this.#kept.set(family, account);
    return account;
  }

  /** For a family without rows, which nobody can resume. */
  unkept(): Account {
    return this.#open(NOTHING);
  }

  #open(spent: Spent): Account {
    const { limits, session } = this.#options;
    return new Account(limits, { spent, above: session() });
  }
}

const NOTHING: Spent = { usage: noUsage, usd: 0 };

const added = (sum: Spent, { spent }: { readonly spent?: Spent }): Spent =>
  spent ? { usage: addUsage(sum.usage, spent.usage), usd: sum.usd + spent.usd } : sum;
