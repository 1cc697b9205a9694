/** Two requests: where the second diverges from the first, why it read less, what that cost, and how to fix it. Pure.
 *  Invariant: whatever is given, the result is an x-ray or an InputError of one line.
 *  Elsewhere: each step (body.ts, anthropic.ts, openai.ts, gemini.ts, lookup.ts, differences.ts, verdict.ts, money.ts),
 *  more than two requests (chain.ts). */

import { InputError, type ModelFacts, promptTokens, type Recording } from "@prefork/wire";
import { anthropicPrompt } from "./anthropic.ts";
import { type Body, readBody, type XrayProtocol } from "./body.ts";
import { type XrayCause, xrayAdvice, xrayCauseSentence } from "./cause.ts";
import { type Difference, differencesOf } from "./differences.ts";
import type { Reading } from "./entries.ts";
import { geminiPrompt } from "./gemini.ts";
import type { XrayLocation } from "./location.ts";
import { type CacheLookup, entriesOf, type LookupTerms, lookUp } from "./lookup.ts";
import { isNegligibleLoss, lossOf, type XrayLoss } from "./money.ts";
import { openaiPrompt } from "./openai.ts";
import type { Prompt } from "./piece.ts";
import type { Level } from "./rules.ts";
import { readStatedFacts, type SentFacts } from "./sent.ts";
import { type BodyValue, isNullHere, unorderedText } from "./values.ts";
import { rulesFor } from "./vendors.ts";
import { keptTokens, readTokens, realDifferences, type VerdictTerms, verdictOf } from "./verdict.ts";

export type XrayOptions = {
  /** Use this model's rules and prices if a body's own model is unknown. */
  readonly model?: string;
  readonly models?: ReadonlyMap<string, ModelFacts>; // default: the published table
  /** How look-back positions are counted. Default: a run of calls or of results is one position. */
  readonly reading?: Reading;
};

export type XrayFacts = XrayOptions & { readonly a?: SentFacts; readonly b?: SentFacts };

export type XrayDivergence = {
  readonly level: Level;
  /** JSON path of the first difference, in the order of the rendered prompt. */
  readonly path: string;
  readonly a: XrayLocation;
  readonly b: XrayLocation;
};

/** Tokens of one level: in each prompt, in the shared prefix, and read from the cache. */
export type XraySegment = {
  readonly level: Level;
  readonly a: number;
  readonly b: number;
  readonly shared: number;
  readonly read: number;
};

export type Xray = {
  readonly protocol: XrayProtocol;
  readonly model: string;
  readonly cause: XrayCause;
  /** Other causes that would also have to be fixed. */
  readonly also: readonly XrayCause[];
  /** Absent if one prompt is the beginning of the other. */
  readonly divergence?: XrayDivergence;
  readonly segments: readonly XraySegment[];
  readonly tokens: {
    readonly a: number;
    readonly b: number;
    /** The shared prefix; what the first request left in the cache; what the second read of it. */
    readonly shared: number;
    readonly kept: number;
    readonly read: number;
    /** Estimated, because no provider has counted them. */
    readonly estimated: boolean;
  };
  readonly lost: XrayLoss;
  /** One sentence each, without full stops; `fix` is absent if nothing is worth fixing. */
  readonly why: string;
  readonly fix?: string;
  readonly notes: readonly string[];
};

export const diffRequests = (a: Recording, b: Recording, facts: XrayFacts = {}): Xray => {
  const sent = {
    a: readStatedFacts(facts.a ?? {}, "the first request"),
    b: readStatedFacts(facts.b ?? {}, "the second request"),
  };
  const hasBetas = sent.a.betas !== undefined && sent.b.betas !== undefined;
  const first = promptOf(readBody(a, "the first request", sent.a.model), facts, hasBetas ? sent.a.betas : undefined);
  const second = promptOf(readBody(b, "the second request", sent.b.model), facts, hasBetas ? sent.b.betas : undefined);
  return compare({ a: first, b: second, known: entriesOf(first, sent.a), sent, reading: facts.reading ?? "runs" }).xray;
};

/** The prompt of a body, under the rules of its model. */
export const promptOf = (body: Body, options: XrayOptions, betas?: readonly string[]): Prompt => {
  const rules = rulesFor(body, { ...options, marked: body.root.bytes.includes('"cache_control"') });
  if (body.protocol === "anthropic-messages") return anthropicPrompt(body, rules, betas);
  return body.protocol === "gemini" ? geminiPrompt(body, rules) : openaiPrompt(body, rules);
};

export type Compared = {
  readonly xray: Xray;
  readonly lookup: CacheLookup;
  /** The second continues the first with something changed, rather than with its own new text. */
  readonly isEdited: boolean;
  /** Part of it would have been read if nothing had changed. */
  readonly isRelated: boolean;
};

/** `known` contains everything that was cached when the second was sent. */
export const compare = (comparison: LookupTerms): Compared => {
  const { a, b, sent } = comparison;
  if (a.body.protocol !== b.body.protocol)
    throw new InputError(
      `the first request is ${NAMES[a.body.protocol]}, the second request ${NAMES[b.body.protocol]}`,
    );
  const lookup = lookUp(comparison);
  const differences = differencesOf({ a, b });
  const real = realDifferences(lookup, differences);
  const terms: VerdictTerms = { lookup, differences: real, sent };
  const { cause, lost, read, also } = verdictOf(terms);
  const divergence = differences[0];
  const loss = lossOf(lookup, lost, { read, sent: sent.b });
  const fix = isNegligibleLoss(loss) ? undefined : xrayAdvice(cause);
  const xray: Xray = {
    protocol: b.body.protocol,
    model: b.body.model,
    cause,
    also,
    ...(divergence ? { divergence: divergenceOf(divergence) } : {}),
    segments: segmentsOf(lookup, read),
    tokens: {
      a: statedOr(sent.a, lookup.measure.a(a.tokens)),
      b: statedOr(sent.b, lookup.measure.b(b.tokens)),
      shared: Math.round(lookup.measure.b(endShared(lookup) + lookup.partly)),
      kept: keptTokens(terms),
      read,
      estimated: sent.a.usage === undefined && sent.b.usage === undefined,
    },
    lost: loss,
    why: xrayCauseSentence(cause),
    ...(fix === undefined ? {} : { fix }),
    notes: notesOf(lookup, comparison),
  };
  const isOther = differences.some((each) => each.level === "messages" && !each.isSetting && !real.includes(each));
  return { xray, lookup, isEdited: real.length > 0 && !isOther, isRelated: real.length > 0 };
};

