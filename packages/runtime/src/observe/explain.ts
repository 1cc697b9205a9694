/** What did a family cost, what would it have cost otherwise, and what did cache misses cost? Pure.
 *  Invariant: the total is the sum of the rows and of tasks whose journals cannot be read. An amount of money is given
 *  only if every part of the sum has a price.
 *  Elsewhere: the rows (ledger.ts), alternatives (alternatives.ts), reading journals (read-family.ts). */

import {
  addUsage,
  costOf,
  inputUnits,
  modelFacts,
  noUsage,
  promptTokens,
  serviceOf,
  type Ttl,
  type Usage,
} from "@prefork/wire";
import { type AlternativeId, alternativesTo } from "./alternatives.ts";
import type { RequestRow } from "./ledger.ts";
import { adviceForMiss, describeMissReason, type MissReason } from "./miss-reason.ts";

export type BilledSum = {
  readonly requests: number;
  readonly usage: Usage;
  /** The input cost, in tokens at the price of uncached input. */
  readonly units: number;
  readonly usd?: number;
};

/** A task whose own journal cannot be read. It is counted as a whole, by what its parent was told. */
export type UnreadTask = {
  readonly agent: string;
  readonly reason: string;
  readonly model: string;
  readonly usage: Usage;
  readonly usd?: number;
};

export type ComparedSum = BilledSum & {
  readonly id: AlternativeId;
  /** How it was calculated. */
  readonly how: string;
  /** How much more it would have cost; negative if less. */
  readonly saved: { readonly units: number; readonly usd?: number };
};

export type MissedRead = {
  /** Its index among the rows. */
  readonly row: number;
  readonly agent: string;
  readonly turn: number;
  readonly cause: MissReason;
  /** Tokens that were written for it but not read. */
  readonly lost: number;
  /** What they cost in addition to the price of reading them. */
  readonly usd?: number;
  readonly why: string;
  readonly advice: string;
};

export type Explanation = {
  readonly total: BilledSum;
  readonly agents: readonly (BilledSum & { readonly agent: string })[];
  readonly instead: readonly ComparedSum[];
  readonly misses: readonly MissedRead[];
};

export const explain = (rows: readonly RequestRow[], unread: readonly UnreadTask[] = []): Explanation => {
  const total = sumOf([...rows, ...unread]);
  const agents = [...Map.groupBy([...rows, ...unread], ({ agent }) => agent)];
  return {
    total,
    agents: agents.map(([agent, own]) => ({ agent, ...sumOf(own) })),
    // The alternatives store nothing.
    instead: alternativesTo(rows.filter(({ kind }) => kind !== "stored" && kind !== "storage")).map(
      ({ id, how, rows: others }) => {
        const sum = sumOf([...others.map(priced), ...unread]);
        return { id, how, ...sum, saved: difference(sum, total) };
      },
    ),
    misses: rows.flatMap(toMissedReads),
  };
};

type Billed = Pick<RequestRow, "usage" | "model" | "usd"> & Partial<Pick<RequestRow, "isAnswered" | "kind">>;

const sumOf = (billed: readonly Billed[]): BilledSum => {
  // A request that was interrupted before its answer began was not billed, as far as can be known.
  const answered = billed.filter(({ isAnswered, usage }) => isAnswered !== false || promptTokens(usage) > 0);
  const usd = answered.reduce<number | undefined>(
    (sum, each) => (sum === undefined || each.usd === undefined ? undefined : sum + each.usd),
    0,
  );
  return {
    requests: billed.filter(({ kind }) => kind !== "storage").length,
    usage: answered.reduce((sum, { usage }) => addUsage(sum, usage), noUsage),
    units: roundUnits(answered.reduce((sum, { usage, model }) => sum + inputUnits(usage, modelFacts(model)), 0)),
    ...(usd === undefined ? {} : { usd }),
  };
};

const roundUnits = (units: number): number => Math.round(units * 1e6) / 1e6;

/** Priced by our own table. What was really billed is in the journal. */
const priced = ({ usd: _billed, ...row }: RequestRow): Billed => {
  const usd = costOf(row.usage, modelFacts(row.model), serviceOf(row, row.at))?.total;
  return usd === undefined ? row : { ...row, usd };
};

const difference = (other: BilledSum, actual: BilledSum): ComparedSum["saved"] => ({
  units: roundUnits(other.units - actual.units),
  ...(other.usd === undefined || actual.usd === undefined ? {} : { usd: other.usd - actual.usd }),
});

const toMissedReads = (row: RequestRow, place: number): readonly MissedRead[] => {
  const { agent, turn, cause, usage, model, writtenBefore, isAnswered } = row;
  const advice = adviceForMiss(cause);
  const lost = writtenBefore - usage.read;
  if (advice === undefined || lost <= 0 || !isAnswered) return [];
  const facts = modelFacts(model);
  const service = serviceOf(row, row.at);
  const [paid, read] = [costOf(usage, facts, service)?.total, costOf(asIfRead(usage, lost), facts, service)?.total];
  const usd = paid === undefined || read === undefined ? {} : { usd: paid - read };
  return [{ row: place, agent, turn, cause, lost, ...usd, why: describeMissReason(cause), advice }];
};

/** The same prompt with this many more tokens read. What was lost was written again, or else sent uncached. */
const asIfRead = (usage: Usage, tokens: number): Usage => {
  let left = tokens;
  const less = (had: number): number => {
    const taken = Math.min(had, left);
    left -= taken;
    return had - taken;
  };
  const written = Object.fromEntries(
    (Object.entries(usage.written) as readonly [Ttl, number][]).map(([ttl, had]) => [ttl, less(had)]),
  );
  const plain = less(usage.plain);
  return { ...usage, written, plain, read: usage.read + tokens - left };
};
