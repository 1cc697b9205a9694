/** A recorded OpenAI Responses body: its items, the calls it leaves open, and the response that it got.
 *  Invariant: an item is used byte for byte or left out with a note; a conversation that only the provider has cannot
 *  be used.
 *  Elsewhere: parts and breakpoints (openai-parts.ts), cutting the bytes (slicing.ts). */

import { InputError } from "../errors.ts";
import type { TailOptions } from "../fork-messages.ts";
import { authoredJson, isArray, isObject, isStringAt, itemsOf, type Member } from "../json.ts";
import { FORK_PLACEHOLDER_RESULT } from "../prefix/index.ts";
import { readItem } from "../protocols/index.ts";
import type { Block, Json, JsonObject, ProviderBlock, RawJson, Role } from "../request.ts";
import {
  checkContent,
  checkHead,
  contentMark,
  type ItemAt,
  type ItemList,
  memberOf,
  type PartSyntax,
  readItems,
  type Turn,
  userCuts,
  wholeItemCut,
} from "./openai-parts.ts";
import {
  ANSWER,
  type FormatReader,
  heldConversation,
  PARENT,
  type RecordedParent,
  uniqueMembers,
} from "./recording.ts";
import { listLast } from "./slicing.ts";

const syntax: PartSyntax = {
  open: `[{"type":"input_text","text":`,
  markable: new Set(["input_text", "input_image", "input_file", "input_audio"]),
};

// --- what is refused -------------------------------------------------------------------------------------------------

const HELD = "the rest of its prompt is kept by the provider and in no bytes";

const validate = (value: JsonObject): void => {
  checkHead(value);
  const key = heldConversation(value);
  if (key !== undefined)
    throw new InputError(`${PARENT} has ${key}: ${HELD}; record one that carries its whole input, without ${key}`);
  const { input, instructions, prompt_cache_options: options } = value;
  if (isObject(options) && options.prewarm === true)
    throw new InputError(`${PARENT} only fills the cache: prewarm is true`);
  if ((instructions ?? null) !== null && typeof instructions !== "string")
    throw new InputError("instructions must be a string");
  if (typeof input !== "string" && !isArray(input))
    throw new InputError(`${PARENT} has no \`input\`, a string or an array`);
  if (input.length === 0) throw new InputError(`${PARENT}'s \`input\` is empty`);
  if (isArray(input)) checkItems(input, "input");
};

const ROLES: ReadonlySet<Json | undefined> = new Set(["user", "assistant", "system", "developer"]);

const checkItems = (items: readonly Json[], name: string): void =>
  items.forEach((item, index) => {
    const place = `${name}[${index}]`;
    if (!isObject(item)) throw new InputError(`${place} is not an object`);
    if (typeOf(item) === "") throw new InputError(`${place} has neither a type nor a role`);
    if (typeOf(item) !== "message") return;
    if (!ROLES.has(item.role)) throw new InputError(`${place}.role must be user, assistant, system or developer`);
    checkContent(item.content, `${place}.content`);
  });

const typeOf = ({ type, role }: JsonObject): string => {
  if (typeof type === "string") return type;
  return role === undefined ? "" : "message";
};

// --- items -----------------------------------------------------------------------------------------------------------

const roleOf = (item: JsonObject): Role => {
  const type = typeOf(item);
  if (type !== "message") return type.endsWith("_output") ? "user" : "assistant";
  return item.role === "user" || item.role === "assistant" ? item.role : "system";
};

/** Results whose parts can carry a breakpoint. */
const RESULTS = new Set(["function_call_output", "custom_tool_call_output"]);

const turnOf = (bytes: Buffer, item: ItemAt, marks: boolean): Turn => {
  const role = roleOf(item.value);
  const isHeard = typeOf(item.value) === "message" && role !== "assistant";
  if (isHeard) return { role, cuts: userCuts(bytes, item, { syntax, marks }) };
  const output = RESULTS.has(typeOf(item.value)) ? memberOf(item, "output") : undefined;
  return { role, cuts: [{ ...wholeItemCut(item), ...(output ? contentMark(bytes, output, syntax) : {}) }] };
};

/** A plain text is one user message, and must become a list before anything can follow it. */
const asList = (bytes: Buffer, notes: string[]): Buffer => {
  const input = uniqueMembers(bytes, 0, PARENT).find(({ key }) => key === "input") as Member;
  if (!isStringAt(bytes, input.start)) return bytes;
  notes.push("input was a string: sent as the list of one message that it stands for");
  return Buffer.concat([
    bytes.subarray(0, input.start),
    Buffer.from(`[{"type":"message","role":"user","content":`),
    bytes.subarray(input.start, input.end),
    Buffer.from("}]"),
    bytes.subarray(input.end),
  ]);
};

const itemsIn = ({ input }: JsonObject): readonly JsonObject[] => {
  if (typeof input === "string") return [{ type: "message", role: "user", content: input }];
  return isArray(input) ? input.filter(isObject) : [];
};

/** Reasoning with nothing after it is refused when it is sent again. */
const withoutLastThoughts = (items: readonly JsonObject[], notes: string[]): readonly JsonObject[] => {
  const kept = items.slice(0, items.findLastIndex((item) => typeOf(item) !== "reasoning") + 1);
  if (kept.length === 0) throw new InputError(`${PARENT}'s \`input\` has nothing but reasoning`);
  if (kept.length < items.length)
    notes.push(`left out: reasoning at the end of input, from input[${kept.length}] on, as nothing follows it`);
  return kept;
};

