/** Any recorded body as the parent of a family, and the answer that it got.
 *  Invariant: a body of no known format, or of two, is refused before anything is made of it.
 *  Elsewhere: whose format it is (format.ts), what the family is (../fork-requests.ts). */

import { InputError } from "../errors.ts";
import { anthropic, openaiChat, openaiResponses, type Protocol } from "../protocols/index.ts";
import { anthropicReader } from "./anthropic.ts";
import { protocolOf } from "./format.ts";
import { chatReader } from "./openai-chat.ts";
import { responsesReader } from "./openai-responses.ts";
import {
  ANSWER,
  type FormatReader,
  PARENT,
  type RecordedAnswer,
  type RecordedParent,
  type Recording,
  readGiven,
} from "./recording.ts";

/** Who speaks a format is known by the path that it is sent to. */
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
  readonly format?: Protocol | undefined; // default: told by the body
};

export const readParent = (body: Recording, { betas = [], format }: ParentOptions = {}): RecordedParent => {
  const notes: string[] = [];
  const given = readGiven(body, PARENT, notes);
  const protocol = format ?? protocolOf(given.value);
  return readerOf(protocol).parent(given, { protocol, betas, notes });
};

export const readAnswer = (answer: Recording, parent: RecordedParent): RecordedAnswer =>
  readerOf(parent.protocol).answer(readGiven(answer, ANSWER, []), parent);
