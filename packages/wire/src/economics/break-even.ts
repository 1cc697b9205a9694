/** For how many turns a fork stays cheaper than a fresh sub-agent that has to find out again what the parent knows.
 *  Invariant: T* = [(w−r)(F+X) + q(O+B)] / [r(P+S−F−X)] for a warm prefix; a cold one is charged its share of the
 *  single write that its siblings read.
 *  Elsewhere: the cost of the first turn (plans.ts). */

import { figure } from "./fan-out.ts";

export type BreakEvenQuestion = {
  /** F: system prompt and tools of a fresh sub-agent, tokens. */
  readonly fresh: number;
  /** X: context it has to find again. */
  readonly rediscover: number;
  /** O: what it must write to find it. */
  readonly rediscoverOutput: number;
  /** B: how much longer the parent's brief to it is than a directive. */
  readonly brief: number;
  /** q: price of output against input. */
  readonly outputRatio: number;
  readonly prefix: number;
  readonly tail: number;
  readonly read: number; // r
  readonly write: number; // w of the sub-agent's own markers
  readonly warm?: boolean; // default: true
  /** Siblings that share the write of a cold prefix. Default: 1. */
  readonly forks?: number;
};

/** "always": no number of turns makes the fork dearer. "until": cheaper while it has fewer turns than this. */
export type BreakEven =
  | { readonly kind: "always"; readonly reason: string }
  | { readonly kind: "until"; readonly turns: number; readonly reason: string };

export const breakEven = (question: BreakEvenQuestion): BreakEven => {
  const { fresh, rediscover, rediscoverOutput, brief, outputRatio, prefix, tail, read, write } = question;
  const carriedByFork = prefix + tail;
  const carriedByFresh = fresh + rediscover;
  const carried = `a fork carries ${figure(carriedByFork)} tokens, a fresh sub-agent ${figure(carriedByFresh)}`;

  const coldShare = question.warm === false ? ((write - read) * carriedByFork) / (question.forks ?? 1) : 0;
  const spared = (write - read) * carriedByFresh + outputRatio * (rediscoverOutput + brief) - coldShare;
  const perTurn = read * (carriedByFork - carriedByFresh);

  if (perTurn <= 0 && spared >= 0) return { kind: "always", reason: `${carried}: the fork is never dearer` };
  const turns = perTurn <= 0 ? 0 : Math.max(0, spared / perTurn);
  if (turns <= 1) return { kind: "until", turns, reason: `${carried}: the fork is dearer from its first turn` };
  const start = question.warm === false ? "at the start, its share of the cold write taken off," : "at the start";
  return {
    kind: "until",
    turns,
    reason:
      `${carried}: the fork spares ${figure(Math.round(spared))} base-input tokens ${start} ` +
      `and pays ${figure(Math.round(perTurn))} more each turn`,
  };
};
