/** What should each request have read from the cache, what did it read, write and cost, and why do they differ? One row
 *  per request. Pure.
 *  Invariant: the rows' usage adds up to everything these journals were billed. What is expected follows from the
 *  provider's reports for earlier requests; if a part had to be estimated, the row says so.
 *  Elsewhere: requests and bytes (requests.ts), what the cache held (entries.ts), totals (explain.ts). */

import {
  anthropic,
  entryLifetimeMs,
  protocols as knownProtocols,
  modelFacts,
  noUsage,
  type Protocol,
  promptTokens,
  type Usage,
} from "@prefork/wire";
import {
  type CacheEntries,
  type CacheEntry,
  cachedTokens,
  findNamedEntry,
  inferEntries,
  type NamedEntry,
  namedEntries,
  type PrefixLength,
} from "./entries.ts";
import { type Families, type FamilyRole, familiesOf, sharedTokens } from "./families.ts";
import {
  type Addresses,
  addressesOf,
  type CacheLookup,
  findMissReason,
  type MissReason,
  moveReason,
  type UnwrittenPrefix,
} from "./miss-reason.ts";
import {
  type BilledUsage,
  changeSinceLast,
  reportedUsage,
  requestsOf,
  type SentRequest,
  unjournalledBills,
} from "./requests.ts";
import { type AgentJournal, type AgentTimeline, timelinesOf } from "./timeline.ts";

export type RequestRow = {
  /** `main`, or the id of a task. */
  readonly agent: string;
  readonly session: string;
  /** `aside`: a side request, for a summary or to keep the cache alive. `unkept`: all requests of a fork that keeps
   *  no entries, or an interrupted summary. `stored`, `storage`: an entry by name was created, and kept for some
   *  time. */
  readonly kind: SentRequest["kind"] | "unkept" | "stored" | "storage";
  readonly turn: number;
  readonly at: number;
  readonly model: string;
  /** The service tier that it asked for, if that has its own price. */
  readonly speed?: string;
  readonly epoch: number;
  /** False: interrupted or still in flight. If its answer had begun, the usage is what that took; otherwise it is
   *  zero. */
  readonly isAnswered: boolean;
  /** The provider's id of the answer. */
  readonly answer?: string;
  /** Tokens that it should have read. */
  readonly expected: number;
  /** How many of them no provider has counted. */
  readonly estimated: number;
  /** All tokens that were ever written for it. */
  readonly writtenBefore: number;
  readonly usage: Usage;
  readonly usd?: number;
  readonly cause: MissReason;
  /** For the first requests of a family. */
  readonly family?: FamilyRole & {
    /** Tokens that all siblings share (P + S), and those of them that the parent had written before (P). */
    readonly shared: number;
    readonly inherited: number;
  };
};

export const ledgerOf = (journals: readonly AgentJournal[], protocols?: readonly Protocol[]): readonly RequestRow[] => {
  const lines = timelinesOf(journals, protocols);
  const requests = requestsOf(lines);
  const entries = inferEntries(requests);
  const families = familiesOf(requests, entries);
  const named = namedEntries(journals);
  const context: LedgerContext = { entries, families, named, addressAt: addressesOf(journals), protocols };
  const rows = requests.flatMap((request) => {
    const row = rowOf(request, context);
    return request.answer && request.interrupted ? [interruptedRow(row, request.interrupted), row] : [row];
  });
  const unkept = [...lines.values()].flatMap(unjournalledRows);
  return unkept.length === 0 ? rows : [...rows, ...unkept].toSorted((one, other) => one.at - other.at);
};

type LedgerContext = {
  readonly entries: CacheEntries;
  readonly families: Families;
  readonly named: readonly NamedEntry[];
  readonly addressAt: Addresses;
  readonly protocols: readonly Protocol[] | undefined;
};

const unjournalledRows = (line: AgentTimeline): readonly RequestRow[] =>
  unjournalledBills(line).map(({ usage, usd, at, seq, kind }) => {
    const { epoch } = line.at(seq) ?? {};
    const { agent, session } = line.journal;
    return {
      ...{ agent, session, kind, turn: 0, at, model: epoch?.head.model ?? "", epoch: epoch?.epoch ?? 0 },
      ...{ isAnswered: true, expected: usage.read, estimated: 0, writtenBefore: usage.read, usage },
      ...(usd === undefined ? {} : { usd }),
      cause: { kind: "none" },
    };
  });

/** Interrupted attempts at a request that was answered in the end are billed too. */
const interruptedRow = (row: RequestRow, { usage, usd }: BilledUsage): RequestRow => {
  const { answer: _answer, family: _family, usd: _usd, ...rest } = row;
  return { ...rest, isAnswered: false, usage, ...(usd === undefined ? {} : { usd }), cause: { kind: "none" } };
};

