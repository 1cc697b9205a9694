/** Anthropic Messages, put together: encode, step, headers. Also spoken by compatible endpoints.
 *  Elsewhere: spelling (anthropic-encode.ts), reading (anthropic-step.ts), errors (anthropic-errors.ts), sending
 *  (../client.ts). */

import { anthropicEncoder, encodeClosing, encodeMarker } from "./anthropic-encode.ts";
import { failure } from "./anthropic-errors.ts";
import { end, readUsage, step, whole } from "./anthropic-step.ts";
import type { Protocol } from "./protocol.ts";
import { initial } from "./reading.ts";

const API_VERSION = "2023-06-01";

const headers: Protocol["headers"] = (credential, betas) => ({
  "content-type": "application/json",
  "anthropic-version": API_VERSION,
  ...(betas.length > 0 ? { "anthropic-beta": betas.join(",") } : {}),
  ...(credential?.kind === "api-key" ? { "x-api-key": credential.value } : {}),
  ...(credential?.kind === "bearer" ? { authorization: `Bearer ${credential.value}` } : {}),
});

export const anthropic: Protocol = {
  name: "anthropic",
  readable: "first-event",
  emptyAnswers: true,
  routes: false,
  path: "/v1/messages",
  encoder: anthropicEncoder,
  closing: encodeClosing,
  marker: encodeMarker,
  headers,
  initial,
  step,
  end,
  whole,
  failure,
  usage: readUsage,
};
