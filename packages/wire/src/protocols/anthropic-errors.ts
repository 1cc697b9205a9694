/** Anthropic Messages: what its errors mean, as a status with a body or as a frame inside a stream.
 *  Elsewhere: whether to send again (../errors.ts, ../retry.ts). */

import { ModelError, type ModelErrorContext } from "../errors.ts";
import { isObject } from "../json.ts";
import type { Json } from "../request.ts";
import { bareFailure, isPlanFailure, reasonFor, requestIdIn, retryAfter, withRequestId } from "./http-failures.ts";
import type { Protocol } from "./protocol.ts";

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

export const failure: Protocol["failure"] = ({ status, headers, body }) => {
  const wire = readError(body);
  const wait = retryAfter(headers);
  const requestId = wire?.requestId ?? requestIdIn(headers);
  // Inside a stream there is no status of its own: the error's type tells it.
  const told = status === 200 ? (TYPE_STATUS.get(wire?.type ?? "") ?? 500) : status;
  const words = [wire?.type, wire?.message].filter(Boolean).join(": ") || bareFailure(status, body);
  const isUsedUp = isPlanFailure({ status: told, words, wait });
  const context: ModelErrorContext = {
    ...(requestId === undefined ? {} : { requestId }),
    final: isUsedUp || headers["x-should-retry"] === "false",
  };
  return new ModelError(isUsedUp ? withRequestId(words, requestId) : words, reasonFor(told, wait), context);
};
