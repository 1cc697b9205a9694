/** Spelling that all request formats share.
 *  Elsewhere: each format's own (anthropic-encode.ts, openai-responses-encode.ts, openai-chat-encode.ts). */

import { authoredJson, isObject } from "../json.ts";
import type { Json, RawJson } from "../request.ts";

export type Field = readonly [string, Json | undefined];

/** Members of an object in the given order; what is undefined is left out. */
export const fields = (entries: readonly Field[]): string =>
  entries.flatMap(([key, value]) => (value === undefined ? [] : [`"${key}":${authoredJson(value)}`])).join(",");

/** A model can be cut off inside a call: its input is then no object, and must not break the whole conversation. */
export const inputJson = (input: RawJson): RawJson => (isInput(input) ? input : "{}");

export const isInput = (input: RawJson): boolean => {
  try {
    return isObject(JSON.parse(input));
  } catch {
    return false;
  }
};
