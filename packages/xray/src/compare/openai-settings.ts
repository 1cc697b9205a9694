/** The parameters of an OpenAI body that are in the key, as the vendor's own diagnostics name them.
 *  Invariant: both formats' spellings of a parameter give the same text.
 *  Elsewhere: which level each one loses, and which values are defaults (rules.ts). */

import type { Setting } from "./piece.ts";
import { type At, type MemberAt, memberAt, membersAt, stringAt, type TextRule, unorderedText } from "./places.ts";
import type { Parameter } from "./rules.ts";

/** Where a parameter is said: members from the root down, of either format. */
const PLACES: readonly (readonly [Parameter, readonly (readonly string[])[]])[] = [
  ["model", [["model"]]],
  ["service_tier", [["service_tier"]]],
  ["cache_key", [["prompt_cache_key"]]],
  ["session_id", [["session_id"]]],
  ["cache_salt", [["cache_salt"]]],
  ["user_id", [["user_id"]]],
  ["thinking", [["thinking"], ["enable_thinking"], ["chat_template_kwargs"], ["reasoning", "max_tokens"]]],
  ["effort", [["reasoning", "effort"], ["reasoning_effort"]]],
  ["verbosity", [["text", "verbosity"], ["verbosity"]]],
  ["parallel_tool_calls", [["parallel_tool_calls"]]],
  ["output_format", [["text", "format"], ["response_format"]]],
  ["context_management", [["context_management"]]],
  ["tool_choice", [["tool_choice"]]],
];

const said = (members: readonly MemberAt[], [key = "", ...below]: readonly string[]): At | undefined => {
  const at = memberAt(members, key);
  return at && below.length > 0 ? said(membersAt(at), below) : at;
};

/** In the order in which a first difference is named. How many images there are counts with some models alone. */
export const openaiSettings = (members: readonly MemberAt[], rule: TextRule, images: number): readonly Setting[] => [
  ...PLACES.flatMap(([name, places]) => {
    const at = places.map((place) => said(members, place)).find((found) => found !== undefined);
    return at ? [{ name, text: stringAt(at) ?? unorderedText(at, rule), at }] : [];
  }),
  ...(images > 0 ? [{ name: "images", text: String(images) } as const] : []),
];
