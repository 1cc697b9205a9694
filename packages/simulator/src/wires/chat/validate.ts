/** Would this provider accept a Chat Completions body, and if not, with which error?
 *  Invariant: the first fault in the body's own order is reported, in one line that names the location.
 *  Elsewhere: the order of turns (validate-turns.ts), error messages (../openai). */

import type { Json, JsonObject } from "@prefork/wire";
import { isObject, listOf, objectOf, ownEntry, stringOf } from "../../body.ts";
import { invalid, type Refusal } from "../../errors.ts";
import type { ModelRules } from "../../rules/index.ts";
import { type Checker, first, type Shape, type Shapes } from "../../shape.ts";
import { checkBreakpoint, checkCaching, checkEffort, openaiShapes, unsupported } from "../openai/index.ts";
import { checkTurns } from "./validate-turns.ts";

type Check = Checker<Refusal>;

const contentOf = (shapes: Shapes<Refusal>, parts: Readonly<Record<string, Shape<Refusal>>>): Check => {
  const isPart: Check = (value, place) => {
    const type = isObject(value) ? value.type : undefined;
    const shape = typeof type === "string" ? ownEntry(parts, type) : undefined;
    return shape === undefined
      ? shapes.isOneOf(...Object.keys(parts))(type ?? null, `${place}.type`)
      : shapes.isShape(shape)(value, place);
  };
  return (value, place) => (typeof value === "string" ? undefined : shapes.isListOf(isPart)(value, place));
};

const bodyShape = (shapes: Shapes<Refusal>): Check => {
  const { isString, isBoolean, isNumber, isDictionary, isAnything, isIntegerFrom, isOneOf, isListOf, isShape } = shapes;
  const marks = {
    prompt_cache_breakpoint: isShape({
      required: { mode: isOneOf("explicit") },
      optional: { ttl: isOneOf("30m", "12h") },
    }),
  };
  const text: Shape<Refusal> = { required: { type: isString, text: isString }, optional: marks };
  const userContent = contentOf(shapes, {
    text,
    image_url: { required: { type: isString, image_url: isDictionary }, optional: marks },
    input_audio: { required: { type: isString, input_audio: isDictionary }, optional: marks },
    file: { required: { type: isString, file: isDictionary }, optional: marks },
  });
  const textContent = contentOf(shapes, { text });
  const assistantContent = contentOf(shapes, { text, refusal: { required: { type: isString, refusal: isString } } });
  const isCall = isShape({
    required: {
      id: isString,
      type: isOneOf("function"),
      function: isShape({ required: { name: isString, arguments: isString } }),
    },
    optional: { index: isIntegerFrom(0) },
  });
  const roles: Readonly<Record<string, Shape<Refusal>>> = {
    developer: { required: { role: isString, content: textContent }, optional: { name: isString } },
    system: { required: { role: isString, content: textContent }, optional: { name: isString } },
    user: { required: { role: isString, content: userContent }, optional: { name: isString } },
    assistant: {
      required: { role: isString },
      optional: {
        content: assistantContent,
        refusal: isString,
        name: isString,
        tool_calls: isListOf(isCall),
        audio: isDictionary,
        annotations: isListOf(isDictionary),
      },
    },
    tool: { required: { role: isString, content: textContent, tool_call_id: isString } },
  };
  const isMessage: Check = (value, place) => {
    const role = isObject(value) ? value.role : undefined;
    const shape = typeof role === "string" ? ownEntry(roles, role) : undefined;
    return shape === undefined
      ? isOneOf(...Object.keys(roles))(role ?? null, `${place}.role`)
      : isShape(shape)(value, place);
  };
  const isTool = isShape({
    required: {
      type: isOneOf("function"),
      function: isShape({
        required: { name: isString },
        optional: { description: isString, parameters: isDictionary, strict: isBoolean },
      }),
    },
  });
  const isWord = isAnything;
  return isShape({
    required: { messages: isListOf(isMessage), model: isString },
    optional: {
      audio: isDictionary,
      frequency_penalty: isNumber,
      logit_bias: isDictionary,
      logprobs: isBoolean,
      max_completion_tokens: isIntegerFrom(1),
      max_tokens: isIntegerFrom(0),
      metadata: isDictionary,
      modalities: isListOf(isString),
      moderation: isDictionary,
      n: isIntegerFrom(1),
      parallel_tool_calls: isBoolean,
      prediction: isDictionary,
      presence_penalty: isNumber,
      prompt_cache_key: isString,
      prompt_cache_options: isShape({
        optional: { mode: isOneOf("implicit", "explicit"), ttl: isOneOf("30m") },
      }),
      prompt_cache_retention: isString,
      reasoning_effort: isString,
      response_format: isDictionary,
      safety_identifier: isString,
      seed: isIntegerFrom(Number.MIN_SAFE_INTEGER),
      service_tier: isOneOf("auto", "default", "flex", "scale", "priority", "fast"),
      stop: isWord,
      store: isBoolean,
      stream: isBoolean,
      stream_options: isShape({ optional: { include_usage: isBoolean, include_obfuscation: isBoolean } }),
      temperature: isNumber,
      tool_choice: isWord,
      tools: isListOf(isTool),
      top_logprobs: isIntegerFrom(0),
      top_p: isNumber,
      user: isString,
      verbosity: isOneOf("low", "medium", "high"),
      web_search_options: isDictionary,
    },
  });
};

const shapes: Readonly<Record<"refused" | "ignored", Check>> = {
  refused: bodyShape(openaiShapes.refused),
  ignored: bodyShape(openaiShapes.ignored),
};

export const checkRequest = (body: JsonObject, rules: ModelRules): Refusal | undefined =>
  openaiShapes.refused.isShallow(body, "") ??
  shapes[rules.accepts.unknownFields](body, "") ??
  checkCaching(body, rules) ??
  checkMarks(body, rules) ??
  checkSettings(body, rules) ??
  checkTurns(body, rules);

const checkMarks = (body: JsonObject, rules: ModelRules): Refusal | undefined =>
  first(listOf(body.messages), (message, at) =>
    first(listOf(objectOf(message).content), (part, index) =>
      checkBreakpoint(objectOf(part), `messages[${at}].content[${index}]`, rules),
    ),
  );

const checkSettings = (body: JsonObject, rules: ModelRules): Refusal | undefined => {
  const names = listOf(body.tools).map((tool) => stringOf(objectOf(objectOf(tool).function).name));
  if (typeof body.n === "number" && body.n > 1) return unsupported("n", "above 1 by the simulator");
  if (names.length > 0 && !rules.accepts.chatTools)
    return invalid("This model only supports tools in the Responses API (/v1/responses).", { param: "tools" });
  if (body.max_tokens === 0 && rules.accepts.unknownFields === "refused")
    return openaiShapes.refused.isIntegerFrom(1)(0, "max_tokens");
  const choice = body.tool_choice;
  if (names.length === 0 && choice !== undefined && choice !== null && choice !== "none")
    return invalid("Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.", {
      param: "tool_choice",
    });
  const wanted = named(choice);
  if (wanted !== undefined && !names.includes(wanted))
    return invalid(`Invalid value for 'tool_choice': tool '${wanted}' was not found in 'tools'.`, {
      param: "tool_choice",
    });
  return checkEffort(body.reasoning_effort, "reasoning_effort", rules);
};

const named = (choice: Json | undefined): string | undefined =>
  isObject(choice) && choice.type === "function" ? stringOf(objectOf(choice.function).name) : undefined;
