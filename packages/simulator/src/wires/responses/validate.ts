/** Would OpenAI accept a Responses body, and if not, with which error?
 *  Invariant: the first fault in the body's own order is reported, in one line that names the location.
 *  Elsewhere: the order of items (validate-items.ts), error messages (../openai). */

import type { JsonObject } from "@prefork/wire";
import { isObject, listOf, objectOf, ownEntry, stringOf } from "../../body.ts";
import { invalid, type Refusal } from "../../errors.ts";
import type { ModelRules } from "../../rules/index.ts";
import { type Checker, first, firstRepeated, type Shape } from "../../shape.ts";
import { checkBreakpoint, checkCaching, checkEffort, openaiShapes } from "../openai/index.ts";

const {
  isString,
  isBoolean,
  isNumber,
  isDictionary,
  isAnything,
  isIntegerFrom,
  isOneOf,
  isListOf,
  isShape,
  isShallow,
} = openaiShapes.refused;

type Check = Checker<Refusal>;

const isStatus = isOneOf("in_progress", "completed", "incomplete");

const marks = {
  prompt_cache_breakpoint: isShape({
    required: { mode: isOneOf("explicit") },
    optional: { ttl: isOneOf("30m", "12h") },
  }),
};

const inputParts: Readonly<Record<string, Shape<Refusal>>> = {
  input_text: { required: { type: isString, text: isString }, optional: marks },
  input_image: {
    required: { type: isString },
    optional: { ...marks, detail: isString, file_id: isString, image_url: isString },
  },
  input_file: {
    required: { type: isString },
    optional: {
      ...marks,
      detail: isString,
      file_data: isString,
      file_id: isString,
      file_url: isString,
      filename: isString,
    },
  },
};

const outputParts: Readonly<Record<string, Shape<Refusal>>> = {
  output_text: {
    required: { type: isString, text: isString },
    optional: { annotations: isListOf(isDictionary), logprobs: isListOf(isDictionary) },
  },
  refusal: { required: { type: isString, refusal: isString } },
};

const contentOf =
  (table: Readonly<Record<string, Shape<Refusal>>>): Check =>
  (value, place) =>
    typeof value === "string"
      ? undefined
      : isListOf((part, at) => {
          const type = isObject(part) ? part.type : undefined;
          const shape = typeof type === "string" ? ownEntry(table, type) : undefined;
          return shape === undefined
            ? isOneOf(...Object.keys(table))(type ?? null, `${at}.type`)
            : isShape(shape)(part, at);
        })(value, place);

const isInputContent = contentOf(inputParts);
const isOutputContent = contentOf(outputParts);

const isMessage: Check = (value, place) => {
  const isAssistant = isObject(value) && value.role === "assistant";
  return isShape({
    required: {
      role: isOneOf("user", "assistant", "system", "developer"),
      content: isAssistant ? isOutputContent : isInputContent,
    },
    optional: {
      type: isString,
      id: isString,
      status: isStatus,
      phase: isOneOf("commentary", "final_answer"),
    },
  })(value, place);
};

const items: Readonly<Record<string, Check>> = {
  message: isMessage,
  function_call: isShape({
    required: { type: isString, call_id: isString, name: isString, arguments: isString },
    optional: { id: isString, status: isStatus, async: isBoolean, caller: isDictionary, namespace: isString },
  }),
  function_call_output: isShape({
    required: { type: isString, call_id: isString, output: isInputContent },
    optional: { id: isString, status: isStatus, caller: isDictionary, name: isString, namespace: isString },
  }),
  reasoning: isShape({
    required: { type: isString, id: isString, summary: isListOf(isDictionary) },
    optional: { content: isListOf(isDictionary), encrypted_content: isString, status: isStatus },
  }),
  item_reference: isShape({ required: { id: isString }, optional: { type: isString } }),
};

/** Items of the provider's own tools, which are passed through unchanged. */
const others = new Set(
  `additional_tools apply_patch_call apply_patch_call_output code_interpreter_call compaction compaction_trigger
   computer_call computer_call_output configuration_update custom_tool_call custom_tool_call_output file_search_call
   image_generation_call local_shell_call local_shell_call_output mcp_approval_request mcp_approval_response mcp_call
   mcp_list_tools program program_output shell_call shell_call_output tool_search_call tool_search_output
   web_search_call`.split(/\s+/),
);

/** A message may omit its type, and so may a reference that has only an id. */
export const typeOf = ({ type, role, id }: JsonObject): string => {
  if (typeof type === "string") return type;
  return role === undefined && id !== undefined ? "item_reference" : "message";
};

