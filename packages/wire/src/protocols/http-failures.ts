/** What a failed response means whoever sent it: its status, and how long it asks us to wait.
 *  Elsewhere: a provider's own words for errors (anthropic-errors.ts, openai-errors.ts), sending again (../retry.ts). */

import { type ModelErrorReason, printable } from "../errors.ts";
import type { FailedResponse } from "./protocol.ts";

/** Waiting time in either spelling; a date is read against the response's own date, so no clock is needed. */
export const retryAfter = (headers: FailedResponse["headers"]): number | undefined => {
  const milliseconds = Number(headers["retry-after-ms"] || Number.NaN);
  if (Number.isFinite(milliseconds) && milliseconds >= 0) return milliseconds;
  const value = headers["retry-after"];
  if (value === undefined) return undefined;
  const seconds = Number(value);
  if (Number.isFinite(seconds)) return Math.max(0, seconds * 1000);
  const wait = Date.parse(value) - Date.parse(headers.date ?? "");
  return Number.isFinite(wait) ? Math.max(0, wait) : undefined;
};

/** The name that the provider gave the request, for asking about it. */
export const requestIdIn = (headers: FailedResponse["headers"]): string | undefined =>
  ["request-id", "x-request-id", "x-goog-request-id", "x-amzn-requestid", "cf-ray"]
    .map((name) => headers[name])
    .find((id) => id !== undefined && id !== "");

/** A failure that has no words of its own. */
export const bareFailure = (status: number, body: string): string => `HTTP ${status}: ${printable(body) || "no body"}`;

const DAY_MS = 86_400_000;
const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: DAY_MS };

/** How long a message asks to wait: "try again in 350ms", "in 1h2m3.5s". */
export const waitInWords = (message: string): number | undefined => {
  const [, told] = /try again in ((?:\d{1,9}(?:\.\d{1,6})?\s?(?:ms|s|m|h|d)){1,4})\b/i.exec(message) ?? [];
  if (told === undefined) return undefined;
  const parts = told.toLowerCase().matchAll(/(\d{1,9}(?:\.\d{1,6})?)\s?(ms|s|m|h|d)/g);
  return Math.round([...parts].reduce((sum, [, amount, unit = "s"]) => sum + Number(amount) * (UNIT_MS[unit] ?? 0), 0));
};

/** An account without money. Waiting does not help, whatever status says so. */
const NO_MONEY =
  /insufficient[_ ](?:quota|balance|credits?|funds)|credit balance is too low|billing[_ ](?:error|hard[_ ]limit|not[_ ]active)|exceeded_current_quota|(?:used all|out of|no)(?: \w+){0,2} credits|payment required|\barrearage\b|in arrears|余额不足|欠费/i;

/** Said of a plan that is used up, and of a limit for the minute alike: it tells only where no wait is asked for. */
const LIMIT_WORDS =
  /exceeded your current quota|quota (?:has been )?(?:exceeded|exhausted)|check your plan|(?:spend(?:ing)?|usage) limits?\b.{0,40}\b(?:reached|exceeded)|(?:reached|exceeded)\b.{0,40}\b(?:spend(?:ing)?|usage) limits?/i;

/** Is the plan used up? `wait`: what the provider asked for. */
const isUsedUp = (words: string, wait: number | undefined): boolean =>
  NO_MONEY.test(words) || (wait === undefined && LIMIT_WORDS.test(words));

/** Statuses that a used-up plan is told under: an account without credit answers like one that is too fast. */
const TOLD_UNDER: ReadonlySet<number> = new Set([200, 400, 402, 403, 429, 500, 503]);

export type ToldFailure = { readonly status: number; readonly words: string; readonly wait: number | undefined };

/** Has the account nothing left to spend? Then sending again is useless. */
export const isPlanFailure = ({ status, words, wait }: ToldFailure): boolean =>
  status === 402 || (TOLD_UNDER.has(status) && isUsedUp(words, wait));

/** Whoever asks the provider about it needs the request's name. */
export const withRequestId = (words: string, requestId: string | undefined): string =>
  requestId === undefined ? words : `${words} (request id ${printable(requestId, 80)})`;

export const reasonFor = (status: number, retryAfterMs?: number): ModelErrorReason => {
  const waited = retryAfterMs === undefined ? {} : { retryAfterMs };
  if (status === 401) return { kind: "authentication", status };
  if (status === 402 || status === 403) return { kind: "permission", status };
  if (status === 404) return { kind: "not-found", status };
  if (status === 413) return { kind: "too-large", status };
  if (status === 429) return { kind: "rate-limited", status, ...waited };
  if (status === 529 || status === 503) return { kind: "overloaded", status, ...waited };
  if (status === 408 || status === 409 || status >= 500) return { kind: "server", status, ...waited };
  return { kind: "invalid-request", status };
};
