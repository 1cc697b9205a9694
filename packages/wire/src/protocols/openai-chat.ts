/** Chat Completions, put together for a dialect: encode, step, headers. The base URL ends with the API's version.
 *  Elsewhere: spelling (openai-chat-encode.ts), reading (openai-chat-step.ts), who speaks which dialect (profiles.ts). */

import { type ChatDialect, markerJson } from "./openai-chat-dialect.ts";
import { chatEncoder, encodeChatClosing } from "./openai-chat-encode.ts";
import { end, stepOf, wholeOf } from "./openai-chat-step.ts";
import { failure } from "./openai-errors.ts";
import { OPENAI_PACING, openaiHeaders } from "./openai-responses.ts";
import { chatWords, readTotals } from "./openai-usage.ts";
import type { Protocol } from "./protocol.ts";
import { initial } from "./reading.ts";

export const chatProtocol = (dialect: ChatDialect): Protocol => ({
  name: dialect.name,
  readable: dialect.readable,
  emptyAnswers: dialect.fewestTokens === 0,
  routes: dialect.cacheKey !== "none",
  ...(dialect.untoldReads === undefined ? {} : { untoldReads: dialect.untoldReads }),
  pacing: dialect.pacing,
  ...(dialect.sharesTails === undefined ? {} : { sharesTails: dialect.sharesTails }),
  path: "/chat/completions",
  encoder: chatEncoder(dialect),
  closing: (closing, model) => encodeChatClosing(dialect, closing, model),
  marker: (ttl, model) => markerJson(dialect, ttl, model),
  headers: openaiHeaders,
  initial,
  step: stepOf(dialect),
  end,
  whole: wholeOf(dialect),
  failure,
  usage: (reported) => readTotals(reported, dialect.usage),
});

/** OpenAI's own. */
export const openaiDialect: ChatDialect = {
  name: "openai-chat",
  readable: "first-event",
  systemRole: "developer",
  noteRole: "developer",
  content: "parts",
  markers: [{ models: "", style: "breakpoint" }],
  namedTtls: [],
  sends: ["service_tier", "verbosity", "parallel_tool_calls", "store", "stream_options"],
  maxTokens: "max_completion_tokens",
  fewestTokens: 1,
  pacing: OPENAI_PACING,
  cacheKey: "prompt_cache_key",
  user: "safety_identifier",
  thinking: "effort",
  reasoning: "none",
  emptyReasoning: false,
  usage: chatWords,
};

export const openaiChat: Protocol = chatProtocol(openaiDialect);
