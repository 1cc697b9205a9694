/** What a failed response means, whichever provider sent it: its status, how long to wait, and whether the account is
 *  out of credit.
 *  Elsewhere: the error names of a provider (anthropic.ts, gemini.ts, openai-errors.ts), retrying
 *  (../send/client.ts). */

import { ModelError, type ModelErrorReason, printable } from "../errors.ts";
import type { FailedResponse } from "./protocol.ts";

/** The wait in either spelling. A date is compared with the response's own date, so no clock is needed. */
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

/** The provider's id of the request, for support questions. */
export const requestIdIn = (headers: FailedResponse["headers"]): string | undefined =>
  ["request-id", "x-request-id", "x-goog-request-id", "x-amzn-requestid", "cf-ray"]
    .map((name) => headers[name])
    .find((id) => id !== undefined && id !== "");

/** The message for a failure that has none. */
export const bareFailure = (status: number, body: string): string => `HTTP ${status}: ${printable(body) || "no body"}`;

const DAY_MS = 86_400_000;
const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: DAY_MS };

/** How long a message asks to wait: "try again in 350ms", "in 1h2m3.5s". */
export const waitInWords = (message: string): number | undefined => {
  const [, wait] = /try again in ((?:\d{1,9}(?:\.\d{1,6})?\s?(?:ms|s|m|h|d)){1,4})\b/i.exec(message) ?? [];
  if (wait === undefined) return undefined;
  const parts = wait.toLowerCase().matchAll(/(\d{1,9}(?:\.\d{1,6})?)\s?(ms|s|m|h|d)/g);
  return Math.round([...parts].reduce((sum, [, amount, unit = "s"]) => sum + Number(amount) * (UNIT_MS[unit] ?? 0), 0));
};

/** An account without money. Waiting does not help, whatever the status. */
const NO_MONEY =
  /insufficient[_ ](?:quota|balance|credits?|funds)|credit balance is too low|billing[_ ](?:error|hard[_ ]limit|not[_ ]active)|exceeded_current_quota|(?:used all|out of|no)(?: \w+){0,2} credits|payment required|\barrearage\b|in arrears|余额不足|欠费/i;

/** Used both for a used-up plan and for a limit per minute, so it only counts if no wait is asked for. */
const LIMIT_WORDS =
  /exceeded your current quota|quota (?:has been )?(?:exceeded|exhausted)|check your plan|(?:spend(?:ing)?|usage) limits?\b.{0,40}\b(?:reached|exceeded)|(?:reached|exceeded)\b.{0,40}\b(?:spend(?:ing)?|usage) limits?/i;

/** Is the plan used up? `wait`: what the provider asked for. */
const isUsedUp = (text: string, wait: number | undefined): boolean =>
  NO_MONEY.test(text) || (wait === undefined && LIMIT_WORDS.test(text));

/** Statuses that a used-up plan is reported under: an account without credit answers like one that is too fast. */
const PLAN_STATUSES: ReadonlySet<number> = new Set([200, 400, 402, 403, 429, 500, 503]);

export type ReadFailure = {
  /** The status that the failure means; inside a stream, the one that its name implies. */
  readonly status: number;
  /** The status that was sent, if it differs; 200 inside a stream, which has none of its own. */
  readonly sentStatus?: number | undefined;
  readonly message: string;
  /** Names next to the message that may say that a subscription plan is used up. */
  readonly names?: readonly string[];
  /** How long the provider asks us to wait. */
  readonly waitMs: number | undefined;
  readonly requestId: string | undefined;
  /** Sending the request again is useless. */
  readonly isFinal: boolean;
};

/** An account that has nothing left to spend cannot be retried. Its message includes the request id, which the
 *  provider's support needs. */
export const toModelError = (failure: ReadFailure): ModelError => {
  const { status, sentStatus = 200, message, names = [], waitMs, requestId, isFinal } = failure;
  const isPlanUsedUp = status === 402 || (PLAN_STATUSES.has(status) && isUsedUp([message, ...names].join(" "), waitMs));
  const named = isPlanUsedUp && requestId !== undefined ? ` (request id ${printable(requestId, 80)})` : "";
  const reason = reasonFor(status, waitMs);
  return new ModelError(
    message + named,
    sentStatus === 200 || !("status" in reason) ? reason : { ...reason, status: sentStatus },
    { ...(requestId === undefined ? {} : { requestId }), final: isPlanUsedUp || isFinal },
  );
};

const reasonFor = (status: number, retryAfterMs?: number): ModelErrorReason => {
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