const isItem: Check = (value, place) => {
  if (!isObject(value)) return isDictionary(value, place);
  const type = typeOf(value);
  if (others.has(type)) return undefined;
  return (ownEntry(items, type) ?? ((_, at) => isOneOf(...Object.keys(items), ...others)(type, `${at}.type`)))(
    value,
    place,
  );
};

const isInput: Check = (value, place) => (typeof value === "string" ? undefined : isListOf(isItem)(value, place));

const isTool: Check = (value, place) =>
  isObject(value) && value.type === "function"
    ? isShape({
        required: { type: isString, name: isString },
        optional: {
          description: isString,
          parameters: isDictionary,
          strict: isBoolean,
          allowed_callers: isListOf(isString),
          async: isBoolean,
          defer_loading: isBoolean,
          output_schema: isDictionary,
        },
      })(value, place)
    : isShapeWithType(value, place);

const isShapeWithType: Check = (value, place) =>
  isDictionary(value, place) ?? isString(objectOf(value).type ?? null, `${place}.type`);

/** Fewer are refused. */
const FEWEST_TOKENS = 16;

const isRequest = isShape({
  required: { model: isString },
  optional: {
    access_programs: isDictionary,
    background: isBoolean,
    client_metadata: isDictionary,
    context_management: isListOf(isDictionary),
    conversation: isAnything,
    image: isDictionary,
    include: isListOf(isString),
    input: isInput,
    instructions: isString,
    max_output_tokens: isIntegerFrom(FEWEST_TOKENS),
    max_tool_calls: isIntegerFrom(1),
    metadata: isDictionary,
    moderation: isDictionary,
    parallel_tool_calls: isBoolean,
    previous_response_id: isString,
    prompt: isDictionary,
    prompt_cache_key: isString,
    prompt_cache_options: isShape({
      optional: {
        mode: isOneOf("implicit", "explicit"),
        ttl: isOneOf("30m", "12h"),
        prewarm: isBoolean,
        comparison_response_id: isString,
      },
    }),
    prompt_cache_retention: isString,
    reasoning: isShape({
      optional: {
        context: isOneOf("auto", "current_turn", "all_turns"),
        effort: isOneOf("none", "minimal", "low", "medium", "high", "xhigh", "max"),
        generate_summary: isString,
        mode: isString,
        summary: isOneOf("auto", "concise", "detailed"),
      },
    }),
    safety_identifier: isString,
    service_tier: isString,
    store: isBoolean,
    stream: isBoolean,
    stream_options: isShape({ optional: { include_obfuscation: isBoolean } }),
    temperature: isNumber,
    text: isShape({ optional: { format: isDictionary, verbosity: isOneOf("low", "medium", "high") } }),
    tool_choice: isAnything,
    tools: isListOf(isTool),
    top_logprobs: isIntegerFrom(0),
    top_p: isNumber,
    truncation: isOneOf("auto", "disabled"),
    user: isString,
  },
});

export const checkRequest = (body: JsonObject, rules: ModelRules): Refusal | undefined =>
  isShallow(body, "") ??
  isRequest(body, "") ??
  checkCaching(body, rules) ??
  checkMarks(body, rules) ??
  checkTools(body) ??
  checkEffort(objectOf(body.reasoning).effort, "reasoning.effort", rules);

/** Parts of messages and results that carry a breakpoint. */
const checkMarks = (body: JsonObject, rules: ModelRules): Refusal | undefined =>
  first(listOf(body.input), (entry, at) => {
    const item = objectOf(entry);
    const [name, list] = typeOf(item) === "function_call_output" ? ["output", item.output] : ["content", item.content];
    return first(listOf(list), (part, index) =>
      checkBreakpoint(objectOf(part), `input[${at}].${name}[${index}]`, rules),
    );
  });

const checkTools = (body: JsonObject): Refusal | undefined => {
  const names = listOf(body.tools).map((tool) => stringOf(objectOf(tool).name));
  const twice = firstRepeated(names.filter((name) => name !== ""));
  if (twice !== undefined) return invalid(`Invalid 'tools': duplicate tool name '${twice}'.`, { param: "tools" });
  const choice = objectOf(body.tool_choice);
  return choice.type === "function" && !names.includes(stringOf(choice.name))
    ? invalid(`Tool choice 'function' not found in 'tools' parameter.`, { param: "tool_choice" })
    : undefined;
};
