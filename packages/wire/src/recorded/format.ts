/** Which wire format is this body in, and how is it read?
 *  Invariant: decided by what a body contains and never by where it was sent; a body that fits two formats is called
 *  uncertain, and the caller decides whether a guess is good enough. A recording of an unknown or uncertain format is
 *  refused before anything is made from it.
 *  Elsewhere: reading each format (anthropic.ts, openai-responses.ts, openai-chat.ts), what a family is
 *  (../fork-requests.ts). */

import { InputError } from "../errors.ts";
import { isArray, isObject } from "../json.ts";
import { anthropic, openaiChat, openaiResponses, type Protocol, plainChat, profiles } from "../protocols/index.ts";
import type { Json, JsonObject } from "../request.ts";
import { anthropicReader } from "./anthropic.ts";
import { chatReader } from "./openai-chat.ts";
import { responsesReader } from "./openai-responses.ts";
import {
  ANSWER,
  type FormatReader,
  PARENT,
  type RecordedAnswer,
  type RecordedParent,
  type Recording,
  readRecording,
} from "./recording.ts";

// --- signs -----------------------------------------------------------------------------------------------------------

const ANTHROPIC_MEMBERS = ["system", "thinking", "output_config", "anthropic_version", "stop_sequences", "top_k"];
const CHAT_MEMBERS = [
  "max_completion_tokens",
  "frequency_penalty",
  "presence_penalty",
  "response_format",
  "reasoning_effort",
  "stream_options",
  "parallel_tool_calls",
  "prompt_cache_key",
  "prompt_cache_options",
  "functions",
  "store",
  "seed",
  "n",
];
const ANTHROPIC_BLOCKS = new Set<Json | undefined>([
  "tool_use",
  "tool_result",
  "thinking",
  "redacted_thinking",
  "image",
  "document",
]);
const CHAT_ROLES = new Set<Json | undefined>(["developer", "tool", "function"]);
const CHAT_PARTS = new Set<Json | undefined>(["image_url", "input_audio", "file"]);
/** A feature that the other format does not have at all. */
const DECISIVE = 10;

/** How many features of each format a body with `messages` has. */
type Signs = { readonly anthropic: number; readonly chat: number };

const signsIn = (body: JsonObject): Signs => {
  const messages = firstObjects(body.messages);
  const tools = firstObjects(body.tools);
  return { anthropic: anthropicSigns(body, messages, tools), chat: chatSigns(body, messages, tools) };
};

/** The first hundred messages are enough to find a call. */
const firstObjects = (list: Json | undefined): readonly JsonObject[] =>
  isArray(list) ? list.slice(0, 100).map((item) => (isObject(item) ? item : {})) : [];

const has = (body: JsonObject, key: string): boolean => body[key] !== undefined && body[key] !== null;

const count = (keys: readonly string[], body: JsonObject): number => keys.filter((key) => has(body, key)).length;

type Listed = readonly JsonObject[];

const partsAre = (messages: Listed, types: ReadonlySet<Json | undefined>): boolean =>
  messages.some(({ content }) => firstObjects(content).some(({ type }) => types.has(type)));

const anthropicSigns = (body: JsonObject, messages: Listed, tools: Listed): number => {
  const own = tools.some((tool) => has(tool, "input_schema")) || partsAre(messages, ANTHROPIC_BLOCKS);
  // A gateway's prefix says nothing, because gateways speak both formats.
  const named = /^(?!anthropic\/).*claude/i.test(String(body.model)) ? 1 : 0;
  const required = has(body, "max_tokens") ? 0.5 : 0;
  return count(ANTHROPIC_MEMBERS, body) + named + required + (own ? DECISIVE : 0);
};

const chatSigns = (body: JsonObject, messages: Listed, tools: Listed): number => {
  const ownTurns = messages.some(
    (turn, index) => CHAT_ROLES.has(turn.role) || (turn.role === "system" && index === 0) || has(turn, "tool_calls"),
  );
  const own = ownTurns || tools.some((tool) => has(tool, "function")) || partsAre(messages, CHAT_PARTS);
  return count(CHAT_MEMBERS, body) + (OPENAI_MODEL.test(String(body.model)) ? 1 : 0) + (own ? DECISIVE : 0);
};

// --- who is asked ----------------------------------------------------------------------------------------------------

