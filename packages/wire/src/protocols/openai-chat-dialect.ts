/** How endpoints that speak Chat Completions differ, as data: what is sent, what is left out, how usage is reported.
 *  Invariant: everything here is plain data, so that an endpoint is a value and needs no code of its own.
 *  Elsewhere: the endpoints (profiles.ts), what the data changes (openai-chat-encode.ts, openai-chat.ts). */

import type { Ttl } from "../request.ts";
import { breakpointJson, hasBreakpoints } from "./openai-settings.ts";
import type { UsagePaths } from "./openai-usage.ts";
import type { Pacing, ReadableMoment } from "./protocol.ts";

/** The form of a marker. `breakpoint`: OpenAI's own, on models that support it. `control`: Anthropic's form. */
export type MarkerStyle = "breakpoint" | "control" | "none";

/** Fields that only some endpoints accept. Fields that are not listed are not sent. */
export type OptionalField =
  | "service_tier"
  | "reasoning_effort"
  | "verbosity"
  | "parallel_tool_calls"
  | "top_k"
  | "store"
  | "stream_options";

export type ChatDialect = {
  /** A journal finds the encoding again by this name. */
  readonly name: string;
  readonly readable: ReadableMoment;
  readonly systemRole: "developer" | "system";
  /** The role of a note inside the conversation. */
  readonly noteRole: "developer" | "user";
  /** `parts`: a list of typed parts. `text`: plain text, for endpoints that refuse lists; each text is then its own
   *  message. */
  readonly content: "parts" | "text";
  /** Markers by the beginning of the model's name; the first match applies, otherwise none. */
  readonly markers: readonly { readonly models: string; readonly style: MarkerStyle }[];
  /** Lifetimes that can be requested by name; without any, markers have the endpoint's own lifetime. */
  readonly namedTtls: readonly Ttl[];
  readonly sends: readonly OptionalField[];
  readonly maxTokens: "max_tokens" | "max_completion_tokens";
  /** The smallest number of tokens that is accepted, for requests that only fill the cache. */
  readonly minMaxTokens: 0 | 1;
  readonly pacing: Pacing;
  /** Can a sibling read what its family shares beyond the parent? Default: yes. */
  readonly sharesTails?: boolean;
  readonly cacheKey: "prompt_cache_key" | "session_id" | "none";
  readonly user: "safety_identifier" | "user" | "none";
  /** How thinking is switched. `kept`: earlier thinking stays in the prompt, and with it the cache. `kwargs`: by a
   *  variable of the chat template. `object`: with effort and budget in one object. */
  readonly thinking: "none" | "effort" | "type" | "kept" | "enable" | "kwargs" | "object";
  /** The name under which earlier reasoning is sent back. */
  readonly reasoning: "reasoning_content" | "reasoning" | "reasoning_details" | "none";
  /** A call without reasoning must say so. */
  readonly emptyReasoning: boolean;
  readonly usage: UsagePaths;
  /** Why cache reads may not be reported, if so. */
  readonly unreportedReads?: string;
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
