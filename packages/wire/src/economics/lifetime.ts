/** How long to hold a cache entry, and which lifetime to buy for it.
 *  Invariant: holding never costs more than the loss it prevents, which is a re-write instead of a read: (w−r)P.
 *  Time comes in as durations; an entry's age counts from the start of the last request that wrote or read it.
 *  Elsewhere: who sends a keep-alive and when (the runtime), where markers stand (markers.ts). */

import type { ModelFacts } from "../models.ts";
import { multipliersOf, withoutNoise, writeMultiplier } from "../prices.ts";
import { LIFETIME_MS, type Ttl } from "../request.ts";
import { figure } from "./fan-out.ts";

const MINUTE_MS = 60_000;

export type HeldEntry = {
  readonly tokens: number;
  readonly ttl: Ttl;
  readonly facts?: ModelFacts | undefined;
};

/** In base-input tokens: one keep-alive, the loss it prevents, and how many of the one the other pays for. */
export type KeepAliveBudget = { readonly each: number; readonly loss: number; readonly requests: number };

const isCached = (tokens: number, facts: ModelFacts | undefined): boolean => tokens >= (facts?.minimumPrefix ?? 1);

export const keepAliveBudget = ({ tokens, ttl, facts }: HeldEntry): KeepAliveBudget => {
  if (!isCached(tokens, facts)) return { each: tokens, loss: 0, requests: 0 };
  const multipliers = multipliersOf(facts, tokens);
  const each = withoutNoise(multipliers.read * tokens);
  const loss = withoutNoise((writeMultiplier(multipliers, ttl) - multipliers.read) * tokens);
  const worthwhile = each === 0 ? Number.POSITIVE_INFINITY : Math.max(0, Math.floor(loss / each + 1e-9));
  return { each, loss, requests: worthwhile };
};

export type KeepAliveQuestion = HeldEntry & {
  /** Keep-alives sent since a request last used the entry for its own sake. */
  readonly sent: number;
  readonly ageMs: number;
  /** Why the provider would refuse `max_tokens: 0` here (a forced tool, legacy thinking), if it would. */
  readonly refused?: string;
};

export type KeepAliveDecision =
  | { readonly action: "send"; readonly reason: string }
  | { readonly action: "wait"; readonly waitMs: number; readonly reason: string }
  | { readonly action: "stop"; readonly reason: string };

/** Early enough to arrive, late enough not to send twice as many. */
const marginMs = (ttl: Ttl): number => Math.min(MINUTE_MS, LIFETIME_MS[ttl] / 10);

export const decideKeepAlive = (question: KeepAliveQuestion): KeepAliveDecision => {
  const { tokens, ttl, facts, sent, ageMs, refused } = question;
  const stop = (reason: string): KeepAliveDecision => ({ action: "stop", reason });
  if (refused !== undefined) return stop(`no keep-alive: ${refused}`);
  if (!isCached(tokens, facts)) return stop(`no keep-alive: ${figure(tokens)} tokens are not cached`);
  if (ageMs >= LIFETIME_MS[ttl])
    return stop("no keep-alive: the entry has expired, so it would be the re-write itself");

  const { each, loss, requests } = keepAliveBudget(question);
  const sum = `${figure(sent)} sent at ${figure(each)} base-input tokens each`;
  if (sent >= requests)
    return stop(`no more keep-alives: ${sum}, and one more would pass a re-write (${figure(loss)})`);

  const waitMs = LIFETIME_MS[ttl] - marginMs(ttl) - ageMs;
  if (waitMs > 0)
    return { action: "wait", waitMs, reason: `the entry lives: next keep-alive in ${figure(waitMs / 1_000)} s` };
  return { action: "send", reason: `hold the entry: ${sum}, a re-write would cost ${figure(loss)} more than a read` };
};

export type TtlQuestion = {
  readonly owner: "parent" | "child";
  readonly tokens: number;
  /** Expected times between the start of one use of the entry and the start of the next. */
  readonly gapsMs: readonly number[];
  readonly facts?: ModelFacts | undefined;
};

export type TtlDecision = {
  readonly ttl: "5m" | "1h";
  readonly reason: string;
  /** Base-input tokens to write the entry and use it after each gap. */
  readonly cost: { readonly "5m": number; readonly "1h": number };
};

/** One write, then at each gap a read while the entry lives, or the write again. */
const costOfUses = ({ tokens, gapsMs, facts }: TtlQuestion, ttl: Ttl): number => {
  const multipliers = multipliersOf(facts, tokens);
  const write = writeMultiplier(multipliers, ttl);
  const uses = gapsMs.map((gap) => (gap < LIFETIME_MS[ttl] ? multipliers.read : write));
  return withoutNoise(tokens * uses.reduce((sum, use) => sum + use, write));
};

export const decideTtl = (question: TtlQuestion): TtlDecision => {
  const cost = { "5m": costOfUses(question, "5m"), "1h": costOfUses(question, "1h") };
  if (!isCached(question.tokens, question.facts)) {
    return { ttl: "5m", cost, reason: `5m: ${figure(question.tokens)} tokens are not cached, so nothing lives longer` };
  }
  const figures = `${figure(cost["1h"])} base-input tokens with 1h, ${figure(cost["5m"])} with 5m`;
  if (question.owner === "child") {
    return { ttl: "5m", cost, reason: "5m: a child's turns follow each other within minutes, and then it is gone" };
  }
  if (question.facts !== undefined && question.facts.prices.write["1h"] === undefined) {
    return { ttl: "5m", cost, reason: `5m: ${question.facts.id} sells no 1h lifetime` };
  }
  const rescued = question.gapsMs.filter((gap) => gap >= LIFETIME_MS["5m"] && gap < LIFETIME_MS["1h"]).length;
  if (rescued === 0) return { ttl: "5m", cost, reason: `5m: no pause that only 1h would outlive (${figures})` };
  const pauses = rescued === 1 ? "1 pause" : `${rescued} pauses`;
  return cost["1h"] < cost["5m"]
    ? { ttl: "1h", cost, reason: `1h: it outlives ${pauses} between 5 minutes and an hour (${figures})` }
    : { ttl: "5m", cost, reason: `5m: ${pauses} between 5 minutes and an hour cost less than 1h writes (${figures})` };
};
