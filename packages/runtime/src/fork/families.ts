/** How are forks sent that an earlier life of the session left before their first answer?
 *  Invariant: what a family shares may never have been written, so whoever is sent first marks its end and all others
 *  wait for that; so does the parent's next request, where it has not been sent since.
 *  Elsewhere: forks that are started (family.ts), what is woken and why (../children: host.ts). */

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

/** What an earlier life left to go on from. */
export type UnsentFamily = {
  /** What all of the family share. */
  readonly shared: FrozenPrefix;
  /** Of the parent's last request before the fan-out, and when that was sent. */
  readonly markers: readonly Marker[];
  readonly askedAt: number | undefined;
};

export type FamilyConditions = { readonly facts: ModelFacts | undefined; readonly ttl: Ttl; readonly now: number };

/** As long as cold followers wait: what the leader has to write again may be the whole prefix. */
const ORDER: LaunchOrder = { launch: "leader-first", waitCapMs: 60_000 };

export class ResumedFamilies {
  readonly #gates = new Map<string, LaunchGate>();
  readonly #pacing: () => Pacing | undefined;

  constructor(pacing: () => Pacing | undefined) {
    this.#pacing = pacing;
  }

  /** For the first request of a fork that was never answered. */
  admit(family: string, signal: AbortSignal): Promise<Ticket> {
    return this.#gateOf(family).admit(signal);
  }

  /** The parent's own next one, where it was to follow the family. */
  ofParent(family: string, line: Lineage, { shared, around }: Joining): void {
    const { asked, askedAt, markers, prefix } = line.state;
    const isSent = asked !== undefined && asked.byteLength >= shared.byteLength;
    // Of a request that was sent and not answered, the markers are there already.
    const isMarked = markers.some(({ role }) => role === "shared");
    if (isSent || !prefix.startsWith(shared)) return; // its context may have been begun anew since
    const left = { shared, markers, askedAt };
    const next = this.#request(family, left, { line: "parent", ttl: around.ttl, cold: isCold(left, around) });
    line.planNext(
      isMarked
        ? { ...next, markers: (grown) => nextMarkers(grown, markers, { ttl: around.ttl, unanswered: true }) }
        : next,
    );
  }

  #request(family: string, left: UnsentFamily, marking: Marking): NextRequest {
    return { markers: (grown) => markersFor(grown, left, marking), admit: (signal) => this.admit(family, signal) };
  }

  #gateOf(family: string): LaunchGate {
    const gate = this.#gates.get(family) ?? new LaunchGate({ ...ORDER, ...this.#pacing() });
    this.#gates.set(family, gate);
    return gate;
  }
}

/** Of the first request of a fork that was never answered. */
export const resumedMarkers = (
  grown: FrozenPrefix,
  left: UnsentFamily,
  { tail, ...around }: FamilyConditions & { readonly tail: boolean },
): readonly Marker[] =>
  markersFor(grown, left, { line: "fork", tail, ttl: childTtl(around.facts), cold: isCold(left, around) });

const markersFor = (grown: FrozenPrefix, { shared, markers }: UnsentFamily, marking: Marking): readonly Marker[] =>
  familyMarkers(grown, markers, { ...marking, ...(shared.tip ? { sharedEnd: shared.tip } : {}) });

type Joining = { readonly shared: FrozenPrefix; readonly around: FamilyConditions };
type Marking = { readonly line: "fork" | "parent"; readonly tail?: boolean; readonly ttl: Ttl; readonly cold: boolean };

const isCold = ({ askedAt }: UnsentFamily, { ttl, now, facts }: FamilyConditions): boolean =>
  askedAt === undefined || entryLifetimeMs(ttl, facts) - (now - askedAt) < TRANSIT_MS;

/** Forks that a program asks for one by one from the same bytes are one family: who leads it?
 *  Invariant: from the same bytes and for as long as their entry lives, all pass the same gate; nobody writes again what the
 *  first one is writing.
 *  Elsewhere: the gate (@prefork/wire), families of one turn (family.ts). */

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

/** What each family may still spend, however its members were started.
 *  Invariant: all of a family take from one account, those that are woken later too; where an earlier life of the session
 *  started it, what it spent then counts.
 *  Elsewhere: holding and settling (../agent), who starts a family (../children: host.ts). */

export type FamilyAccountsOptions = {
  readonly limits: SpendLimits;
  readonly table: TaskTable;
  /** The session's, which all families take from. */
  readonly session: () => Account;
};

export class FamilyAccounts {
  readonly #options: FamilyAccountsOptions;
  readonly #kept = new Map<string, Account>();

  constructor(options: FamilyAccountsOptions) {
    this.#options = options;
  }

  /** `family`: as its tasks name it. */
  of(family: string): Account {
    const known = this.#kept.get(family);
    if (known) return known;
    const account = this.#open(this.#options.table.all.filter((task) => task.family === family).reduce(added, NOTHING));
    this.#kept.set(family, account);
    return account;
  }

  /** For a family without any row, which nobody can wake. */
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
