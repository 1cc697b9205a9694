/** Converts a request in any wire format to the form of the Messages API.
 *  Invariant: consecutive turns of one speaker become one, as a model sees them; tool results belong to the user. So
 *  what a script reads does not depend on the wire format.
 *  Elsewhere: what each format's items mean (wires/), what scripts read (script.ts). */

import type { Json, JsonObject } from "@prefork/wire";
import { isObject, type ReadBlock, type ReadMessage } from "./body.ts";

/** Joins consecutive turns of one speaker. */
export const mergeTurns = (turns: readonly ReadMessage[]): readonly ReadMessage[] => {
  const merged: (ReadMessage & { readonly blocks: ReadBlock[] })[] = [];
  for (const { role, path, blocks } of turns) {
    const last = merged.at(-1);
    if (last?.role === role) last.blocks.push(...blocks);
    else merged.push({ role, path, blocks: [...blocks] });
  }
  return merged;
};

export type NeutralRequest = {
  readonly model: string;
  readonly stream: boolean;
  readonly maxTokens: Json | undefined;
  /** Name, description and `input_schema`. */
  readonly tools: readonly JsonObject[];
  readonly system: readonly ReadBlock[];
  readonly messages: readonly ReadMessage[];
};

export const neutralBody = ({ model, stream, maxTokens, tools, system, messages }: NeutralRequest): JsonObject => ({
  model,
  ...(maxTokens === undefined || maxTokens === null ? {} : { max_tokens: maxTokens }),
  ...(tools.length === 0 ? {} : { tools }),
  ...(system.length === 0 ? {} : { system: system.map(({ block }) => block) }),
  messages: messages.map(({ role, blocks }) => ({ role, content: blocks.map(({ block }) => block) })),
  stream,
});

/** A call's arguments as an object; an empty one if they are not an object. */
export const inputOf = (text: string): JsonObject => {
  try {
    const value = JSON.parse(text) as Json;
    return isObject(value) ? value : {};
  } catch {
    return {};
  }
};

/** Only parameters that are present: an absent or null parameter is in no key. */
export const presentOnly = <T extends string>(
  fields: Readonly<Partial<Record<T, Json | undefined>>>,
): Partial<Record<T, Json>> =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined && value !== null)) as Partial<
    Record<T, Json>
  >;
