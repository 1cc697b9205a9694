/** Gemini generateContent, put together: encode, step, headers. The base URL ends with the API's version.
 *  Elsewhere: spelling (gemini-encode.ts), reading (gemini-step.ts), errors (gemini-errors.ts), stored entries
 *  (gemini-caches.ts). */

import { encodeClosing, geminiEncoder } from "./gemini-encode.ts";
import { failure } from "./gemini-errors.ts";
import { resourceOf } from "./gemini-settings.ts";
import { end, step, whole } from "./gemini-step.ts";
import { readUsage } from "./gemini-usage.ts";
import type { Protocol } from "./protocol.ts";
import { initial } from "./reading.ts";

export const geminiHeaders: Protocol["headers"] = (credential) => ({
  "content-type": "application/json",
  ...(credential?.kind === "api-key" ? { "x-goog-api-key": credential.value } : {}),
  ...(credential?.kind === "bearer" ? { authorization: `Bearer ${credential.value}` } : {}),
});

export const gemini: Protocol = {
  name: "gemini",
  // Not documented for what is cached by itself.
  readable: "complete",
  emptyAnswers: false,
  routes: false,
  path: (model, stream) => `/${resourceOf(model)}:${stream ? "streamGenerateContent?alt=sse" : "generateContent"}`,
  encoder: geminiEncoder,
  closing: encodeClosing,
  // It caches by itself, or by name.
  marker: () => "",
  headers: geminiHeaders,
  initial,
  step,
  end,
  whole,
  failure,
  usage: readUsage,
};