/** OpenAI's own models, also behind a gateway, but not its open models, which anybody can serve. */
const OPENAI_MODEL = /(?:^|\/|ft:)(?:gpt-(?!oss)|chatgpt-|codex-|o\d)/;

/** The four wire formats that a recorded body can be in. */
export type FormatName = "anthropic-messages" | "openai-responses" | "openai-chat" | "gemini";

/** `isCertain` is false for a body that could be Anthropic Messages as well as Chat Completions. */
export type FormatGuess = { readonly format: FormatName; readonly isCertain: boolean };

export const guessFormat = (body: JsonObject): FormatGuess | undefined => {
  if (has(body, "messages")) {
    const signs = signsIn(body);
    const lead = signs.anthropic - signs.chat;
    // Anthropic refuses a request that does not say how long its answer may be.
    const isCertain = lead >= 1 || lead < 0 || !has(body, "max_tokens");
    return { format: lead > 0 ? "anthropic-messages" : "openai-chat", isCertain };
  }
  if (["input", "instructions", "previous_response_id", "conversation"].some((key) => has(body, key)))
    return { format: "openai-responses", isCertain: true };
  return has(body, "contents") ? { format: "gemini", isCertain: true } : undefined;
};

const EXPECTED = "expected `messages` (Anthropic Messages, OpenAI Chat) or `input` (OpenAI Responses)";
const NAME_IT = "say which with `format`";

/** The protocol of a body, or an error of one line. */
const protocolOf = (body: JsonObject): Protocol => {
  if (has(body, "messages") && has(body, "input"))
    throw new InputError(`${PARENT} has both \`messages\` and \`input\`: ${NAME_IT}`);
  const guess = guessFormat(body);
  if (guess && !guess.isCertain)
    throw new InputError(`${PARENT} can be an Anthropic Messages or an OpenAI Chat body: ${NAME_IT}`);
  switch (guess?.format) {
    case "anthropic-messages":
      return anthropic;
    case "openai-chat":
      return chatOf(body);
    case "openai-responses":
      return openaiResponses;
    case "gemini":
      throw new InputError(`${PARENT} looks like a Gemini request, which cannot be forked`);
    case undefined:
      throw new InputError(`${PARENT} cannot be forked: ${EXPECTED}`);
  }
};

/** A Chat Completions body belongs to OpenAI if the model is OpenAI's, or to an endpoint that accepts its kind of
 *  markers. Otherwise nothing is assumed: plain text, and an entry is readable only after its answer is complete. */
const chatOf = (body: JsonObject): Protocol => {
  if (OPENAI_MODEL.test(String(body.model))) return openaiChat;
  if (!isControlled(body)) return plainChat;
  const taken = String(body.model).includes("/") ? "openrouter" : "dashscope";
  return profiles.get(taken)?.protocol ?? plainChat;
};

const isControlled = (body: JsonObject): boolean => {
  const messages = isArray(body.messages) ? body.messages.filter(isObject) : [];
  const parts = messages.flatMap(({ content }) => (isArray(content) ? content.filter(isObject) : []));
  return [body, ...messages, ...parts].some(({ cache_control }) => isObject(cache_control));
};

// --- reading a recording ---------------------------------------------------------------------------------------------

/** Readers by the path that their format is sent to. */
const readers: ReadonlyMap<Protocol["path"], FormatReader> = new Map([
  [anthropic.path, anthropicReader],
  [openaiResponses.path, responsesReader],
  [openaiChat.path, chatReader],
]);

const readerOf = ({ name, path }: Protocol): FormatReader => {
  const reader = readers.get(path);
  if (!reader) throw new InputError(`requests in the format of ${name} cannot be forked from a recording`);
  return reader;
};

export type ParentOptions = {
  readonly betas?: readonly string[] | undefined;
  readonly format?: Protocol | undefined; // default: recognised from the body
};

export const readParent = (body: Recording, { betas = [], format }: ParentOptions = {}): RecordedParent => {
  const notes: string[] = [];
  const given = readRecording(body, PARENT, notes);
  const protocol = format ?? protocolOf(given.value);
  return readerOf(protocol).parent(given, { protocol, betas, notes });
};

export const readAnswer = (answer: Recording, parent: RecordedParent): RecordedAnswer =>
  readerOf(parent.protocol).answer(readRecording(answer, ANSWER, []), parent);