const rowOf = (request: SentRequest, context: LedgerContext): RequestRow => {
  const { agent, session, kind, turn, askedAt: at, model, answer, point } = request;
  const { usage, usd } = reportedUsage(request) ?? { usage: noUsage };
  const { speed } = point.epoch?.head.settings ?? {};
  const lookup = lookUpCache(request, context);
  const role = context.families.roleOf(request);
  const before = request.previous?.answer;
  const family = role && {
    ...role,
    shared: sharedTokens(request, context.entries),
    inherited: before ? cachedTokens(before.usage) : 0,
  };
  return {
    ...{ agent, session, kind, turn, at, model, epoch: point.epoch?.epoch ?? 0, isAnswered: answer !== undefined },
    ...(answer ? { answer: answer.id } : {}),
    ...{ expected: lookup.expected, estimated: lookup.estimated, writtenBefore: lookup.written },
    usage,
    ...(speed === undefined ? {} : { speed }),
    ...(usd === undefined ? {} : { usd }),
    cause: answer ? findMissReason({ ...lookup, request, answer, ...(role ? { role } : {}) }) : { kind: "none" },
    ...(family ? { family } : {}),
  };
};

const lookUpCache = (request: SentRequest, context: LedgerContext): CacheLookup => {
  const { entries, families, named: all, addressAt } = context;
  const here = addressAt(request.askedAt);
  const movedFrom = (at: number | undefined): MissReason | undefined =>
    at === undefined ? undefined : moveReason(addressAt(at), here);
  let best: CacheEntry | undefined;
  let live: CacheEntry | undefined;
  for (const entry of entries.on(request, (writer) => families.canRead(request, writer))) {
    best ??= entry;
    if (entry.expiresAt <= request.askedAt || movedFrom(entry.usedAt)) continue;
    live = entry;
    break;
  }
  const changed = changeSinceLast(request);
  const moved = movedFrom(best?.usedAt ?? request.previous?.askedAt);
  const lost = changed ? lostToChange(request) : { written: 0, expected: 0 };
  const named = findNamedEntry(request, all);
  const unwritten = best || changed || named || moved ? undefined : findUnwritten(request, context);
  const counted = Math.max(lost.expected, named?.tokens ?? 0);
  const guessed = live ?? unwritten?.length;
  const expected = Math.max(guessed?.tokens ?? 0, counted);
  const written = Math.max(best?.tokens ?? 0, lost.written, expected);
  const estimated = expected > counted ? (guessed?.estimated ?? 0) : 0;
  return {
    ...{ written, expected, estimated },
    ...(moved ? { moved } : {}),
    ...(unwritten ? { unwritten } : {}),
    ...(best ? { best } : {}),
    ...(live ? { live } : {}),
    ...(changed ? { changed } : {}),
    ...(named ? { named } : {}),
  };
};

/** What the previous request had written, and what of it was still alive. Other bytes cannot read it. */
const lostToChange = ({ previous, askedAt, model }: SentRequest): Pick<CacheLookup, "written" | "expected"> => {
  if (!previous?.answer) return { written: 0, expected: 0 };
  const written = cachedTokens(previous.answer.usage);
  const ttl = previous.markers?.at(-1)?.ttl ?? "5m";
  return { written, expected: askedAt - previous.askedAt < entryLifetimeMs(ttl, modelFacts(model)) ? written : 0 };
};

/** Set if the previous request was long enough to be cached, but no report says that it was. A provider with a price
 *  for writing reports what it wrote; with others, only a later read shows it. */
const findUnwritten = (
  { previous, askedAt, model }: SentRequest,
  { protocols = knownProtocols }: Pick<LedgerContext, "protocols">,
): (UnwrittenPrefix & { readonly length: PrefixLength | undefined }) | undefined => {
  const facts = modelFacts(model);
  if (!previous?.answer || cachedTokens(previous.answer.usage) > 0) return undefined;
  const tokens = promptTokens(previous.answer.usage);
  const { name, pacing, unreportedReads } = protocols.find((one) => one.name === previous.point.epoch?.protocol) ?? {};
  const isReported = facts ? Object.keys(facts.prices.write).length > 0 : name === anthropic.name;
  // Implicit caching is not promised by a provider that sells guaranteed storage.
  const isPromised = isReported || (facts !== undefined && facts.storage === undefined);
  if (tokens < (facts?.minimumPrefix ?? 1) || !isPromised || unreportedReads !== undefined) return undefined;
  const ttl = previous.markers?.at(-1)?.ttl ?? "5m";
  const isKept = askedAt - previous.askedAt < entryLifetimeMs(ttl, facts);
  const isBuilt = askedAt - previous.answer.at >= (pacing?.settleMs ?? 0);
  return { tokens, isReported, length: isKept && isBuilt ? { tokens, estimated: tokens } : undefined };
};
