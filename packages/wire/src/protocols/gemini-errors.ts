/** Gemini: what its errors mean, as a status with a body or inside a stream.
 *  Elsewhere: whether to send again (../errors.ts, ../retry.ts), what a status means anywhere (http-failures.ts). */

import { ModelError, type ModelErrorContext, type ModelErrorReason } from "../errors.ts";
import { isArray, isObject } from "../json.ts";
import type { Json, JsonObject } from "../request.ts";
import { bareFailure, isPlanFailure, reasonFor, requestIdIn, retryAfter, withRequestId } from "./http-failures.ts";
import type { Protocol } from "./protocol.ts";
import { asObject, asString } from "./reading.ts";

type WireError = {
  /** As all its services name it: INVALID_ARGUMENT. */
  readonly name: string;
  readonly message: string;
  readonly code: number | undefined;
  readonly details: readonly JsonObject[];
};

/** The body, or the only item of a list where the answer would have been one. */
const readError = (body: string): WireError | undefined => {
  try {
    const value = JSON.parse(body) as Json;
    const error = asObject(isArray(value) ? value[0] : value).error;
    if (!isObject(error)) return undefined;
    const { status, message, code, details } = error;
    return {
      name: asString(status),
      message: asString(message),
      code: typeof code === "number" ? code : undefined,
      details: isArray(details) ? details.map(asObject) : [],
    };
  } catch {
    return undefined;
  }
};

/** What the names stand for, where a stream has no status of its own. */
const NAMED: ReadonlyMap<string, number> = new Map(
  Object.entries({
    INVALID_ARGUMENT: 400,
    FAILED_PRECONDITION: 400,
    OUT_OF_RANGE: 400,
    UNAUTHENTICATED: 401,
    PERMISSION_DENIED: 403,
    NOT_FOUND: 404,
    ABORTED: 409,
    RESOURCE_EXHAUSTED: 429,
    CANCELLED: 499,
    INTERNAL: 500,
    UNKNOWN: 500,
    UNAVAILABLE: 503,
    DEADLINE_EXCEEDED: 504,
  }),
);

const detailOf = ({ details }: WireError, type: string): JsonObject =>
  details.find((detail) => asString(detail["@type"]).endsWith(`.${type}`)) ?? {};

/** What it means beyond its status: a wrong key is an invalid argument here, an entry that has expired is forbidden, and
 *  a country or an account that may not ask has failed a condition. */
const told = (status: number, wire: WireError): number => {
  if (asString(detailOf(wire, "ErrorInfo").reason) === "API_KEY_INVALID") return 401;
  if (wire.name === "FAILED_PRECONDITION") return 403;
  if (/cached ?content not found/i.test(wire.message)) return 404;
  if (/token count .*exceeds/i.test(wire.message)) return 413;
  return status === 200 ? (wire.code ?? NAMED.get(wire.name) ?? 500) : status;
};

/** "34.07s" → 34,070. */
const retryDelay = (wire: WireError): number | undefined => {
  const [, seconds] = /^(\d+(?:\.\d+)?)s$/.exec(asString(detailOf(wire, "RetryInfo").retryDelay)) ?? [];
  return seconds === undefined ? undefined : Math.ceil(Number(seconds) * 1_000);
};

/** The quota of a day does not come back within any wait of ours, whatever wait is asked for. */
const isDaily = (wire: WireError): boolean => {
  const { violations } = detailOf(wire, "QuotaFailure");
  return isArray(violations) && violations.some((violation) => /PerDay/.test(asString(asObject(violation).quotaId)));
};

const longer = (a: number | undefined, b: number | undefined): number | undefined =>
  a === undefined || b === undefined ? (a ?? b) : Math.max(a, b);

const reasonOf = (status: number, wire: WireError | undefined, wait: number | undefined): ModelErrorReason => {
  if (!wire) return reasonFor(status === 200 ? 500 : status, wait);
  const reason = reasonFor(told(status, wire), wait);
  // What the provider sent is what is reported; inside a stream it sent none.
  return status === 200 || !("status" in reason) ? reason : { ...reason, status };
};

export const failure: Protocol["failure"] = ({ status, headers, body }) => {
  const wire = readError(body);
  const isOver = wire !== undefined && isDaily(wire);
  const wait = isOver ? undefined : longer(retryAfter(headers), wire && retryDelay(wire));
  const words = [wire?.name, wire?.message].filter(Boolean).join(": ") || bareFailure(status, body);
  const requestId = requestIdIn(headers);
  const isUsedUp = isPlanFailure({ status: wire ? told(status, wire) : status, words, wait });
  const context: ModelErrorContext = {
    ...(requestId === undefined ? {} : { requestId }),
    final: isOver || isUsedUp,
  };
  return new ModelError(isUsedUp ? withRequestId(words, requestId) : words, reasonOf(status, wire, wait), context);
};
