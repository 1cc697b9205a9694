/** What did the client send, as plain JSON values?
 *  Invariant: reading never fails on a wrong type; these functions return an empty value instead.
 *  Elsewhere: which shapes are refused (wires/), what they render to (prompt/). */

import type { Json, JsonObject, Ttl } from "@prefork/wire";

/** Wire has a function of this name too. It is written twice on purpose: the simulator judges wire's encoder, so it
 *  shares no code with it. */
export const isObject = (value: Json | undefined): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

export const objectOf = (value: Json | undefined): JsonObject => (isObject(value) ? value : {});
export const listOf = (value: Json | undefined): readonly Json[] => (Array.isArray(value) ? value : []);
export const stringOf = (value: Json | undefined): string => (typeof value === "string" ? value : "");

/** Looks up a name that came from outside: `constructor` and the like are not table entries. */
export const ownEntry = <T>(table: Readonly<Record<string, T>>, name: string): T | undefined =>
  Object.hasOwn(table, name) ? table[name] : undefined;

/** `messages[1].content[0]` as the provider's error messages write it: `messages.1.content.0`. */
export const dotted = (path: string): string => path.replaceAll("[", ".").replaceAll("]", "");

/** A piece of a prompt in the form of the Messages API, whatever the client's format is. */
export type ReadBlock = {
  readonly block: JsonObject;
  /** Its path in the client's own format. */
  readonly path: string;
  /** The client sent a plain string, so `path` already names the text. */
  readonly bare?: true;
  /** Paths of fields under `path` that differ from the field's own name. */
  readonly shown?: Readonly<Record<string, string>>;
  /** A call's input as the client wrote it, if its format carries it as text. */
  readonly verbatim?: string;
  readonly marker?: Ttl;
  /** It ends a message after which a provider may end an automatic entry. */
  readonly ending?: true;
};
export type ReadMessage = {
  readonly role: string;
  readonly path: string;
  readonly blocks: readonly ReadBlock[];
  /** Settings that apply from this message on. */
  readonly settings?: Json;
};

/** String content and one text block are the same prompt; the path still names what the client wrote. */
const readBlocks = (content: Json | undefined, path: string): readonly ReadBlock[] =>
  typeof content === "string"
    ? [{ block: { type: "text", text: content }, path, bare: true }]
    : listOf(content).map((block, index) => ({ block: objectOf(block), path: `${path}[${index}]` }));

export const readSystem = (body: JsonObject): readonly ReadBlock[] => readBlocks(body.system, "system");

export const readMessages = (body: JsonObject): readonly ReadMessage[] =>
  listOf(body.messages).map((entry, index) => {
    const message = objectOf(entry);
    const path = `messages[${index}]`;
    return { role: stringOf(message.role), path, blocks: readBlocks(message.content, `${path}.content`) };
  });

/** The blocks inside a tool result, in their array form. */
export const readResultContent = (block: JsonObject): readonly ReadBlock[] => readBlocks(block.content, "content");

const integerKey = /([{,]\s*)"(\d+)"(\s*:)/g;
/** Put before keys that JavaScript would otherwise move to the front of their object. */
export const INTEGER_KEY_MARK = "\uE000";

export type ParsedBody = {
  readonly body: JsonObject;
  /** The same body with every key where the client put it; the body itself unless it has keys such as "1". */
  readonly ordered: JsonObject;
};

/** Throws SyntaxError like JSON.parse; undefined for a body that is not an object. */
export const parseBody = (source: string): ParsedBody | undefined => {
  const body = JSON.parse(source) as Json;
  if (!isObject(body)) return undefined;
  const marked = source.replace(integerKey, `$1"${INTEGER_KEY_MARK}$2"$3`);
  return { body, ordered: marked === source ? body : (JSON.parse(marked) as JsonObject) };
};
