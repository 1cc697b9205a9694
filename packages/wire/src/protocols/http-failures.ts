/** What a failed response means whoever sent it: its status, and how long it asks us to wait.
 *  Elsewhere: a provider's own words for errors (anthropic-errors.ts, openai-errors.ts), sending again (../retry.ts). */

import type { ModelErrorReason } from "../errors.ts";
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