// --- calls -----------------------------------------------------------------------------------------------------------

type OpenCalls = { readonly pending: readonly string[]; readonly textCalls: readonly string[] };

/** Calls without a result, by id. Calls of the provider's own tools have no such id. */
const openCalls = (items: readonly JsonObject[], name: string): OpenCalls => {
  const answered = new Set(items.filter((item) => typeOf(item).endsWith("_output")).map(({ call_id }) => call_id));
  const open = items.flatMap((item) => {
    const { call_id: id } = item;
    return typeof id === "string" && typeOf(item).endsWith("_call") && !answered.has(id)
      ? [{ id, type: typeOf(item) }]
      : [];
  });
  const other = open.find(({ type }) => type !== "function_call" && type !== "custom_tool_call");
  if (other)
    throw new InputError(
      `${name} has a ${other.type} without a result, which only its own loop can give: record the request that has it`,
    );
  const ids = (kind: string): readonly string[] => open.filter(({ type }) => type === kind).map(({ id }) => id);
  return { pending: ids("function_call"), textCalls: ids("custom_tool_call") };
};

/** Results of custom tool calls, whose input is text: only the item's type differs. */
export const answerTextCalls = (
  { protocol, prefix }: RecordedParent,
  ids: readonly string[],
  { results = [], placeholders = "forks" }: Pick<TailOptions, "results" | "placeholders">,
): readonly ProviderBlock[] => {
  const asParts = protocol.marker("30m", prefix.model) !== "";
  return ids.map((id) => {
    const known = placeholders === "all" ? undefined : results.find(({ toolUseId }) => toolUseId === id);
    const resultText = known?.content.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("\n\n");
    const text = resultText ?? FORK_PLACEHOLDER_RESULT;
    const kind = "custom_tool_call_output";
    const output: Json = asParts && text !== "" ? [{ type: "input_text", text }] : text;
    return { type: "provider", kind, json: authoredJson({ type: kind, call_id: id, output }) };
  });
};

// --- the body --------------------------------------------------------------------------------------------------------

/** Models without breakpoints forget their reasoning at the next user message, unless told otherwise. */
const forgets = ({ reasoning }: JsonObject, marks: boolean): boolean => {
  const context = isObject(reasoning) ? reasoning.context : undefined;
  return context === "current_turn" || (context !== "all_turns" && !marks);
};

const isUserMessage = (item: JsonObject): boolean => typeOf(item) === "message" && item.role === "user";

const readBody: FormatReader["parent"] = ({ bytes, value }, reading) => {
  validate(value);
  const { notes } = reading;
  const listed = asList(listLast(bytes, { list: "input", early: ["tools", "instructions"], notes }), notes);
  const items = withoutLastThoughts(itemsIn(value), notes);
  const { pending, textCalls } = openCalls(items, PARENT);
  const list: ItemList = {
    value,
    name: "input",
    items,
    turnOf,
    pending,
    marker: { keys: ["prompt_cache_breakpoint"], inside: ["output"] },
  };
  const { marks, ...read } = readItems(listed, list, reading);
  const thinks = items.slice(items.findLastIndex(isUserMessage) + 1).some((item) => typeOf(item) === "reasoning");
  return { ...read, strips: thinks && forgets(value, marks), thinks, textCalls };
};

// --- the answer ------------------------------------------------------------------------------------------------------

/** Reasoning that was neither stored nor encrypted cannot be found again. */
const isLost = (item: JsonObject, { store }: JsonObject): boolean =>
  store === false &&
  typeOf(item) === "reasoning" &&
  typeof item.encrypted_content !== "string" &&
  !(isArray(item.content) && item.content.length > 0);

/** Marks an answer that is nothing but reasoning; the encoder replaces it with a line that says so. */
const EMPTY_ANSWER: Block = { type: "thinking", thinking: "", signature: "" };

const notesOn = (blocks: readonly Block[], lost: number): readonly string[] => {
  const kept = blocks.findLastIndex(({ type }) => type !== "thinking") + 1;
  const cutOff = blocks.flatMap((block) => (block.type === "tool_use" && block.raw === undefined ? [block.id] : []));
  return [
    ...(lost > 0 ? ["left out of the answer: reasoning that was neither stored nor sealed"] : []),
    ...(kept < blocks.length ? ["left out of the answer: reasoning at its end, as nothing follows it"] : []),
    ...cutOff.map((id) => `call ${id} was cut off: it is sent without its input`),
  ];
};

const readResponse: FormatReader["answer"] = ({ bytes, value }, parent) => {
  const output = uniqueMembers(bytes, 0, ANSWER).find(({ key }) => key === "output");
  if (!output || !isArray(value.output) || value.output.length === 0)
    throw new InputError(`${ANSWER} must be a response with an \`output\` array that is not empty`);
  checkItems(value.output, `${ANSWER}: output`);
  const items = value.output.filter(isObject);
  const raws = itemsOf(bytes, output.start).map(({ start, end }): RawJson => bytes.toString("utf8", start, end));
  const kept = raws.filter((_, index) => !isLost(items[index] ?? {}, parent.value));
  const blocks = kept.map(readItem);
  return {
    inFlight: { role: "assistant", content: blocks.length > 0 ? blocks : [EMPTY_ANSWER] },
    textCalls: openCalls(items, ANSWER).textCalls,
    notes: notesOn(blocks, raws.length - kept.length),
  };
};

export const responsesReader: FormatReader = { parent: readBody, answer: readResponse };
