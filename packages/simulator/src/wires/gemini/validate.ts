/** Would Gemini accept this body, and if not, with which error?
 *  Invariant: the first fault in the body's own order is reported, in one line that names the location.
 *  Elsewhere: turns (validate-turns.ts), error messages (complaints.ts), stored prompts (stored.ts). */

import type { JsonObject } from "@prefork/wire";
import { isObject, listOf, objectOf } from "../../body.ts";
import { invalid, type Refusal } from "../../errors.ts";
import type { ModelRules } from "../../rules/index.ts";
import { type Checker, first } from "../../shape.ts";
import {
  both,
  field,
  isAnything,
  isBoolean,
  isDictionary,
  isIntegerFrom,
  isListOf,
  isNumber,
  isShallow,
  isShape,
  isString,
} from "./complaints.ts";
import { checkTurns } from "./validate-turns.ts";

type Check = Checker<Refusal>;

const isBlob = isShape({ optional: both({ mimeType: isString, data: isString, displayName: isString }) });
const isFile = isShape({ optional: both({ mimeType: isString, fileUri: isString, displayName: isString }) });

/** The kinds of parts; exactly one must be present. */
const kinds: Readonly<Record<string, Check>> = {
  text: isString,
  inlineData: isBlob,
  fileData: isFile,
  functionCall: isShape({ required: { name: isString }, optional: { id: isString, args: isDictionary } }),
  functionResponse: isShape({
    required: { name: isString, response: isDictionary },
    optional: both({ id: isString, parts: isListOf(isDictionary), willContinue: isBoolean, scheduling: isString }),
  }),
  executableCode: isDictionary,
  codeExecutionResult: isDictionary,
  toolCall: isDictionary,
  toolResponse: isDictionary,
};

const partShape = isShape({
  optional: both({
    ...kinds,
    thought: isBoolean,
    thoughtSignature: isString,
    videoMetadata: isDictionary,
    mediaResolution: isAnything,
    partMetadata: isDictionary,
  }),
});

const isPart: Check = (value, place) => {
  const wrong = partShape(value, place);
  if (wrong !== undefined) return wrong;
  const found = Object.keys(kinds).filter((name) => field(objectOf(value), name) !== undefined);
  return found.length === 1
    ? undefined
    : invalid(`* GenerateContentRequest.${place}.data: required oneof field 'data' must have one initialized field`);
};

const isContent = isShape({ optional: { role: isString, parts: isListOf(isPart) } });

const isDeclaration = isShape({
  required: { name: isString },
  optional: both({
    description: isString,
    parameters: isDictionary,
    parametersJsonSchema: isAnything,
    response: isDictionary,
    responseJsonSchema: isAnything,
    behavior: isString,
  }),
});

const isTool = isShape({
  optional: both({
    functionDeclarations: isListOf(isDeclaration),
    googleSearch: isDictionary,
    googleSearchRetrieval: isDictionary,
    codeExecution: isDictionary,
    urlContext: isDictionary,
    fileSearch: isDictionary,
    computerUse: isDictionary,
    googleMaps: isDictionary,
    mcpServers: isListOf(isDictionary),
  }),
});

const isGenerationConfig = isShape({
  optional: both({
    temperature: isNumber,
    topP: isNumber,
    topK: isNumber,
    candidateCount: isIntegerFrom(1),
    maxOutputTokens: isIntegerFrom(1),
    stopSequences: isListOf(isString),
    responseLogprobs: isBoolean,
    logprobs: isIntegerFrom(0),
    presencePenalty: isNumber,
    frequencyPenalty: isNumber,
    seed: isNumber,
    responseMimeType: isString,
    responseSchema: isDictionary,
    responseJsonSchema: isAnything,
    responseModalities: isListOf(isString),
    responseFormat: isAnything,
    mediaResolution: isString,
    speechConfig: isDictionary,
    imageConfig: isDictionary,
    thinkingConfig: isShape({
      optional: both({ includeThoughts: isBoolean, thinkingBudget: isNumber, thinkingLevel: isString }),
    }),
    enableEnhancedCivicAnswers: isBoolean,
  }),
});

/** What a request and a stored prompt have in common. */
const promptFields = {
  contents: isListOf(isContent),
  systemInstruction: isContent,
  tools: isListOf(isTool),
  toolConfig: isDictionary,
};

const isRequest = isShape({
  optional: both({
    ...promptFields,
    generationConfig: isGenerationConfig,
    safetySettings: isListOf(isDictionary),
    cachedContent: isString,
    serviceTier: isString,
    store: isBoolean,
    model: isString,
    labels: isDictionary,
  }),
});

const isStored = isShape({
  required: { model: isString },
  optional: both({ ...promptFields, ttl: isString, expireTime: isString, displayName: isString, name: isString }),
});

const isChange = isShape({ optional: both({ ttl: isString, expireTime: isString, name: isString }) });

/** A count may contain a whole request in one field. */
const isCount = isShape({
  optional: both({ contents: promptFields.contents, generateContentRequest: isRequest, model: isString }),
});

export const checkShape = (body: JsonObject, kind: "request" | "stored" | "change" | "count"): Refusal | undefined =>
  isShallow(body, "") ?? { request: isRequest, stored: isStored, change: isChange, count: isCount }[kind](body, "");

/** `stored` is the stored prompt that the request names. */
export const checkRequest = (
  body: JsonObject,
  rules: ModelRules,
  stored: JsonObject | undefined,
): Refusal | undefined =>
  checkContents(body) ??
  checkCandidates(body) ??
  (stored === undefined ? undefined : checkWithStored(body)) ??
  checkTurns([...listOf(stored?.contents), ...listOf(body.contents)], rules);

const checkContents = (body: JsonObject): Refusal | undefined => {
  const contents = listOf(body.contents);
  if (contents.length === 0) return invalid("* GenerateContentRequest.contents: contents is not specified");
  return first(contents, (content, at) =>
    listOf(objectOf(content).parts).length === 0
      ? invalid(`* GenerateContentRequest.contents[${at}].parts: contents.parts must not be empty.`)
      : undefined,
  );
};

const checkCandidates = (body: JsonObject): Refusal | undefined => {
  const count = field(objectOf(field(body, "generationConfig")), "candidateCount");
  return typeof count === "number" && count > 1
    ? invalid("generationConfig.candidateCount: only one candidate is simulated")
    : undefined;
};

/** A request that names a stored prompt may not set anything that belongs in it. */
const checkWithStored = (body: JsonObject): Refusal | undefined =>
  ["systemInstruction", "tools", "toolConfig"].some(
    (name) => isObject(field(body, name)) || listOf(field(body, name)).length > 0,
  )
    ? invalid(
        "CachedContent can not be used with GenerateContent request setting system_instruction, tools or tool_config. Proposed fix: move those values to CachedContent from GenerateContent request.",
      )
    : undefined;
