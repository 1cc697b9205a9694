/** Do the items follow each other as the provider requires?
 *  Invariant: reasoning comes before what it led to, every call has its output and every output its call, and encrypted
 *  content comes back unchanged.
 *  Elsewhere: the form of each item (validate.ts), encryption (seal.ts). */

import type { JsonObject } from "@prefork/wire";
import { stringOf } from "../../body.ts";
import { invalid, type Refusal } from "../../errors.ts";
import { first } from "../../shape.ts";
import { isOwnId, opens } from "./seal.ts";
import { typeOf } from "./validate.ts";

export type ItemTerms = {
  readonly model: string;
  /** The reasoning that one of our items was made with, by the id of that item. */
  readonly madeWith: ReadonlyMap<string, string>;
};

export const checkItems = (items: readonly JsonObject[], terms: ItemTerms): Refusal | undefined => {
  if (items.length === 0)
    return invalid("One of 'input' or 'previous_response_id' or 'prompt' or 'conversation_id' must be provided.", {
      param: "input",
      code: "missing_required_parameter",
    });
  return first(items, (item, at) => checkItem(item, at, { items, ...terms }));
};

type Place = ItemTerms & { readonly items: readonly JsonObject[] };

const checkItem = (item: JsonObject, at: number, place: Place): Refusal | undefined => {
  switch (typeOf(item)) {
    case "reasoning":
      return checkReasoning(item, at, place);
    case "function_call":
      return checkCall(item, at, place);
    case "function_call_output":
      return checkOutput(item, at, place);
    case "message":
      return item.role === "assistant" ? checkMade(item, place) : undefined;
    default:
      return undefined;
  }
};

const isHeard = (item: JsonObject): boolean =>
  (typeOf(item) === "message" && item.role !== "assistant") || typeOf(item).endsWith("_output");

const checkReasoning = (item: JsonObject, at: number, { items, model }: Place): Refusal | undefined => {
  const id = stringOf(item.id);
  const sealed = stringOf(item.encrypted_content);
  const next = items.slice(at + 1).find((later) => typeOf(later) !== "reasoning");
  if (next === undefined || isHeard(next))
    return invalid(`Item '${id}' of type 'reasoning' was provided without its required following item.`, {
      param: "input",
    });
  if (sealed === "" && isOwnId(id))
    return invalid(
      `Item with id '${id}' not found. Items are not persisted when \`store\` is set to false. Try again with \`store\` set to true, or remove this item from your input.`,
      { param: "input" },
    );
  return opens(sealed, model)
    ? undefined
    : invalid(`The encrypted content for item ${id} could not be verified.`, { code: "invalid_encrypted_content" });
};

const callId = (item: JsonObject): string => stringOf(item.call_id);

const checkCall = (item: JsonObject, at: number, place: Place): Refusal | undefined => {
  const isAnswered = place.items
    .slice(at + 1)
    .some((later) => typeOf(later) === "function_call_output" && callId(later) === callId(item));
  return isAnswered
    ? checkMade(item, place)
    : invalid(`No tool output found for function call ${callId(item)}.`, { param: "input" });
};

const checkOutput = (item: JsonObject, at: number, { items }: Place): Refusal | undefined =>
  items.slice(0, at).some((before) => typeOf(before) === "function_call" && callId(before) === callId(item))
    ? undefined
    : invalid(`No tool call found for function call output with call_id ${callId(item)}.`, { param: "input" });

/** An item that was made with reasoning must be sent back with it. */
const checkMade = (item: JsonObject, { items, madeWith }: Place): Refusal | undefined => {
  const reasoning = madeWith.get(stringOf(item.id));
  return reasoning === undefined || items.some(({ id }) => id === reasoning)
    ? undefined
    : invalid(
        `Item '${stringOf(item.id)}' of type '${typeOf(item)}' was provided without its required 'reasoning' item: '${reasoning}'.`,
        { param: "input" },
      );
};
