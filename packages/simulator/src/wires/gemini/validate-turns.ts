/** Do the turns follow each other as Gemini requires?
 *  Invariant: every call is answered in the next turn, by as many responses as there were calls; calls are sent back
 *  with their signature.
 *  Elsewhere: the form of each part (validate.ts), signatures (signature.ts). */

import type { Json, JsonObject } from "@prefork/wire";
import { listOf, objectOf, stringOf } from "../../body.ts";
import { invalid, type Refusal } from "../../errors.ts";
import type { ModelRules } from "../../rules/index.ts";
import { first } from "../../shape.ts";
import { field } from "./complaints.ts";
import { isForeignSignature } from "./signature.ts";

type Turn = { readonly role: string; readonly parts: readonly JsonObject[] };

/** All turns of a conversation, including stored ones. */
export const checkTurns = (contents: readonly Json[], rules: ModelRules): Refusal | undefined => {
  const turns = contents.map((entry): Turn => {
    const { role, parts } = objectOf(entry);
    return { role: stringOf(role) || "user", parts: listOf(parts).map(objectOf) };
  });
  return first(turns, (turn, at) => checkTurn(turn, at, { turns, rules }));
};

const countOf = (turn: Turn | undefined, name: string): number =>
  (turn?.parts ?? []).filter((part) => field(part, name) !== undefined).length;

type Place = { readonly turns: readonly Turn[]; readonly rules: ModelRules };

const checkTurn = (turn: Turn, at: number, { turns, rules }: Place): Refusal | undefined => {
  if (turn.role !== "user" && turn.role !== "model" && turn.role !== "function")
    return invalid("Please use a valid role: user, model.");
  const calls = turn.role === "model" ? countOf(turn, "functionCall") : 0;
  if (calls > 0 && calls !== countOf(turns[at + 1], "functionResponse"))
    return invalid(
      "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.",
    );
  const answers = countOf(turn, "functionResponse");
  if (answers > 0 && countOf(turns[at - 1], "functionCall") === 0)
    return invalid("Please ensure that function response turn comes immediately after a function call turn.");
  return calls > 0 ? checkSignatures(turn, at, rules) : undefined;
};

/** Only the first of several calls carries a signature. */
const checkSignatures = ({ parts }: Turn, at: number, { accepts, model }: ModelRules): Refusal | undefined => {
  const [call] = parts.filter((part) => field(part, "functionCall") !== undefined);
  const signature = stringOf(field(call ?? {}, "thoughtSignature"));
  const name = stringOf(objectOf(field(call ?? {}, "functionCall")).name);
  if (accepts.callSignatures && signature === "")
    return invalid(
      `Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call \`${name}\` , position ${at + 1}.`,
    );
  return isForeignSignature(signature, model) ? invalid("Thought signature is not valid.") : undefined;
};
