/** What a recording is, and what every reader returns.
 *  Invariant: text and bytes are used unchanged; only an object is encoded here, and a note says so.
 *  Elsewhere: cutting the bytes (slicing.ts), each format's own lists (anthropic.ts, openai-responses.ts,
 *  openai-chat.ts). */

import { isUtf8 } from "node:buffer";
import { InputError } from "../errors.ts";
import { isObject, type Member, membersOf, parseJson, skipSpace } from "../json.ts";
import type { FrozenPrefix, Marker } from "../prefix/index.ts";
import type { Protocol } from "../protocols/index.ts";
import type { Json, JsonObject, Message, Ttl } from "../request.ts";

/** JSON as text, as bytes, or as an object, which has lost its own formatting. */
export type Recording = string | Uint8Array | JsonObject;

export type RecordedRequest = {
  readonly prefix: FrozenPrefix;
  /** Everything after the open message's own closing, verbatim. */
  readonly closing: string;
  readonly markers: readonly Marker[];
  readonly value: JsonObject;
  readonly notes: readonly string[];
};

/** A recorded request as the parent of a family. */
export type RecordedParent = RecordedRequest & {
  readonly protocol: Protocol;
  readonly stream: boolean;
  /** Its provider also marks the end of the last message by itself. */
  readonly implicit: boolean;
  /** The default lifetime of new markers: the same as in the recording. */
  readonly ttl: Ttl;
  /** New user text drops the thinking since the last user message, and the cache ends there. */
  readonly strips: boolean;
  /** There is such thinking. */
  readonly thinks: boolean;
  /** Unanswered custom tool calls, by id: their input is text, not JSON. */
  readonly textCalls: readonly string[];
};

/** The answer that a parent got, as the turn that its family continues from. */
export type RecordedAnswer = {
  readonly inFlight: Message | FrozenPrefix;
  readonly textCalls: readonly string[];
  readonly notes: readonly string[];
};

/** A recording as bytes and as a value. */
export type RecordedBody = { readonly bytes: Buffer; readonly value: JsonObject };

/** What is known besides the body. Readers add to the notes. */
export type ReadingTerms = { readonly protocol: Protocol; readonly betas: readonly string[]; readonly notes: string[] };

export type FormatReader = {
  readonly parent: (given: RecordedBody, reading: ReadingTerms) => RecordedParent;
  readonly answer: (given: RecordedBody, parent: RecordedParent) => RecordedAnswer;
};

/** `name` is what errors call it. */
const bytesOfRecording = (given: Recording, name: string): Buffer => {
  if (typeof given === "string" || given instanceof Uint8Array) return Buffer.from(given);
  try {
    return Buffer.from(JSON.stringify(given) ?? "");
  } catch (cause) {
    throw new InputError(`${name} cannot be written as JSON: ${(cause as Error).message}`, { cause });
  }
};

export const PARENT = "the recorded request";
export const ANSWER = "the parent's answer";

export const readRecording = (given: Recording, name: string, notes: string[]): RecordedBody => {
  if (name === PARENT && typeof given !== "string" && !(given instanceof Uint8Array))
    notes.push("given as an object: number and key forms may differ from the bytes that were sent");
  const bytes = bytesOfRecording(given, name);
  if (!isUtf8(bytes)) throw new InputError(`${name} is not valid UTF-8`);
  const value: Json = parseJson(bytes.toString("utf8"), name);
  if (!isObject(value)) throw new InputError(`${name} must be a JSON object`);
  return { bytes, value };
};

/** JSON readers differ in which of two equal keys they use, and here both would be sent. */
export const uniqueMembers = (bytes: Buffer, from: number, name: string): readonly Member[] => {
  const members = membersOf(bytes, skipSpace(bytes, from));
  const keys = new Set<string>();
  for (const { key } of members) {
    if (keys.has(key)) throw new InputError(`${name} has "${key}" twice`);
    keys.add(key);
  }
  return members;
};

/** The member that names a conversation which the provider keeps; undefined if the body contains all of it. */
export const heldConversation = (body: JsonObject): string | undefined =>
  ["previous_response_id", "conversation"].find((key) => (body[key] ?? null) !== null);
