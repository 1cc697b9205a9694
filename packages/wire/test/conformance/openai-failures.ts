/** Errors and headers of OpenAI and those who speak like it, by hand. */

import type { Conformance } from "./protocol-suite.ts";

const told = (message: string, type: string, code = "null"): string =>
  `{"error":{"message":"${message}","type":"${type}","param":null,"code":${code}}}`;

export const openaiFailures: Conformance["failures"] = {
  "an invalid request cannot be retried": {
    response: {
      status: 400,
      headers: { "x-request-id": "req_1" },
      body: told("Missing required parameter: 'input'.", "invalid_request_error", `"missing_required_parameter"`),
    },
    message: "missing_required_parameter: Missing required parameter: 'input'.",
    reason: { kind: "invalid-request", status: 400 },
    retryable: false,
    requestId: "req_1",
  },
  "a wrong key cannot be retried": {
    response: {
      status: 401,
      headers: {},
      body: told("Incorrect API key", "invalid_request_error", `"invalid_api_key"`),
    },
    message: "invalid_api_key: Incorrect API key",
    reason: { kind: "authentication", status: 401 },
    retryable: false,
  },
  "an empty account looks like a rate limit and is none": {
    response: { status: 429, headers: {}, body: told("no credit", "insufficient_quota", `"insufficient_quota"`) },
    message: "insufficient_quota: no credit",
    reason: { kind: "permission", status: 429 },
    retryable: false,
  },
  "a prompt that is too long says so in its code": {
    response: {
      status: 400,
      headers: {},
      body: told("Your input exceeds the context window", "invalid_request_error", `"context_length_exceeded"`),
    },
    message: "context_length_exceeded: Your input exceeds the context window",
    reason: { kind: "too-large", status: 400 },
    retryable: false,
  },
  "an unknown model is not found": {
    response: { status: 404, headers: {}, body: told("no such model", "invalid_request_error", `"model_not_found"`) },
    message: "model_not_found: no such model",
    reason: { kind: "not-found", status: 404 },
    retryable: false,
  },
  "a rate limit says how long to wait": {
    response: { status: 429, headers: { "retry-after": "7" }, body: told("slower", "tokens", `"rate_limit_exceeded"`) },
    message: "rate_limit_exceeded: slower",
    reason: { kind: "rate-limited", status: 429, retryAfterMs: 7_000 },
    retryable: true,
  },
  "a rate limit may say how long to wait in words only": {
    response: {
      status: 429,
      headers: {},
      body: told("Limit reached. Please try again in 1.898s. See the limits.", "tokens", `"rate_limit_exceeded"`),
    },
    message: "rate_limit_exceeded: Limit reached. Please try again in 1.898s. See the limits.",
    reason: { kind: "rate-limited", status: 429, retryAfterMs: 1_898 },
    retryable: true,
  },
  "milliseconds go before seconds": {
    response: {
      status: 503,
      headers: { "retry-after": "7", "retry-after-ms": "1500" },
      body: told("busy", "server_error", `"server_is_overloaded"`),
    },
    message: "server_is_overloaded: busy",
    reason: { kind: "overloaded", status: 503, retryAfterMs: 1_500 },
    retryable: true,
  },
  "a body that is no JSON is shown as it is": {
    response: { status: 502, headers: { "retry-after": "soon" }, body: "<html>no</html>" },
    message: "HTTP 502: <html>no</html>",
    reason: { kind: "server", status: 502 },
    retryable: true,
  },
  "what the provider calls final is not retried": {
    response: { status: 500, headers: { "x-should-retry": "false" }, body: told("no", "server_error") },
    message: "server_error: no",
    reason: { kind: "server", status: 500 },
    retryable: false,
  },
  "an error as a whole body": {
    response: {
      status: 400,
      headers: {},
      body: `{"object":"error","message":"bad","type":"BadRequestError","code":400}`,
    },
    message: "BadRequestError: bad",
    reason: { kind: "invalid-request", status: 400 },
    retryable: false,
  },
  "an error that is bare text": {
    response: { status: 404, headers: {}, body: `{"error":"model 'x' not found"}` },
    message: "model 'x' not found",
    reason: { kind: "not-found", status: 404 },
    retryable: false,
  },
  "an error event inside a stream is known by its code": {
    response: {
      status: 200,
      headers: {},
      body: `{"type":"error","sequence_number":3,"code":"rate_limit_exceeded","message":"slower","param":null}`,
    },
    message: "rate_limit_exceeded: slower",
    reason: { kind: "rate-limited", status: 429 },
    retryable: true,
  },
  "a response that failed inside a stream is known by its code": {
    response: {
      status: 200,
      headers: {},
      body: `{"type":"response.failed","response":{"id":"resp_01","status":"failed","error":{"code":"server_error","message":"sorry"}}}`,
    },
    message: "server_error: sorry",
    reason: { kind: "server", status: 500 },
    retryable: true,
  },
  "a status given as the code counts inside a stream": {
    response: { status: 200, headers: {}, body: `{"error":{"code":502,"message":"upstream died"}}` },
    message: "upstream died",
    reason: { kind: "server", status: 502 },
    retryable: true,
  },
  "an invalid prompt found inside a stream is not asked again": {
    response: { status: 200, headers: {}, body: told("flagged", "invalid_request_error", `"invalid_prompt"`) },
    message: "invalid_prompt: flagged",
    reason: { kind: "invalid-request", status: 400 },
    retryable: false,
  },
  "an unknown error inside a stream is the server's": {
    response: { status: 200, headers: {}, body: `{"error":{"message":"odd"}}` },
    message: "odd",
    reason: { kind: "server", status: 500 },
    retryable: true,
  },
};

export const openaiHeaders: Conformance["headers"] = {
  "an API key and betas": {
    credential: { kind: "api-key", value: "key" },
    betas: ["one=v1", "two=v2"],
    headers: { "content-type": "application/json", "openai-beta": "one=v1,two=v2", authorization: "Bearer key" },
  },
  "no key, for a local engine": {
    credential: undefined,
    betas: [],
    headers: { "content-type": "application/json" },
  },
};
