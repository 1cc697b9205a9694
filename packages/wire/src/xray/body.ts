/** What is this body: whose format, and which members?
 *  Invariant: whatever is given, the answer is a body or an InputError of one line; the bytes are never changed, so that
 *  every offset is one of the bytes that were given.
 *  Elsewhere: the prompt that it says (anthropic.ts, openai.ts). */

import { isUtf8 } from "node:buffer";
import { InputError } from "../errors.ts";
import { endOfValue, parseJson, skipSpace } from "../json.ts";
import type { Recording } from "../recorded.ts";
import {
  type At,
  doubledKeys,
  isArrayHere,
  isObjectHere,
  isStringHere,
  itemsAt,
  type MemberAt,
  memberAt,
  membersAt,
  stringAt,
} from "./places.ts";

export type XrayProtocol = "anthropic-messages" | "openai-responses" | "openai-chat";

export type Body = {
  readonly protocol: XrayProtocol;
  readonly root: At;
  readonly members: readonly MemberAt[];
  readonly model: string;
  readonly notes: readonly string[];
};

/** `name` is what errors and notes call it. */
export const readBody = (given: Recording, name: string): Body => {
  const bytes = bytesOf(given, name);
  if (!isUtf8(bytes)) throw new InputError(`${name} is not valid UTF-8`);
  if (skipSpace(bytes, 0) === bytes.length) throw new InputError(`${name} is empty`);
  parseJson(bytes.toString("utf8"), name);
  const start = skipSpace(bytes, 0);
  const root: At = { bytes, start, end: endOfValue(bytes, start), path: "" };
  if (!isObjectHere(root)) throw new InputError(`${name} must be a JSON object, the body of a request`);
  const members = membersAt(root);
  const protocol = protocolOf(members, name);
  const doubled = [root, ...turnsIn(members)].flatMap((object) =>
    doubledKeys(object).map((key) => `${name}: ${object.path || "the body"} has "${key}" twice; the last one counts`),
  );
  return { protocol, root, members, model: stringAt(memberAt(members, "model")) ?? "", notes: doubled };
};

const bytesOf = (given: Recording, name: string): Buffer => {
  if (given instanceof Uint8Array)
    return withoutMark(Buffer.from(given.buffer, given.byteOffset, given.byteLength), "copy");
  if (typeof given === "string") return withoutMark(Buffer.from(given), "own");
  try {
    return Buffer.from(JSON.stringify(given) ?? "");
  } catch (cause) {
    throw new InputError(`${name} cannot be written as JSON: ${(cause as Error).message}`, { cause });
  }
};

/** A byte order mark is blanked, so that offsets stay those of the file. */
const withoutMark = (bytes: Buffer, whose: "own" | "copy"): Buffer => {
  if (bytes[0] !== 0xef || bytes[1] !== 0xbb || bytes[2] !== 0xbf) return bytes;
  const blanked = whose === "own" ? bytes : Buffer.from(bytes);
  return blanked.fill(0x20, 0, 3);
};

const turnsIn = (members: readonly MemberAt[]): readonly At[] =>
  ["messages", "input"].flatMap((key) => {
    const list = memberAt(members, key);
    return list ? itemsAt(list) : [];
  });

// --- whose format ----------------------------------------------------------------------------------------------------

const EXPECTED = "expected `messages` (Anthropic Messages, OpenAI Chat) or `input` (OpenAI Responses)";

const protocolOf = (members: readonly MemberAt[], name: string): XrayProtocol => {
  const has = (key: string): boolean => memberAt(members, key) !== undefined;
  const messages = memberAt(members, "messages");
  if (messages !== undefined) {
    if (!isArrayHere(messages)) throw new InputError(`${name}: messages must be an array`);
    return anthropicSigns(members, messages) > chatSigns(members, messages) ? "anthropic-messages" : "openai-chat";
  }
  const input = memberAt(members, "input");
  if (input !== undefined && (isArrayHere(input) || isStringHere(input))) return "openai-responses";
  if (has("previous_response_id") || has("instructions")) return "openai-responses";
  if (has("contents")) throw new InputError(`${name} looks like a Gemini request, which x-ray does not read`);
  throw new InputError(`${name} is no request that x-ray knows: ${EXPECTED}`);
};

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
  "functions",
  "store",
  "seed",
  "n",
];
const ANTHROPIC_BLOCKS = new Set(["tool_use", "tool_result", "thinking", "redacted_thinking", "image", "document"]);
const CHAT_ROLES = new Set(["developer", "tool", "function"]);
/** A sign that one of the two formats does not have at all. */
const DECISIVE = 10;

/** Bodies are recognised by their first messages: a hundred are enough to meet a call. */
const firstItems = (list: At): readonly At[] => itemsAt(list).slice(0, 100);

const toolMembers = (members: readonly MemberAt[]): readonly (readonly MemberAt[])[] => {
  const tools = memberAt(members, "tools");
  return tools ? firstItems(tools).map(membersAt) : [];
};

const count = (keys: readonly string[], members: readonly MemberAt[]): number =>
  keys.filter((key) => memberAt(members, key) !== undefined).length;

const anthropicSigns = (members: readonly MemberAt[], messages: At): number => {
  const ownTools = toolMembers(members).some((tool) => memberAt(tool, "input_schema") !== undefined);
  const ownBlocks = firstItems(messages).some((message) => {
    const content = memberAt(membersAt(message), "content");
    const blocks = content ? firstItems(content).map(membersAt) : [];
    return blocks.some((block) => ANTHROPIC_BLOCKS.has(stringAt(memberAt(block, "type")) ?? ""));
  });
  const named = /claude/i.test(stringAt(memberAt(members, "model")) ?? "") ? 1 : 0;
  const required = memberAt(members, "max_tokens") ? 0.5 : 0;
  return count(ANTHROPIC_MEMBERS, members) + named + required + (ownTools || ownBlocks ? DECISIVE : 0);
};

const chatSigns = (members: readonly MemberAt[], messages: At): number => {
  const ownTools = toolMembers(members).some((tool) => memberAt(tool, "function") !== undefined);
  const turns = firstItems(messages).map(membersAt);
  const ownTurns = turns.some((turn, index) => {
    const role = stringAt(memberAt(turn, "role")) ?? "";
    return CHAT_ROLES.has(role) || (role === "system" && index === 0) || memberAt(turn, "tool_calls") !== undefined;
  });
  return count(CHAT_MEMBERS, members) + (ownTools || ownTurns ? DECISIVE : 0);
};
