/** Which format is this body in, and which members does it have?
 *  Invariant: whatever is given, the result is a body or an InputError of one line; the bytes are never changed, so
 *  every offset refers to the given bytes.
 *  Elsewhere: recognising a format (@prefork/wire), the prompt of a body (anthropic.ts, openai.ts, gemini.ts). */

import { isUtf8 } from "node:buffer";
import { InputError, type JsonObject, type Recording } from "@prefork/wire";
import {
  endOfValue,
  type FormatName,
  guessFormat,
  heldConversation,
  isArray,
  isObject,
  parseJson,
  skipSpace,
} from "@prefork/wire/internal";
import { type BodyMember, type BodyValue, itemsAt, memberAt, membersAt, repeatedKeys, stringAt } from "./values.ts";

export type XrayProtocol = FormatName;

export type Body = {
  readonly protocol: XrayProtocol;
  readonly root: BodyValue;
  readonly members: readonly BodyMember[];
  readonly model: string;
  readonly notes: readonly string[];
};

/** `name` is what errors and notes call it; `sentTo` is the model in the request's address, for bodies that name
 *  none. */
export const readBody = (given: Recording, name: string, sentTo = ""): Body => {
  const bytes = bytesOf(given, name);
  if (!isUtf8(bytes)) throw new InputError(`${name} is not valid UTF-8`);
  if (skipSpace(bytes, 0) === bytes.length) throw new InputError(`${name} is empty`);
  const value = parseJson(bytes.toString("utf8"), name);
  if (!isObject(value)) throw new InputError(`${name} must be a JSON object, the body of a request`);
  const start = skipSpace(bytes, 0);
  const root: BodyValue = { bytes, start, end: endOfValue(bytes, start), path: "" };
  const members = membersAt(root);
  const protocol = protocolOf(value, name);
  const held = protocol === "openai-responses" ? heldConversation(value) : undefined;
  if (held !== undefined)
    throw new InputError(
      `${name} continues a conversation that the provider stores (${held}): no body shows it, so it is not compared`,
    );
  const doubled = [root, ...turnsIn(members)].flatMap((object) =>
    repeatedKeys(object).map((key) => `${name}: ${object.path || "the body"} has "${key}" twice; the last one counts`),
  );
  return { protocol, root, members, model: stringAt(memberAt(members, "model")) ?? sentTo, notes: doubled };
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

/** A byte order mark is blanked, so that offsets match the file. */
const withoutMark = (bytes: Buffer, whose: "own" | "copy"): Buffer => {
  if (bytes[0] !== 0xef || bytes[1] !== 0xbb || bytes[2] !== 0xbf) return bytes;
  const blanked = whose === "own" ? bytes : Buffer.from(bytes);
  return blanked.fill(0x20, 0, 3);
};

const turnsIn = (members: readonly BodyMember[]): readonly BodyValue[] =>
  ["messages", "input", "contents"].flatMap((key) => {
    const list = memberAt(members, key);
    return list ? itemsAt(list) : [];
  });

// --- whose format ----------------------------------------------------------------------------------------------------

const EXPECTED =
  "expected `messages` (Anthropic Messages, OpenAI Chat), `input` (OpenAI Responses) or `contents` (Gemini)";

/** A guess is good enough here: a body that is compared is only looked at. */
const protocolOf = (body: JsonObject, name: string): XrayProtocol => {
  const guess = guessFormat(body);
  if (!guess) throw new InputError(`${name} is not a request that x-ray knows: ${EXPECTED}`);
  const list = CONVERSATIONS[guess.format];
  const value = body[list];
  const isList = isArray(value) || (list === "input" && (typeof value === "string" || (value ?? null) === null));
  if (!isList) throw new InputError(`${name}: ${list} must be an array`);
  return guess.format;
};

/** The member that holds the conversation. */
const CONVERSATIONS: Readonly<Record<XrayProtocol, string>> = {
  "anthropic-messages": "messages",
  "openai-responses": "input",
  "openai-chat": "messages",
  gemini: "contents",
};
