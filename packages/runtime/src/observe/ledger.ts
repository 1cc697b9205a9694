/** One row a request: what it should have read, what it read, wrote and cost, and why they differ. Pure.
 *  Invariant: the rows' usage sums to all that these journals were billed; what is expected comes from what the provider
 *  reported for earlier requests, and where a part of it had to be estimated the row says so.
 *  Elsewhere: requests and bytes (requests.ts), what the cache held (entries.ts), totals (explain.ts). */

import { LIFETIME_MS, noUsage, type Protocol, type Usage } from "@prefork/wire";
import type { ShortfallCause } from "./cause.ts";
import { type Entries, type Entry, entriesOf, keptTokens } from "./entries.ts";
import { type Families, type FamilyRole, familiesOf, sharedTokens } from "./families.ts";
import { type Found, findCause } from "./find-cause.ts";
import { type AgentJournal, linesOf } from "./line.ts";
import { changeBefore, requestsOf, type SentRequest } from "./requests.ts";

export type LedgerRow = {
  /** `main`, or the id of a task. */
  readonly agent: string;
  readonly session: string;
  /** `aside`: a summary or a keep-alive, sent beside the conversation. */
  readonly kind: SentRequest["kind"];
  readonly turn: number;
  readonly at: number;
  readonly model: string;
  readonly epoch: number;
  /** False: broken off or still under way. What it cost is not known, and counted as nothing. */
  readonly isAnswered: boolean;
  /** The provider's name for the answer. */
  readonly answer?: string;
  /** Tokens that it should have read. */
  readonly expected: number;
  /** How many of them no provider has counted. */
  readonly estimated: number;
  /** Tokens that had been written for it, whatever became of them. */
  readonly writtenBefore: number;
  readonly usage: Usage;
  readonly usd?: number;
  readonly cause: ShortfallCause;
  /** Of a family's first requests. */
  readonly family?: FamilyRole & {
    /** Tokens that all siblings share (P + S), and those of them that the parent had written before (P). */
    readonly shared: number;
    readonly inherited: number;
  };
};

export const ledgerOf = (journals: readonly AgentJournal[], protocols?: readonly Protocol[]): readonly LedgerRow[] => {
  const requests = requestsOf(linesOf(journals, protocols));
  const entries = entriesOf(requests);
  const families = familiesOf(requests, entries);
  return requests.map((request) => rowOf(request, { entries, families }));
};

type Around = { readonly entries: Entries; readonly families: Families };

const rowOf = (request: SentRequest, around: Around): LedgerRow => {
  const { agent, session, kind, turn, askedAt: at, model, answer, point } = request;
  const usage = answer?.usage ?? noUsage;
  const found = lookUp(request, around);
  const role = around.families.roleOf(request);
  const before = request.goesOnFrom?.answer;
  const family = role && {
    ...role,
    shared: sharedTokens(request, around.entries),
    inherited: before ? keptTokens(before.usage) : 0,
  };
  return {
    ...{ agent, session, kind, turn, at, model, epoch: point.epoch?.epoch ?? 0, isAnswered: answer !== undefined },
    ...(answer ? { answer: answer.id } : {}),
    ...{ expected: found.expected, estimated: found.estimated, writtenBefore: found.written },
    usage,
    ...(answer?.usd === undefined ? {} : { usd: answer.usd }),
    cause: answer ? findCause({ ...found, request, answer, ...(role ? { role } : {}) }) : { kind: "none" },
    ...(family ? { family } : {}),
  };
};

const lookUp = (request: SentRequest, { entries, families }: Around): Found => {
  let best: Entry | undefined;
  let live: Entry | undefined;
  for (const entry of entries.on(request, (writer) => families.canRead(request, writer))) {
    best ??= entry;
    if (entry.expiresAt <= request.askedAt) continue;
    live = entry;
    break;
  }
  const changed = changeBefore(request);
  const lost = changed ? lostBy(request) : { written: 0, expected: 0 };
  const expected = Math.max(live?.tokens ?? 0, lost.expected);
  const written = Math.max(best?.tokens ?? 0, lost.written, expected);
  const estimated = expected > lost.expected ? (live?.estimated ?? 0) : 0;
  return {
    ...{ written, expected, estimated },
    ...(best ? { best } : {}),
    ...(live ? { live } : {}),
    ...(changed ? { changed } : {}),
  };
};

/** What the request before had written, and what of it was still there: other bytes cannot read it. */
const lostBy = ({ goesOnFrom, askedAt }: SentRequest): Pick<Found, "written" | "expected"> => {
  if (!goesOnFrom?.answer) return { written: 0, expected: 0 };
  const written = keptTokens(goesOnFrom.answer.usage);
  const ttl = goesOnFrom.markers?.at(-1)?.ttl ?? "5m";
  return { written, expected: askedAt - goesOnFrom.askedAt < LIFETIME_MS[ttl] ? written : 0 };
};
