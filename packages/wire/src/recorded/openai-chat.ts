/** A recorded Chat Completions body: its messages, the calls it leaves open, and the completion that it got.
 *  Invariant: messages are used byte for byte, including the answer: with its provider's own order of members, and with
 *  members that we do not know.
 *  Elsewhere: parts and markers (openai-parts.ts), cutting the bytes (slicing.ts), who speaks the format
 *  (format.ts). */

import { InputError } from "../errors.ts";
import { endOfValue, isArray, isObject, itemsOf, type Member, type Span, skipSpace } from "../json.ts";
import type { Json, JsonObject, Message, Role } from "../request.ts";
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
  toSegmentCuts,
  userCuts,
  wholeItemCut,
} from "./openai-parts.ts";
import { ANSWER, type FormatReader, PARENT, uniqueMembers } from "./recording.ts";
import { type Cut, listLast, sliceItems } from "./slicing.ts";

const syntax: PartSyntax = {
  open: `[{"type":"text","text":`,
  markable: new Set(["text", "image_url", "input_audio", "file"]),
};

// --- what is refused -------------------------------------------------------------------------------------------------

const ROLES: ReadonlySet<Json | undefined> = new Set(["system", "developer", "user", "assistant", "tool", "function"]);

const isPresent = (value: Json | undefined): boolean => value !== undefined && value !== null;

const validate = (value: JsonObject): void => {
  checkHead(value);
  const fewest = ["max_completion_tokens", "max_tokens"].find((key) => value[key] === 0);
  if (fewest) throw new InputError(`${PARENT} only fills the cache: ${fewest} is 0`);
  const { messages } = value;
  if (!isArray(messages)) throw new InputError(`${PARENT} has no \`messages\` array`);
  if (messages.length === 0) throw new InputError(`${PARENT}'s \`messages\` is empty`);
  messages.forEach((message, index) => {
    checkMessage(message, `messages[${index}]`);
  });
};

const checkMessage = (message: Json | undefined, name: string): void => {
  if (!isObject(message)) throw new InputError(`${name} is not an object`);
  const { role, content, tool_calls } = message;
  if (!ROLES.has(role))
    throw new InputError(`${name}.role must be system, developer, user, assistant, tool or function`);
  if (isPresent(content) || role !== "assistant") checkContent(content, `${name}.content`);
  if (!isPresent(tool_calls)) return;
  if (!isArray(tool_calls) || !tool_calls.every((call) => isObject(call) && typeof call.id === "string"))
    throw new InputError(`${name}.tool_calls must be an array of calls with an id`);
};

// --- messages --------------------------------------------------------------------------------------------------------

const roleOf = ({ role }: JsonObject): Role => {
  if (role === "assistant") return "assistant";
  return role === "system" || role === "developer" ? "system" : "user";
};

const ANSWER_FIELDS = new Set(["reasoning_content", "reasoning", "reasoning_details", "content"]);

/** What the model said: its reasoning, its text and each call, in the order of its message. */
const assistantCuts = (bytes: Buffer, item: ItemAt): readonly Cut[] => {
  const cuts = item.members.flatMap(({ key, start, end }): readonly Cut[] => {
    const value = item.value[key];
    if (key === "tool_calls" && isArray(value))
      return itemsOf(bytes, start).map((call, index) => ({ kind: "block", ...call, within: `.tool_calls[${index}]` }));
    return ANSWER_FIELDS.has(key) && isPresent(value) ? [{ kind: "block", start, end, within: `.${key}` }] : [];
  });
  return cuts.length > 0 ? cuts.map((cut, index) => ({ ...cut, beginsItem: index === 0 })) : [wholeItemCut(item)];
};

const turnOf = (bytes: Buffer, item: ItemAt, marks: boolean): Turn => {
  const role = roleOf(item.value);
  if (role === "assistant") return { role, cuts: assistantCuts(bytes, item) };
  const { role: original } = item.value;
  if (original !== "tool" && original !== "function") return { role, cuts: userCuts(bytes, item, { syntax, marks }) };
  const content = memberOf(item, "content");
  return { role, cuts: [{ ...wholeItemCut(item), ...(content ? contentMark(bytes, content, syntax) : {}) }] };
};

const callsOf = ({ tool_calls: calls }: JsonObject): readonly string[] =>
  isArray(calls) ? calls.flatMap((call) => (isObject(call) && typeof call.id === "string" ? [call.id] : [])) : [];

