/** Anthropic Messages: what its errors mean, as a status with a body or as a frame inside a stream.
 *  Elsewhere: whether to send again (../errors.ts, ../retry.ts). */

import { ModelError, type ModelErrorContext, type ModelErrorReason } from "../errors.ts";
import { isObject } from "../json.ts";
import type { Json } from "../request.ts";
import type { FailedResponse, Protocol } from "./protocol.ts";

type WireError = { readonly type: string; readonly message: string; readonly requestId: string | undefined };

const readError = (body: string): WireError | undefined => {
  try {
    const value = JSON.parse(body) as Json;
    const error = isObject(value) ? value.error : undefined;
    if (!isObject(value) || !isObject(error)) return undefined;
    const requestId = typeof value.request_id === "string" ? value.request_id : undefined;
    return { type: String(error.type ?? ""), message: String(error.message ?? ""), requestId };
  } catch {
    return undefined;
  }
};

/** Waiting time in either spelling; a date is read against the response's own date, so no clock is needed. */
const retryAfter = (headers: FailedResponse["headers"]): number | undefined => {
  const milliseconds = Number(headers["retry-after-ms"] || Number.NaN);
  if (Number.isFinite(milliseconds) && milliseconds >= 0) return milliseconds;
  const value = headers["retry-after"];
  if (value === undefined) return undefined;
  const seconds = Number(value);
  if (Number.isFinite(seconds)) return Math.max(0, seconds * 1000);
  const wait = Date.parse(value) - Date.parse(headers.date ?? "");
  return Number.isFinite(wait) ? Math.max(0, wait) : undefined;
};

const TYPE_STATUS: ReadonlyMap<string, number> = new Map(
  Object.entries({
    invalid_request_error: 400,
    authentication_error: 401,
    billing_error: 402,
    permission_error: 403,
    not_found_error: 404,
    request_too_large: 413,
    rate_limit_error: 429,
    api_error: 500,
    timeout_error: 504,
    overloaded_error: 529,
  }),
);

const reasonFor = (status: number, waited: { readonly retryAfterMs?: number }): ModelErrorReason => {
  if (status === 401) return { kind: "authentication", status };
  if (status === 402 || status === 403) return { kind: "permission", status };
  if (status === 404) return { kind: "not-found", status };
  if (status === 413) return { kind: "too-large", status };
  if (status === 429) return { kind: "rate-limited", status, ...waited };
  if (status === 529 || status === 503) return { kind: "overloaded", status, ...waited };
  if (status === 408 || status === 409 || status >= 500) return { kind: "server", status, ...waited };
  return { kind: "invalid-request", status };
};

export const failure: Protocol["failure"] = ({ status, headers, body }) => {
  const wire = readError(body);
  const wait = retryAfter(headers);
  const requestId = wire?.requestId ?? headers["request-id"];
  // Inside a stream there is no status of its own: the error's type tells it.
  const told = status === 200 ? (TYPE_STATUS.get(wire?.type ?? "") ?? 500) : status;
  const words = [wire?.type, wire?.message].filter(Boolean).join(": ");
  const message = words || `HTTP ${status}: ${body.slice(0, 200) || "no body"}`;
  const context: ModelErrorContext = {
    ...(requestId === undefined ? {} : { requestId }),
    final: headers["x-should-retry"] === "false",
  };
  return new ModelError(message, reasonFor(told, wait === undefined ? {} : { retryAfterMs: wait }), context);
};
