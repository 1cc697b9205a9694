/** One row a request: what it should have read, what it read, wrote and cost, and why they differ. Pure.
 *  Invariant: the rows' usage sums to all that these journals were billed; what is expected comes from what the provider
 *  reported for earlier requests, and where a part of it had to be estimated the row says so.
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
  type Addresses,
  addressesOf,
  type Found,
  findCause,
  movedSince,
  type ShortfallCause,
  type Unwritten,
} from "./cause.ts";
import {
  type Entries,
  type Entry,
  entriesOf,
  keptTokens,
  type Length,
  type NamedEntry,
  namedEntries,
  namedFor,
} from "./entries.ts";
import { type Families, type FamilyRole, familiesOf, sharedTokens } from "./families.ts";
import { type AgentJournal, type Line, linesOf } from "./line.ts";
import { type Billed, changeBefore, reportOf, requestsOf, type SentRequest, unkeptIn } from "./requests.ts";

export type RequestRow = {
  /** `main`, or the id of a task. */
  readonly agent: string;
  readonly session: string;
  /** `aside`: a summary or a keep-alive, sent beside the conversation. `unkept`: all requests of a fork that keeps no
   *  entries, or a summary that broke off. `stored`, `storage`: an entry by name was created, and held. */
  readonly kind: SentRequest["kind"] | "unkept" | "stored" | "storage";
  readonly turn: number;
  readonly at: number;
  readonly model: string;
  /** The class of service that it asked for, where that has a price of its own. */
  readonly speed?: string;
  readonly epoch: number;
  /** False: broken off or still under way. Where its answer had begun, the usage is what that took; else it is none. */
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

export const ledgerOf = (journals: readonly AgentJournal[], protocols?: readonly Protocol[]): readonly RequestRow[] => {
  const lines = linesOf(journals, protocols);
  const requests = requestsOf(lines);
  const entries = entriesOf(requests);
  const families = familiesOf(requests, entries);
  const named = namedEntries(journals);
  const around: Around = { entries, families, named, addressAt: addressesOf(journals), protocols };
  const rows = requests.flatMap((request) => {
    const row = rowOf(request, around);
    return request.answer && request.broken ? [brokenRow(row, request.broken), row] : [row];
  });
  const unkept = [...lines.values()].flatMap(unkeptRows);
  return unkept.length === 0 ? rows : [...rows, ...unkept].toSorted((one, other) => one.at - other.at);
};

type Around = {
  readonly entries: Entries;
  readonly families: Families;
  readonly named: readonly NamedEntry[];
  readonly addressAt: Addresses;
  readonly protocols: readonly Protocol[] | undefined;
};

const unkeptRows = (line: Line): readonly RequestRow[] =>
  unkeptIn(line).map(({ usage, usd, at, seq, kind }) => {
    const { epoch } = line.at(seq) ?? {};
    const { agent, session } = line.journal;
    return {
      ...{ agent, session, kind, turn: 0, at, model: epoch?.head.model ?? "", epoch: epoch?.epoch ?? 0 },
      ...{ isAnswered: true, expected: usage.read, estimated: 0, writtenBefore: usage.read, usage },
      ...(usd === undefined ? {} : { usd }),
      cause: { kind: "none" },
    };
  });

/** Of attempts at a request that was answered in the end: what they took is on the bill too. */
const brokenRow = (row: RequestRow, { usage, usd }: Billed): RequestRow => {
  const { answer: _answer, family: _family, usd: _usd, ...rest } = row;
  return { ...rest, isAnswered: false, usage, ...(usd === undefined ? {} : { usd }), cause: { kind: "none" } };
};

const rowOf = (request: SentRequest, around: Around): RequestRow => {
  const { agent, session, kind, turn, askedAt: at, model, answer, point } = request;
  const { usage, usd } = reportOf(request) ?? { usage: noUsage };
  const { speed } = point.epoch?.head.settings ?? {};
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
    ...(speed === undefined ? {} : { speed }),
    ...(usd === undefined ? {} : { usd }),
    cause: answer ? findCause({ ...found, request, answer, ...(role ? { role } : {}) }) : { kind: "none" },
    ...(family ? { family } : {}),
  };
};

const lookUp = (request: SentRequest, around: Around): Found => {
  const { entries, families, named: all, addressAt } = around;
  const here = addressAt(request.askedAt);
  const movedFrom = (at: number | undefined): ShortfallCause | undefined =>
    at === undefined ? undefined : movedSince(addressAt(at), here);
  let best: Entry | undefined;
  let live: Entry | undefined;
  for (const entry of entries.on(request, (writer) => families.canRead(request, writer))) {
    best ??= entry;
    if (entry.expiresAt <= request.askedAt || movedFrom(entry.usedAt)) continue;
    live = entry;
    break;
  }
  const changed = changeBefore(request);
  const moved = movedFrom(best?.usedAt ?? request.goesOnFrom?.askedAt);
  const lost = changed ? lostBy(request) : { written: 0, expected: 0 };
  const named = namedFor(request, all);
  const unwritten = best || changed || named || moved ? undefined : unwrittenBefore(request, around);
  const counted = Math.max(lost.expected, named?.tokens ?? 0);
  const guessed = live ?? unwritten?.found;
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

/** What the request before had written, and what of it was still there: other bytes cannot read it. */
const lostBy = ({ goesOnFrom, askedAt, model }: SentRequest): Pick<Found, "written" | "expected"> => {
  if (!goesOnFrom?.answer) return { written: 0, expected: 0 };
  const written = keptTokens(goesOnFrom.answer.usage);
  const ttl = goesOnFrom.markers?.at(-1)?.ttl ?? "5m";
  return { written, expected: askedAt - goesOnFrom.askedAt < entryLifetimeMs(ttl, modelFacts(model)) ? written : 0 };
};

/** The request before it was long enough to be kept, and no report says that it was: one that has a price for writing
 *  tells what it wrote, others leave it to be seen by who reads it. */
const unwrittenBefore = (
  { goesOnFrom, askedAt, model }: SentRequest,
  { protocols = knownProtocols }: Pick<Around, "protocols">,
): (Unwritten & { readonly found: Length | undefined }) | undefined => {
  const facts = modelFacts(model);
  if (!goesOnFrom?.answer || keptTokens(goesOnFrom.answer.usage) > 0) return undefined;
  const tokens = promptTokens(goesOnFrom.answer.usage);
  const {
    name,
    pacing,
    unreportedReads: untoldReads,
  } = protocols.find((one) => one.name === goesOnFrom.point.epoch?.protocol) ?? {};
  const isTold = facts ? Object.keys(facts.prices.write).length > 0 : name === anthropic.name;
  // What is kept without being asked for is promised by nobody where keeping it for certain is sold.
  const isPromised = isTold || (facts !== undefined && facts.storage === undefined);
  if (tokens < (facts?.minimumPrefix ?? 1) || !isPromised || untoldReads !== undefined) return undefined;
  const ttl = goesOnFrom.markers?.at(-1)?.ttl ?? "5m";
  const isKept = askedAt - goesOnFrom.askedAt < entryLifetimeMs(ttl, facts);
  const isBuilt = askedAt - goesOnFrom.answer.at >= (pacing?.settleMs ?? 0);
  return { tokens, isTold, found: isKept && isBuilt ? { tokens, estimated: tokens } : undefined };
};