const pendingIn = (messages: readonly JsonObject[]): readonly string[] => {
  const answered = new Set(messages.filter(({ role }) => role === "tool").map(({ tool_call_id }) => tool_call_id));
  return messages.flatMap(callsOf).filter((id) => !answered.has(id));
};

/** The old form of a call has no id, so a result could not name its call. */
const checkOldCall = ({ function_call: call }: JsonObject, name: string): void => {
  if (isPresent(call))
    throw new InputError(`${name} has a function_call without a result: only tool_calls can be answered in forks`);
};

const thinksInLoop = (messages: readonly JsonObject[]): boolean =>
  messages.slice(messages.findLastIndex(({ role }) => role === "user") + 1).some((message) =>
    ["reasoning_content", "reasoning", "reasoning_details"].some((key) => {
      const reasoning = message[key];
      return (typeof reasoning === "string" || isArray(reasoning)) && reasoning.length > 0;
    }),
  );

// --- the body --------------------------------------------------------------------------------------------------------

const readBody: FormatReader["parent"] = ({ bytes, value }, reading) => {
  validate(value);
  const messages = isArray(value.messages) ? value.messages.filter(isObject) : [];
  checkOldCall(messages.at(-1) ?? {}, PARENT);
  const { notes } = reading;
  const { n } = value;
  if (typeof n === "number" && n > 1)
    notes.push(`n is ${n}: each fork is asked for ${n} answers, and the first is read`);
  const list: ItemList = {
    value,
    name: "messages",
    items: messages,
    turnOf,
    pending: pendingIn(messages),
    marker: { keys: ["prompt_cache_breakpoint", "cache_control"], inside: ["content"] },
  };
  const { marks: _marks, ...read } = readItems(
    listLast(bytes, { list: "messages", early: ["tools", "functions"], notes }),
    list,
    reading,
  );
  // OpenAI's reasoning never comes back in this format, and other endpoints keep what does.
  return { ...read, strips: false, thinks: thinksInLoop(messages), textCalls: [] };
};

// --- the answer ------------------------------------------------------------------------------------------------------

const WANTED = `${ANSWER} must be a chat completion or an assistant message`;

const memberAt = (bytes: Buffer, from: number, key: string): Member | undefined =>
  uniqueMembers(bytes, from, ANSWER).find((member) => member.key === key);

/** The position of the answer's only message. */
const messageIn = (bytes: Buffer, value: JsonObject): { readonly span: Span; readonly value: JsonObject } => {
  const start = skipSpace(bytes, 0);
  if (value.role === "assistant") return { span: { start, end: endOfValue(bytes, start) }, value };
  const { choices } = value;
  if (!isArray(choices)) throw new InputError(WANTED);
  if (choices.length > 1)
    throw new InputError(`${ANSWER} has ${choices.length} choices: give the message that the parent continued with`);
  const [choice] = choices;
  const message = isObject(choice) ? choice.message : undefined;
  const list = memberAt(bytes, 0, "choices");
  const [first] = list ? itemsOf(bytes, list.start) : [];
  const span = first && memberAt(bytes, first.start, "message");
  if (!span || !isObject(message) || message.role !== "assistant") throw new InputError(WANTED);
  return { span, value: message };
};

/** An answer that was cut off before any text is refused when it is sent again; the encoder replaces it with a line
 *  that says so. */
const EMPTY_ANSWER: Message = { role: "assistant", content: [{ type: "thinking", thinking: "", signature: "" }] };

const readCompletion: FormatReader["answer"] = ({ bytes: given, value: answer }, { prefix }) => {
  const { span, value } = messageIn(given, answer);
  checkMessage(value, ANSWER);
  checkOldCall(value, ANSWER);
  const pending = callsOf(value);
  if (pending.length === 0 && ![value.content, value.refusal, value.audio].some(isPresent))
    return { inFlight: EMPTY_ANSWER, textCalls: [], notes: ["the answer says nothing: a line in its place says so"] };
  const settled = prefix.settled();
  const lead = Buffer.from(`${settled.close},`);
  const bytes = Buffer.concat([lead, given.subarray(span.start, span.end)]);
  const members = uniqueMembers(bytes, lead.length, ANSWER);
  const item = { span: { start: lead.length, end: bytes.length }, members, value };
  const cuts = toSegmentCuts([turnOf(bytes, item, false)]);
  const close = bytes.toString("utf8", cuts.at(-1)?.end ?? bytes.length);
  return { inFlight: settled.appendCut(sliceItems(bytes, cuts), { pending, close }), textCalls: [], notes: [] };
};

export const chatReader: FormatReader = { parent: readBody, answer: readCompletion };