const NAMES: Readonly<Record<XrayProtocol, string>> = {
  "anthropic-messages": "an Anthropic Messages body",
  "openai-responses": "an OpenAI Responses body",
  "openai-chat": "an OpenAI Chat body",
  gemini: "a Gemini body",
};

const divergenceOf = ({ level, path, a, b }: Difference): XrayDivergence => ({ level, path, a, b });

const statedOr = ({ usage }: SentFacts, tokens: number): number => (usage && promptTokens(usage)) || Math.round(tokens);

const endShared = ({ b, shared }: CacheLookup): number => b.pieces[shared - 1]?.end ?? 0;

/** By level. The total never exceeds the reported read, and what is missing is missing at the end. */
const segmentsOf = (lookup: CacheLookup, stated: number): readonly XraySegment[] => {
  let left = stated;
  return lookup.b.rules.levels.map((level) => {
    const segment = segmentOf(lookup, level);
    const read = Math.min(segment.read, left);
    left -= read;
    return { ...segment, read };
  });
};

const segmentOf = (lookup: CacheLookup, level: Level): XraySegment => {
  const { a, b, shared, live, measure } = lookup;
  const sum = ({ pieces }: Prompt, until: number, of: (tokens: number) => number): number =>
    Math.round(
      pieces.slice(0, until).reduce((tokens, piece) => {
        return piece.level === level ? tokens + of(piece.end) - of(piece.end - piece.tokens) : tokens;
      }, 0),
    );
  return {
    level,
    a: sum(a, a.pieces.length, measure.a),
    b: sum(b, b.pieces.length, measure.b),
    shared: sum(b, shared, measure.b),
    read: sum(b, live + 1, measure.b),
  };
};

// --- notes -----------------------------------------------------------------------------------------------------------

export const notesOf = (lookup: CacheLookup, terms: LookupTerms): readonly string[] => {
  const { a, b } = lookup;
  const ofBodies = [a, b].flatMap((prompt) => [...prompt.body.notes, ...prompt.notes, ...markerNotes(prompt)]);
  const { facts } = b.rules;
  const unknown = facts
    ? []
    : [`${b.body.model || "this model"} is unknown: the usual rules apply, and no money is shown`];
  return [...new Set([...ofBodies, ...unknown, ...memberNotes(a, b), ...readingNotes(lookup, terms)])];
};

const markerNotes = ({ rules, pieces, automatic }: Prompt): readonly string[] => {
  const { keeping } = rules;
  const markers = pieces.filter(({ marker }) => marker !== undefined).length + (automatic ? 1 : 0);
  if (keeping.kind !== "markers" || markers <= keeping.most) return [];
  return [`a request with ${markers} markers: at most ${keeping.most} are allowed`];
};

const readingNotes = (lookup: CacheLookup, terms: LookupTerms): readonly string[] => {
  if (lookup.reading === "singly") return [];
  const singly = lookUp({ ...terms, reading: "singly" });
  const [one, other] = [readTokens(lookup, lookup.live), readTokens(singly, singly.live)];
  if (one === other) return [];
  return [`if every call and result counts as its own block, ${other} tokens would be read instead of ${one}`];
};

/** Members that are handled elsewhere, or that are documented as not in the key. */
const PLACED = new Set(
  (
    "model messages input tools functions system instructions cache_control speed thinking output_config output_format " +
    "context_management mcp_servers tool_choice service_tier prompt_cache_key session_id cache_salt reasoning " +
    "reasoning_effort text verbosity parallel_tool_calls response_format prompt_cache_options prompt_cache_retention " +
    "max_tokens max_completion_tokens max_output_tokens stream stream_options metadata stop stop_sequences temperature " +
    "top_p top_k seed n user safety_identifier store include diagnostics inference_geo previous_response_id conversation " +
    "contents systemInstruction system_instruction toolConfig tool_config generationConfig generation_config cachedContent " +
    "cached_content safetySettings safety_settings serviceTier service_tier user_id enable_thinking chat_template_kwargs " +
    "client_metadata prompt background frequency_penalty presence_penalty logit_bias logprobs top_logprobs truncation"
  ).split(" "),
);

/** It is not documented whether these are in the key. */
const memberNotes = (a: Prompt, b: Prompt): readonly string[] => {
  const otherMembers = ({ body }: Prompt): ReadonlyMap<string, BodyValue> =>
    new Map(body.members.filter(({ key, at }) => !PLACED.has(key) && !isNullHere(at)).map(({ key, at }) => [key, at]));
  const [ours, theirs] = [otherMembers(a), otherMembers(b)];
  const textOf = (at: BodyValue | undefined): string => (at ? unorderedText(at, b.text) : "");
  return [...new Set([...ours.keys(), ...theirs.keys()])]
    .filter((key) => textOf(ours.get(key)) !== textOf(theirs.get(key)))
    .map((key) => `${key} differs, and it is not documented whether it is in the key`);
};
