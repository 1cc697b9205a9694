/** OpenAI Responses, put together: encode, step, headers. The base URL ends with the API's version.
 *  Elsewhere: spelling (openai-responses-encode.ts), reading (openai-responses-step.ts), errors (openai-errors.ts). */

import { failure } from "./openai-errors.ts";
import { encodeClosing, responsesEncoder } from "./openai-responses-encode.ts";
import { end, step, whole } from "./openai-responses-step.ts";
import { breakpointJson, hasBreakpoints } from "./openai-settings.ts";
import { readTotals, responsesWords } from "./openai-usage.ts";
import type { Pacing, Protocol } from "./protocol.ts";
import { initial } from "./reading.ts";

export const openaiHeaders: Protocol["headers"] = (credential, betas) => ({
  "content-type": "application/json",
  ...(betas.length > 0 ? { "openai-beta": betas.join(",") } : {}),
  ...(credential ? { authorization: `Bearer ${credential.value}` } : {}),
});

/** Entries stand on single machines; above about fifteen requests a minute of one prefix and key, others are used too. */
export const OPENAI_PACING: Pacing = { perMinute: 15 };

export const openaiResponses: Protocol = {
  name: "openai-responses",
  // Not documented: taken to be as with others who write at breakpoints.
  readable: "first-event",
  emptyAnswers: false,
  routes: true,
  pacing: OPENAI_PACING,
  path: "/responses",
  encoder: responsesEncoder,
  closing: encodeClosing,
  marker: (ttl, model) => (hasBreakpoints(model) ? breakpointJson(ttl) : ""),
  headers: openaiHeaders,
  initial,
  step,
  end,
  whole,
  failure,
  usage: (reported) => readTotals(reported, responsesWords),
};
