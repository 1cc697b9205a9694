/** What a reader of an x-ray should know besides: where the bodies do not tell, and where rules can be read otherwise.
 *  Invariant: a note never changes the verdict; each is said once.
 *  Elsewhere: the verdict (verdict.ts). */

import { type Footing, type FootingTerms, footingOf } from "./footing.ts";
import type { Prompt } from "./piece.ts";
import { type At, isNullHere, unorderedText } from "./places.ts";
import { readBy } from "./verdict.ts";

export const notesOf = (footing: Footing, terms: FootingTerms): readonly string[] => {
  const { a, b } = footing;
  const ofBodies = [a, b].flatMap((prompt) => [...prompt.body.notes, ...prompt.notes, ...markerNotes(prompt)]);
  const { facts } = b.rules;
  const unknown = facts ? [] : [`${b.body.model || "this model"} is in no table: rules of most models, and no money`];
  return [...new Set([...ofBodies, ...unknown, ...memberNotes(a, b), ...readingNotes(footing, terms)])];
};

const markerNotes = ({ rules, pieces, automatic }: Prompt): readonly string[] => {
  const { keeping } = rules;
  const markers = pieces.filter(({ marker }) => marker !== undefined).length + (automatic ? 1 : 0);
  if (keeping.kind !== "markers" || markers <= keeping.most) return [];
  return [`a request with ${markers} markers: at most ${keeping.most} are allowed`];
};

const readingNotes = (footing: Footing, terms: FootingTerms): readonly string[] => {
  if (footing.reading === "singly") return [];
  const singly = footingOf({ ...terms, reading: "singly" });
  const [one, other] = [readBy(footing, footing.live), readBy(singly, singly.live)];
  if (one === other) return [];
  return [`where every call and result counts as a block of its own, ${other} tokens would be read instead of ${one}`];
};

/** Members that are looked at elsewhere, and those that are said to be in no key. */
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

/** Nobody has said whether these are in the key. */
const memberNotes = (a: Prompt, b: Prompt): readonly string[] => {
  const said = ({ body }: Prompt): ReadonlyMap<string, At> =>
    new Map(body.members.filter(({ key, at }) => !PLACED.has(key) && !isNullHere(at)).map(({ key, at }) => [key, at]));
  const [ours, theirs] = [said(a), said(b)];
  const textOf = (at: At | undefined): string => (at ? unorderedText(at, b.text) : "");
  return [...new Set([...ours.keys(), ...theirs.keys()])]
    .filter((key) => textOf(ours.get(key)) !== textOf(theirs.get(key)))
    .map((key) => `${key} differs, and it is not known whether that is in the key`);
};
