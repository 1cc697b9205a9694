/** What a request says, independent of any provider's encoding.
 *  Invariant: everything here is plain readonly data; text that a provider wrote and may check again (tool inputs,
 *  citations, blocks only it understands) is carried as RawJson and never parsed and re-written.
 *  Elsewhere: how it becomes bytes (protocols/), how bytes are kept (prefix/). */

/** Verbatim JSON text. Its bytes matter: key order, number forms and white space are kept. */
export type RawJson = string & { readonly __rawJson?: never };

export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json };
export type JsonObject = { readonly [key: string]: Json };

/** How long a cache entry lives. Each provider offers some of these. */
export type Ttl = "5m" | "30m" | "1h" | "12h";

/** How long an entry lives after its last use. */
export const LIFETIME_MS: Readonly<Record<Ttl, number>> = {
  "5m": 5 * 60_000,
  "30m": 30 * 60_000,
  "1h": 60 * 60_000,
  "12h": 12 * 60 * 60_000,
};
export const SHORTEST_FIRST: readonly Ttl[] = ["5m", "30m", "1h", "12h"];

export type MediaSource =
  | { readonly kind: "base64"; readonly mediaType: string; readonly data: string }
  | { readonly kind: "url"; readonly url: string }
  | { readonly kind: "file"; readonly fileId: string }
  | { readonly kind: "text"; readonly text: string };

/** The block as its provider encoded it; sent instead of our own encoding if present. */
export type Verbatim = { readonly raw?: RawJson };

export type TextBlock = Verbatim & {
  readonly type: "text";
  readonly text: string;
  readonly citations?: readonly RawJson[];
};
export type ImageBlock = { readonly type: "image"; readonly source: MediaSource };
export type DocumentBlock = { readonly type: "document"; readonly source: MediaSource; readonly title?: string };
export type ThinkingBlock = Verbatim & {
  readonly type: "thinking";
  readonly thinking: string;
  readonly signature: string;
};
export type RedactedThinkingBlock = Verbatim & { readonly type: "redacted_thinking"; readonly data: string };
export type ToolUseBlock = Verbatim & {
  readonly type: "tool_use";
  readonly id: string;
  readonly name: string;
  readonly input: RawJson;
  /** Members that the provider added to its call (for instance who made it), verbatim: `"caller":{…}`. */
  readonly extras?: RawJson;
};
export type ToolResultBlock = {
  readonly type: "tool_result";
  readonly toolUseId: string;
  readonly content: readonly (TextBlock | ImageBlock | DocumentBlock)[];
  readonly isError?: boolean;
};
/** A block that only its provider understands (server tools, container files), passed through unchanged. */
export type ProviderBlock = { readonly type: "provider"; readonly kind: string; readonly json: RawJson };

export type Block =
  | TextBlock
  | ImageBlock
  | DocumentBlock
  | ThinkingBlock
  | RedactedThinkingBlock
  | ToolUseBlock
  | ToolResultBlock
  | ProviderBlock;

export type Role = "user" | "assistant" | "system";
export type Message = { readonly role: Role; readonly content: readonly Block[] };

export type ToolSpec =
  | {
      readonly type: "function";
      readonly name: string;
      readonly description: string;
      readonly inputSchema: JsonObject;
    }
  /** A tool that only its provider understands (web search, code execution), in the provider's own JSON. */
  | { readonly type: "provider"; readonly name: string; readonly json: RawJson };

export type Thinking =
  | { readonly type: "disabled" }
  | { readonly type: "adaptive" }
  | { readonly type: "between_tools" }
  | { readonly type: "enabled"; readonly budgetTokens: number };

export type ToolChoice = { readonly type: "auto" | "any" | "none" } | { readonly type: "tool"; readonly name: string };

/** Everything that can change how the provider renders the prompt, and so must be equal in parent and fork. */
export type KeySettings = {
  readonly thinking?: Thinking;
  readonly effort?: string;
  readonly verbosity?: string; // how verbose answers are; only some providers have it
  readonly toolChoice?: ToolChoice;
  readonly parallelTools?: boolean; // default: the provider's (true)
  readonly temperature?: number;
  readonly topP?: number;
  readonly topK?: number;
  readonly stopSequences?: readonly string[];
  readonly speed?: string;
  readonly serviceTier?: string;
  readonly betas?: readonly string[];
  readonly contextManagement?: JsonObject;
  readonly outputFormat?: JsonObject;
  readonly cacheKey?: string;
};

/** Everything before the first message. */
export type Head = {
  readonly model: string;
  readonly tools: readonly ToolSpec[];
  readonly system: readonly TextBlock[];
  readonly settings: KeySettings;
};

/** What is sent after the messages because it is in no cache key. */
export type Closing = {
  readonly maxTokens: number; // 0 asks the provider to fill its cache without an answer
  readonly stream: boolean;
  readonly userId?: string;
  /** Asks for the provider's own explanation of a cache miss, compared with an earlier response (null: opt in, no
   *  baseline). */
  readonly diagnoseAgainst?: string | null;
};

export const text = (value: string): TextBlock => ({ type: "text", text: value });
export const userText = (value: string): Message => ({ role: "user", content: [text(value)] });
export const toolResult = (toolUseId: string, value: string): ToolResultBlock => ({
  type: "tool_result",
  toolUseId,
  content: [text(value)],
});
