/** What Gemini reports of a request's tokens, in parts that never overlap.
 *  Invariant: its prompt figure holds what was read from a cache; what its own tools put into the prompt is counted
 *  beside it; no part is below zero. Nothing is ever written for a fee.
 *  Elsewhere: which frames report (gemini-step.ts), entries that are stored by name (gemini-caches.ts). */

import type { JsonObject } from "../request.ts";
import type { Usage } from "../usage.ts";
import { asTokens, trusted } from "./reading.ts";

export const readUsage = (reported: JsonObject): Usage => {
  const count = (name: string): number => asTokens(reported[name]) ?? 0;
  const prompt = count("promptTokenCount") + count("toolUsePromptTokenCount");
  const read = Math.min(prompt, count("cachedContentTokenCount"));
  const answer = count("candidatesTokenCount");
  const thinking = asTokens(reported.thoughtsTokenCount);
  // Some endpoints count thoughts in the answer too: the total tells.
  const isInAnswer = asTokens(reported.totalTokenCount) === prompt + answer;
  const usage = {
    plain: prompt - read,
    read,
    written: {},
    output: isInAnswer ? answer : answer + (thinking ?? 0),
    ...(thinking === undefined ? {} : { thinking }),
  };
  return trusted(usage, reported);
};
