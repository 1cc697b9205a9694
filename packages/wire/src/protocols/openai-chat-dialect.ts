/** In what those who speak Chat Completions differ, as data: what is sent, what is left out, how usage reads.
 *  Invariant: everything here is plain data, so that an endpoint is a value and no code of its own.
 *  Elsewhere: the endpoints themselves (profiles.ts), what is made of it (openai-chat-encode.ts, openai-chat-step.ts). */

import type { Ttl } from "../request.ts";
import { breakpointJson, hasBreakpoints } from "./openai-settings.ts";
import type { UsageWords } from "./openai-usage.ts";
import type { Pacing, ReadableMoment } from "./protocol.ts";

/** How a marker is spelled. `breakpoint`: OpenAI's own, on its models that have it. `control`: as Anthropic spells it. */
export type MarkerStyle = "breakpoint" | "control" | "none";

/** Fields that only some take. What is not named here is not sent. */
export type OptionalField =
  | "service_tier"
  | "reasoning_effort"
  | "verbosity"
  | "parallel_tool_calls"
  | "top_k"
  | "store"
  | "stream_options";

export type ChatDialect = {
  /** By which a journal finds the spelling again. */
  readonly name: string;
  readonly readable: ReadableMoment;
  readonly systemRole: "developer" | "system";
  /** Who speaks a note inside the conversation. */
  readonly noteRole: "developer" | "user";
  /** `parts`: a list of typed parts. `text`: bare text, where lists are refused; each text is then its own message. */
  readonly content: "parts" | "text";
  /** Markers by what the model's name begins with, the first that fits; else none. */
  readonly markers: readonly { readonly models: string; readonly style: MarkerStyle }[];
  /** Lifetimes that can be asked for by name; with none, markers have the endpoint's own. */
  readonly namedTtls: readonly Ttl[];
  readonly sends: readonly OptionalField[];
  readonly maxTokens: "max_tokens" | "max_completion_tokens";
  /** What is asked for when only the cache is to be filled: the least that is taken. */
  readonly fewestTokens: 0 | 1;
  readonly pacing: Pacing;
  /** Can a sibling read what its family shares beyond the parent? Default: yes. */
  readonly sharesTails?: boolean;
  readonly cacheKey: "prompt_cache_key" | "session_id" | "none";
  readonly user: "safety_identifier" | "user" | "none";
  /** How thinking is switched. `kept`: so that earlier thinking stays in the prompt, and with it the cache. `kwargs`: by
   *  a variable of the chat template. `object`: with effort and budget in one. */
  readonly thinking: "none" | "effort" | "type" | "kept" | "enable" | "kwargs" | "object";
  /** Under which name earlier reasoning goes back. */
  readonly reasoning: "reasoning_content" | "reasoning" | "reasoning_details" | "none";
  /** A call without reasoning must say that it has none. */
  readonly emptyReasoning: boolean;
  readonly usage: UsageWords;
  /** Why a read may go untold, where it may. */
  readonly untoldReads?: string;
};

export const markerStyle = ({ markers }: ChatDialect, model: string): MarkerStyle => {
  const style = markers.find(({ models }) => model.startsWith(models))?.style ?? "none";
  return style === "breakpoint" && !hasBreakpoints(model) ? "none" : style;
};

export const markerJson = (dialect: ChatDialect, ttl: Ttl, model: string): string => {
  switch (markerStyle(dialect, model)) {
    case "breakpoint":
      return breakpointJson(ttl);
    case "control":
      return dialect.namedTtls.includes(ttl)
        ? `,"cache_control":{"type":"ephemeral","ttl":"${ttl}"}`
        : `,"cache_control":{"type":"ephemeral"}`;
    case "none":
      return "";
  }
};
