/** How long to keep a cache entry alive, and which lifetime to buy for it.
 *  Invariant: keeping an entry alive never costs more than the loss it prevents, which is a re-write instead of a read:
 *  (w−r)P. Time comes in as durations; an entry's age counts from the start of the last request that wrote or read it.
 *  Elsewhere: who sends a keep-alive and when (the runtime), where markers go (../prefix/markers.ts). */

import { LIFETIME_MS, SHORTEST_FIRST, type Ttl } from "../request.ts";
import { formatFigure, isCached } from "./fan-out.ts";
import type { ModelFacts } from "./models.ts";
import { multipliersOf, withoutNoise, writeMultiplier } from "./prices.ts";

const MINUTE_MS = 60_000;

export type HeldEntry = {
  readonly tokens: number;
  readonly ttl: Ttl;
  readonly facts?: ModelFacts | undefined;
};

/** How long an entry lives after its last use: the lifetime that was asked for, or the provider's own where it keeps
 *  prompts unasked. */
export const entryLifetimeMs = (ttl: Ttl, facts: ModelFacts | undefined): number => facts?.keptMs ?? LIFETIME_MS[ttl];

/** In uncached tokens: the cost of one keep-alive, the loss it prevents, and how many keep-alives that loss pays
 *  for. */
export type KeepAliveBudget = { readonly each: number; readonly loss: number; readonly requests: number };

export const keepAliveBudget = ({ tokens, ttl, facts }: HeldEntry): KeepAliveBudget => {
  if (!isCached(tokens, facts)) return { each: tokens, loss: 0, requests: 0 };
  const multipliers = multipliersOf(facts, tokens);
  const each = withoutNoise(multipliers.read * tokens);
  const loss = withoutNoise((writeMultiplier(multipliers, ttl) - multipliers.read) * tokens);
  return { each, loss, requests: loss > 0 ? Math.floor(loss / each + 1e-9) : 0 };
};

export type KeepAliveQuestion = HeldEntry & {
  /** Keep-alives sent since a request last used the entry for its own purpose. */
  readonly sent: number;
  readonly ageMs: number;
  /** Why the provider would refuse `max_tokens: 0` here (a forced tool, legacy thinking), if it would. */
  readonly refused?: string;
};

export type KeepAliveDecision =
  | { readonly action: "send"; readonly reason: string }
  | { readonly action: "wait"; readonly waitMs: number; readonly reason: string }
  | { readonly action: "stop"; readonly reason: string };

/** Early enough to arrive in time, late enough not to send twice as many. */
const marginMs = (lifetimeMs: number): number => Math.min(MINUTE_MS, lifetimeMs / 10);

export const decideKeepAlive = (question: KeepAliveQuestion): KeepAliveDecision => {
  const { tokens, ttl, facts, sent, ageMs, refused } = question;
  const stop = (reason: string): KeepAliveDecision => ({ action: "stop", reason });
  if (refused !== undefined) return stop(`no keep-alive: ${refused}`);
  if (!isCached(tokens, facts)) return stop(`no keep-alive: ${formatFigure(tokens)} tokens are not cached`);
  const lifetimeMs = entryLifetimeMs(ttl, facts);
  if (ageMs >= lifetimeMs) return stop("no keep-alive: the entry has expired, so it would be the re-write itself");

  const { each, loss, requests } = keepAliveBudget(question);
  const sum = `${formatFigure(sent)} sent at ${formatFigure(each)} uncached tokens each`;
  if (sent >= requests)
    return stop(`no more keep-alives: ${sum}, and one more would pass a re-write (${formatFigure(loss)})`);

  const waitMs = lifetimeMs - marginMs(lifetimeMs) - ageMs;
  if (waitMs > 0)
    return { action: "wait", waitMs, reason: `the entry lives: next keep-alive in ${formatFigure(waitMs / 1_000)} s` };
  return {
    action: "send",
    reason: `keep the entry alive: ${sum}, a re-write would cost ${formatFigure(loss)} more than a read`,
  };
};

export type TtlQuestion = {
  readonly owner: "parent" | "child";
  readonly tokens: number;
  /** Expected times between the start of one use of the entry and the start of the next. */
  readonly gapsMs: readonly number[];
  readonly facts?: ModelFacts | undefined;
};

export type TtlDecision = {
  readonly ttl: Ttl;
  readonly reason: string;
  /** Uncached tokens to write the entry and use it after each gap, for every lifetime that is sold. */
  readonly cost: Readonly<Partial<Record<Ttl, number>>>;
};

/** One write, then for each gap a read if the entry still lives, or the write again. */
const costOfUses = ({ tokens, gapsMs, facts }: TtlQuestion, ttl: Ttl): number => {
  const multipliers = multipliersOf(facts, tokens);
  const write = writeMultiplier(multipliers, ttl);
  const uses = gapsMs.map((gap) => (gap < entryLifetimeMs(ttl, facts) ? multipliers.read : write));
  return withoutNoise(tokens * uses.reduce((sum, use) => sum + use, write));
};

/** Lifetimes with a price, the shortest first. If writing has no fee there is nothing to choose, and the provider
 *  ignores what is asked for. */
const pricedLifetimes = (facts: ModelFacts | undefined): readonly Ttl[] => {
  const { write } = multipliersOf(facts);
  return SHORTEST_FIRST.filter((ttl) => write[ttl] !== undefined);
};

/** The lifetime that costs least over these gaps. If several cost the same, the shortest. */
export const decideTtl = (question: TtlQuestion): TtlDecision => {
  const { owner, tokens, gapsMs, facts } = question;
  const [shortest = "5m", ...longer] = pricedLifetimes(facts);
  const costOf = (ttl: Ttl): number => costOfUses(question, ttl);
  const cost = Object.fromEntries([shortest, ...longer].map((ttl) => [ttl, costOf(ttl)]));
  const decided = (ttl: Ttl, reason: string): TtlDecision => ({ ttl, cost, reason: `${ttl}: ${reason}` });
  if (!isCached(tokens, facts))
    return decided(shortest, `${formatFigure(tokens)} tokens are not cached, so nothing lives longer`);
  if (facts !== undefined && Object.keys(facts.prices.write).length === 0)
    return decided(shortest, `${facts.id} keeps what it likes without a fee, so no lifetime is asked for`);
  if (owner === "child")
    return decided(shortest, "a child's turns follow each other within minutes, and then it is gone");
  const [next] = longer;
  if (next === undefined) return decided(shortest, `${facts?.id ?? "it"} sells no longer lifetime with a known price`);
  const best = longer.reduce<Ttl>((found, ttl) => (costOf(ttl) < costOf(found) ? ttl : found), shortest);
  const other = best === shortest ? next : best;
  const figures = `${formatFigure(costOf(other))} uncached tokens with ${other}, ${formatFigure(costOf(shortest))} with ${shortest}`;
  const rescued = gapsMs.filter((gap) => gap >= LIFETIME_MS[shortest] && gap < LIFETIME_MS[other]).length;
  if (rescued === 0) return decided(shortest, `no pause that only ${other} would outlive (${figures})`);
  const pauses = `${rescued === 1 ? "1 pause" : `${rescued} pauses`} between ${WORDS[shortest]} and ${WORDS[other]}`;
  return best === shortest
    ? decided(shortest, `${pauses} cost less than ${other} writes (${figures})`)
    : decided(best, `it outlives ${pauses} (${figures})`);
};

const WORDS: Readonly<Record<Ttl, string>> = {
  "5m": "5 minutes",
  "30m": "30 minutes",
  "1h": "an hour",
  "12h": "12 hours",
};
