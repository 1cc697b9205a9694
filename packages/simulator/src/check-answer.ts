/** Did the script return an answer that can be sent?
 *  Invariant: an answer that passes can be counted and cut into events without further checks; a failure is one line.
 *  Elsewhere: the type of a script (script.ts), what becomes of an answer (answer.ts). */

import { ownEntry } from "./body.ts";
import type { SimAnswer } from "./script.ts";

type Fields = Readonly<Record<string, unknown>>;
type Rule = { readonly fits: (value: unknown) => boolean; readonly words: string };
type Rules = Readonly<Record<string, Rule>>;

const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const string: Rule = { fits: (value) => typeof value === "string", words: "a string" };
const object: Rule = { fits: isFields, words: "an object" };
const list: Rule = { fits: Array.isArray, words: "a list" };
const count: Rule = { fits: (value) => Number.isInteger(value) && (value as number) >= 0, words: "a whole number" };
const optional = ({ fits, words }: Rule): Rule => ({
  fits: (value) => value === undefined || value === null || fits(value),
  words,
});

const call: Rules = { name: string, input: object, id: optional(string), inputJson: optional(string) };

const blockRules: Readonly<Record<string, Rules>> = {
  text: { text: string, citations: optional(list) },
  thinking: { thinking: string, signature: optional(string) },
  redacted_thinking: { data: string },
  tool_use: call,
  server_tool_use: call,
};

const answerRules: Rules = {
  content: { fits: Array.isArray, words: "a list of blocks" },
  stopReason: optional(string),
  stopSequence: optional(string),
  outputTokens: optional(count),
  model: optional(string),
};

/** The answer unchanged; throws if it is not one. */
export const checkedAnswer = (answer: unknown): SimAnswer => {
  const complaint = answerComplaint(answer);
  if (complaint !== undefined) throw new TypeError(complaint);
  return answer as SimAnswer;
};

const answerComplaint = (answer: unknown): string | undefined => {
  const shape = isFields(answer) ? misfit(answer, answerRules, "answer") : "answer must be an object with content";
  if (shape !== undefined) return shape;
  for (const [index, block] of (answer as SimAnswer).content.entries()) {
    const complaint = blockComplaint(block, `answer.content[${index}]`);
    if (complaint !== undefined) return complaint;
  }
  return undefined;
};

const blockComplaint = (block: unknown, place: string): string | undefined => {
  if (!isFields(block)) return `${place} must be an object`;
  const type = String(block.type);
  const rules = ownEntry(blockRules, type);
  if (rules === call && typeof block.inputJson === "string") return misfit({ input: {}, ...block }, rules, place);
  if (rules !== undefined) return misfit(block, rules, place);
  if (type.endsWith("_tool_result")) return undefined;
  return `${place}.type must be ${Object.keys(blockRules).join(", ")} or end in _tool_result`;
};

const misfit = (value: Fields, rules: Rules, place: string): string | undefined => {
  const wrong = Object.entries(rules).find(([name, { fits }]) => !fits(value[name]));
  return wrong && `${place}.${wrong[0]} must be ${wrong[1].words}`;
};
