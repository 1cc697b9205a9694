/** What did a family cost, what would it have cost otherwise, and what was lost on the way? Pure.
 *  Invariant: the sum of the rows, and of tasks whose journals cannot be read, is what was spent; money is given only where
 *  every part of a sum has a price.
 *  Elsewhere: the rows (ledger.ts), other ways to do the same (instead.ts), reading journals (read-family.ts). */

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
import { adviceFor, causeSentence, type ShortfallCause } from "./cause.ts";
import { type InsteadId, insteadOf } from "./instead.ts";
import type { RequestRow } from "./ledger.ts";

export type BilledSum = {
  readonly requests: number;
  readonly usage: Usage;
  /** The input, in tokens at the price of plain input. */
  readonly units: number;
  readonly usd?: number;
};

/** A task whose own journal cannot be read: it is counted as a whole, by what its parent was told. */
export type UnreadTask = {
  readonly agent: string;
  readonly reason: string;
  readonly model: string;
  readonly usage: Usage;
  readonly usd?: number;
};

export type ComparedSum = BilledSum & {
  readonly id: InsteadId;
  /** How it was counted. */
  readonly how: string;
  /** How much more it would have been; less where negative. */
  readonly saved: { readonly units: number; readonly usd?: number };
};

export type MissedRead = {
  /** Its place among the rows. */
  readonly row: number;
  readonly agent: string;
  readonly turn: number;
  readonly cause: ShortfallCause;
  /** Tokens that had been written for it and were not read. */
  readonly lost: number;
  /** What they cost beyond the price of reading them. */
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
    // Whoever does it another way stores nothing.
    instead: insteadOf(rows.filter(({ kind }) => kind !== "stored" && kind !== "storage")).map(
      ({ id, how, rows: others }) => {
        const sum = sumOf([...others.map(priced), ...unread]);
        return { id, how, ...sum, saved: difference(sum, total) };
      },
    ),
    misses: rows.flatMap(missOf),
  };
};

type Billed = Pick<RequestRow, "usage" | "model" | "usd"> & Partial<Pick<RequestRow, "isAnswered" | "kind">>;

const sumOf = (billed: readonly Billed[]): BilledSum => {
  // One that broke off before its answer began was not billed, as far as anybody can know.
  const answered = billed.filter(({ isAnswered, usage }) => isAnswered !== false || promptTokens(usage) > 0);
  const usd = answered.reduce<number | undefined>(
    (sum, each) => (sum === undefined || each.usd === undefined ? undefined : sum + each.usd),
    0,
  );
  return {
    requests: billed.filter(({ kind }) => kind !== "storage").length,
    usage: answered.reduce((sum, { usage }) => addUsage(sum, usage), noUsage),
    units: withoutNoise(answered.reduce((sum, { usage, model }) => sum + inputUnits(usage, modelFacts(model)), 0)),
    ...(usd === undefined ? {} : { usd }),
  };
};

const withoutNoise = (units: number): number => Math.round(units * 1e6) / 1e6;

/** Money by our own table: what was billed in truth stands in the journal. */
const priced = ({ usd: _billed, ...row }: RequestRow): Billed => {
  const usd = costOf(row.usage, modelFacts(row.model), serviceOf(row, row.at))?.total;
  return usd === undefined ? row : { ...row, usd };
};

const difference = (other: BilledSum, actual: BilledSum): ComparedSum["saved"] => ({
  units: withoutNoise(other.units - actual.units),
  ...(other.usd === undefined || actual.usd === undefined ? {} : { usd: other.usd - actual.usd }),
});

const missOf = (row: RequestRow, place: number): readonly MissedRead[] => {
  const { agent, turn, cause, usage, model, writtenBefore, isAnswered } = row;
  const advice = adviceFor(cause);
  const lost = writtenBefore - usage.read;
  if (advice === undefined || lost <= 0 || !isAnswered) return [];
  const facts = modelFacts(model);
  const service = serviceOf(row, row.at);
  const [paid, read] = [costOf(usage, facts, service)?.total, costOf(asIfRead(usage, lost), facts, service)?.total];
  const usd = paid === undefined || read === undefined ? {} : { usd: paid - read };
  return [{ row: place, agent, turn, cause, lost, ...usd, why: causeSentence(cause), advice }];
};

/** The same prompt with this many more tokens read: what was lost was written again, or else plain. */
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
