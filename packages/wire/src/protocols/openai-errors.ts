/** What errors of OpenAI and compatible endpoints mean, as a status with a body or inside a stream.
 *  Elsewhere: whether to retry (../errors.ts, ../send/client.ts), what a status means in general (http-failures.ts). */

import { isObject } from "../json.ts";
import type { Json, JsonObject } from "../request.ts";
import { bareFailure, requestIdIn, retryAfter, toModelError, waitInWords } from "./http-failures.ts";
import type { Protocol } from "./protocol.ts";
import { asCount, asObject, asString } from "./reading.ts";

type WireError = {
  readonly names: readonly string[];
  readonly message: string;
  readonly status: number | undefined;
  readonly requestId: string | undefined;
  /** How long the error itself asks to wait. */
  readonly waitMs: number | undefined;
};

/** The error is under `error`, inside a failed response, or is the whole body; some send plain text. */
const errorIn = (value: JsonObject): Json | undefined => {
  if (value.error !== undefined && value.error !== null) return value.error;
  const inside = asObject(value.response).error;
  if (isObject(inside)) return inside;
  return typeof value.message === "string" ? value : undefined;
};

const readError = (body: string): WireError | undefined => {
  try {
    const value = JSON.parse(body) as Json;
    const error = isObject(value) ? errorIn(value) : undefined;
    if (!isObject(value) || error === undefined) return undefined;
    const { code, type, message } = isObject(error) ? error : { code: "", type: "", message: error };
    const seconds = asCount(isObject(error) ? error.resets_in_seconds : undefined);
    return {
      names: [asString(code), asString(type)].filter((name) => name !== "" && name !== "error"),
      message: asString(message),
      status: typeof code === "number" ? code : undefined,
      requestId: asString(value.request_id) || undefined,
      waitMs: seconds === undefined ? undefined : seconds * 1_000,
    };
  } catch {
    return undefined;
  }
};

/** Names of errors that say more than the status, or that replace it inside a stream. */
const NAMED: ReadonlyMap<string, number> = new Map(
  Object.entries({
    invalid_request_error: 400,
    BadRequestError: 400,
    invalid_prompt: 400,
    content_policy_violation: 400,
    invalid_api_key: 401,
    authentication_error: 401,
    invalid_authentication_error: 401,
    insufficient_quota: 402,
    billing_hard_limit_reached: 402,
    billing_not_active: 402,
    exceeded_current_quota_error: 402,
    permission_error: 403,
    model_not_found: 404,
    not_found_error: 404,
    context_length_exceeded: 413,
    exceed_context_size_error: 413,
    rate_limit_exceeded: 429,
    rate_limit_error: 429,
    rate_limit_reached_error: 429,
    server_error: 500,
    internal_error: 500,
    vector_store_timeout: 504,
    server_is_overloaded: 503,
    slow_down: 503,
    overloaded_error: 503,
    engine_overloaded_error: 503,
  }),
);

/** An account without credit gets the same status as one that is too fast, and a prompt that is too long the same as
 *  any invalid one. */
const MORE_SPECIFIC: ReadonlySet<number> = new Set([402, 413, 503]);

const statusOf = (status: number, wire: WireError | undefined): number => {
  const named = wire?.names.map((name) => NAMED.get(name)).find((found) => found !== undefined);
  if (status === 200) return wire?.status ?? named ?? 500;
  return named !== undefined && MORE_SPECIFIC.has(named) ? named : status;
};

/** Some say how long to wait only in the message, others when the limit ends. */
const waitFrom = (wire: WireError | undefined): number | undefined => wire?.waitMs ?? waitInWords(wire?.message ?? "");

export const failure: Protocol["failure"] = ({ status, headers, body }) => {
  const wire = readError(body);
  return toModelError({
    status: statusOf(status, wire),
    sentStatus: status,
    message: [wire?.names[0], wire?.message].filter(Boolean).join(": ") || bareFailure(status, body),
    names: wire?.names ?? [],
    waitMs: retryAfter(headers) ?? waitFrom(wire),
    requestId: wire?.requestId ?? requestIdIn(headers),
    isFinal: headers["x-should-retry"] === "false",
  });
};
