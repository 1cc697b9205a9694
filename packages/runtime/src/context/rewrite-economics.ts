/** What does it cost to start a new epoch with a shorter prefix, and after how many turns is that repaid?
 *  Invariant: pure arithmetic on published prices. It holds for every deliberate rewrite alike: a compaction, or clearing
 *  old results, which is never done inside an epoch because it would edit what is cached.
 *  Elsewhere: prices (models.ts of @prefork/wire), when a compaction is due for want of room (compaction.ts). */

import { type ModelFacts, multipliersOf, pricesFor, type Ttl, writeMultiplier } from "@prefork/wire";
import { figure } from "./measure.ts";

export type RewriteQuestion = {
  /** Tokens of the old prefix and of the new one. */
  readonly before: number;
  readonly after: number;
  /** Tokens of the summary; 0 where nothing is asked for. */
  readonly output?: number;
  /** Whether the old prefix can still be read. Default: true. */
  readonly warm?: boolean;
  readonly ttl?: Ttl; // of the new entry; default: 5m
  /** Absent: usual multipliers, and no money is said. */
  readonly facts?: ModelFacts;
};

/** Units are tokens of plain input at the price of the old prefix. */
export type RewriteEconomics = {
  /** What the rewrite costs more than one ordinary turn. */
  readonly now: number;
  /** What each turn after it costs less. */
  readonly perTurn: number;
  /** Turns after which it is repaid; absent where it never is. */
  readonly turns?: number;
  readonly usd?: { readonly now: number; readonly perTurn: number };
  readonly reason: string;
};

export const rewriteEconomics = (question: RewriteQuestion): RewriteEconomics => {
  const { before, after, output = 0, warm = true, ttl = "5m", facts } = question;
  const [old, anew] = [multipliersOf(facts, before), multipliersOf(facts, after)];
  const oldInput = facts === undefined ? 1 : pricesFor(facts, before).input;
  // A shorter prompt may fall into a cheaper tier; without one this is 1.
  const cheaper = facts === undefined || oldInput === 0 ? 1 : pricesFor(facts, after).input / oldInput;
  const [readOld, writeOld] = [old.read * before, writeMultiplier(old, ttl) * before];
  const [readNew, writeNew] = [anew.read * after * cheaper, writeMultiplier(anew, ttl) * after * cheaper];
  // Without a rewrite the next turn reads the old prefix, or writes it where it went cold. With one, whoever sums it up
  // does that once, and the next turn writes the new one.
  const oldTurn = warm ? readOld : writeOld;
  const summing = output === 0 ? 0 : oldTurn + old.output * output;
  const now = Math.round(summing + writeNew - oldTurn);
  const perTurn = Math.round(readOld - readNew);
  const turns = perTurn <= 0 ? undefined : Math.max(0, Math.ceil(now / perTurn));
  const usd = (units: number): number => (units * oldInput) / 1e6;
  return {
    now,
    perTurn,
    ...(turns === undefined ? {} : { turns }),
    ...(facts === undefined ? {} : { usd: { now: usd(now), perTurn: usd(perTurn) } }),
    reason: reasonOf({ before, after, now, perTurn, turns }),
  };
};

type Told = Pick<RewriteQuestion, "before" | "after"> & {
  readonly now: number;
  readonly perTurn: number;
  readonly turns: number | undefined;
};

const reasonOf = ({ before, after, now, perTurn, turns }: Told): string => {
  const sizes = `${figure(before)} tokens become ${figure(after)}`;
  if (turns === undefined) return `${sizes}: a rewrite costs ${figure(now)} base-input tokens and saves nothing later`;
  if (now <= 0) return `${sizes}: cheaper from the first turn, by ${figure(perTurn)} base-input tokens a turn after it`;
  const repaid = turns === 1 ? "after 1 turn" : `after ${figure(turns)} turns`;
  return `${sizes}: costs ${figure(now)} base-input tokens now, saves ${figure(perTurn)} a turn, repaid ${repaid}`;
};
