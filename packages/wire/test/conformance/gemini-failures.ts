/** Errors of Gemini, by hand. */

import type { Conformance } from "./protocol-suite.ts";

const CODES = {
  INVALID_ARGUMENT: 400,
  FAILED_PRECONDITION: 400,
  UNAUTHENTICATED: 401,
  PERMISSION_DENIED: 403,
  NOT_FOUND: 404,
  RESOURCE_EXHAUSTED: 429,
  INTERNAL: 500,
  UNAVAILABLE: 503,
  DEADLINE_EXCEEDED: 504,
} as const;

const told = (status: keyof typeof CODES, message: string, details = ""): string =>
  `{"error":{"code":${CODES[status]},"message":"${message}","status":"${status}"${details && `,"details":[${details}]`}}}`;

const wait = (delay: string): string => `{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"${delay}"}`;
const quota = (id: string): string =>
  `{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaMetric":"requests","quotaId":"${id}"}]}`;

export const failures: Conformance["failures"] = {
  "an invalid request cannot be retried": {
    response: {
      status: 400,
      headers: {},
      body: told("INVALID_ARGUMENT", "Function call is missing a thought_signature"),
    },
    message: "INVALID_ARGUMENT: Function call is missing a thought_signature",
    reason: { kind: "invalid-request", status: 400 },
    retryable: false,
  },
  "a wrong key is an invalid argument here": {
    response: {
      status: 400,
      headers: {},
      body: told(
        "INVALID_ARGUMENT",
        "API key not valid. Please pass a valid API key.",
        `{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID","domain":"googleapis.com"}`,
      ),
    },
    message: "INVALID_ARGUMENT: API key not valid. Please pass a valid API key.",
    reason: { kind: "authentication", status: 400 },
    retryable: false,
  },
  "no credentials": {
    response: { status: 401, headers: {}, body: told("UNAUTHENTICATED", "no") },
    message: "UNAUTHENTICATED: no",
    reason: { kind: "authentication", status: 401 },
    retryable: false,
  },
  "a key without the right": {
    response: {
      status: 403,
      headers: {},
      body: told("PERMISSION_DENIED", "Your API key was reported as leaked."),
    },
    message: "PERMISSION_DENIED: Your API key was reported as leaked.",
    reason: { kind: "permission", status: 403 },
    retryable: false,
  },
  "an account or a country that may not ask": {
    response: { status: 400, headers: {}, body: told("FAILED_PRECONDITION", "User location is not supported") },
    message: "FAILED_PRECONDITION: User location is not supported",
    reason: { kind: "permission", status: 400 },
    retryable: false,
  },
  "a stored entry that is gone is called forbidden": {
    response: {
      status: 403,
      headers: {},
      body: told("PERMISSION_DENIED", "CachedContent not found (or permission denied)"),
    },
    message: "PERMISSION_DENIED: CachedContent not found (or permission denied)",
    reason: { kind: "not-found", status: 403 },
    retryable: false,
  },
  "an unknown model is not found": {
    response: { status: 404, headers: {}, body: told("NOT_FOUND", "models/x is not found") },
    message: "NOT_FOUND: models/x is not found",
    reason: { kind: "not-found", status: 404 },
    retryable: false,
  },
  "a prompt that is too long says so in words only": {
    response: {
      status: 400,
      headers: {},
      body: told(
        "INVALID_ARGUMENT",
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
      ),
    },
    message:
      "INVALID_ARGUMENT: The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
    reason: { kind: "too-large", status: 400 },
    retryable: false,
  },
  "a rate limit says how long to wait in its details": {
    response: {
      status: 429,
      headers: {},
      body: told(
        "RESOURCE_EXHAUSTED",
        "slower",
        `${quota("GenerateRequestsPerMinutePerProject")},${wait("34.074824224s")}`,
      ),
    },
    message: "RESOURCE_EXHAUSTED: slower",
    reason: { kind: "rate-limited", status: 429, retryAfterMs: 34_075 },
    retryable: true,
  },
  "the longer of two waits counts": {
    response: {
      status: 429,
      headers: { "retry-after": "40" },
      body: told("RESOURCE_EXHAUSTED", "slower", wait("7s")),
    },
    message: "RESOURCE_EXHAUSTED: slower",
    reason: { kind: "rate-limited", status: 429, retryAfterMs: 40_000 },
    retryable: true,
  },
  "a rate limit without a wait": {
    response: { status: 429, headers: {}, body: told("RESOURCE_EXHAUSTED", "Resource has been exhausted") },
    message: "RESOURCE_EXHAUSTED: Resource has been exhausted",
    reason: { kind: "rate-limited", status: 429 },
    retryable: true,
  },
  "the quota of a day does not come back within a wait": {
    response: {
      status: 429,
      headers: {},
      body: told(
        "RESOURCE_EXHAUSTED",
        "You exceeded your current quota",
        `${quota("GenerateRequestsPerDayPerProjectPerModel-FreeTier")},${wait("18s")}`,
      ),
    },
    message: "RESOURCE_EXHAUSTED: You exceeded your current quota",
    reason: { kind: "rate-limited", status: 429 },
    retryable: false,
  },
  "a model without room": {
    response: { status: 503, headers: {}, body: told("UNAVAILABLE", "The model is overloaded.") },
    message: "UNAVAILABLE: The model is overloaded.",
    reason: { kind: "overloaded", status: 503 },
    retryable: true,
  },
  "an error of the server's": {
    response: { status: 500, headers: {}, body: told("INTERNAL", "sorry") },
    message: "INTERNAL: sorry",
    reason: { kind: "server", status: 500 },
    retryable: true,
  },
  "a deadline that passed": {
    response: { status: 504, headers: {}, body: told("DEADLINE_EXCEEDED", "late") },
    message: "DEADLINE_EXCEEDED: late",
    reason: { kind: "server", status: 504 },
    retryable: true,
  },
  "an error as the only item of a list": {
    response: { status: 429, headers: {}, body: `[${told("RESOURCE_EXHAUSTED", "slower")}]` },
    message: "RESOURCE_EXHAUSTED: slower",
    reason: { kind: "rate-limited", status: 429 },
    retryable: true,
  },
  "a body that is no JSON is shown as it is": {
    response: { status: 502, headers: { "retry-after": "soon" }, body: "<html>no</html>" },
    message: "HTTP 502: <html>no</html>",
    reason: { kind: "server", status: 502 },
    retryable: true,
  },
  "an error inside a stream is known by its code": {
    response: { status: 200, headers: {}, body: told("UNAVAILABLE", "busy") },
    message: "UNAVAILABLE: busy",
    reason: { kind: "overloaded", status: 503 },
    retryable: true,
  },
  "an error inside a stream without a code is known by its name": {
    response: { status: 200, headers: {}, body: `{"error":{"message":"slower","status":"RESOURCE_EXHAUSTED"}}` },
    message: "RESOURCE_EXHAUSTED: slower",
    reason: { kind: "rate-limited", status: 429 },
    retryable: true,
  },
  "an unknown error inside a stream is the server's": {
    response: { status: 200, headers: {}, body: `{"error":{"message":"odd"}}` },
    message: "odd",
    reason: { kind: "server", status: 500 },
    retryable: true,
  },
};
