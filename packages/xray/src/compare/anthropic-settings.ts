/** The parameters of an Anthropic Messages body that are in the key.
 *  Invariant: each is said once, in one spelling; what follows from the messages (images, citations) is counted there.
 *  Elsewhere: which level each one loses, and which values are defaults (rules.ts). */

import { type Block, partsOf, anthropicText as rule, type Turn } from "./anthropic-turns.ts";
import type { Setting } from "./piece.ts";
import { type At, type MemberAt, memberAt, membersAt, rawText, stringAt, unorderedText } from "./places.ts";

/** Asks for citations, in itself or in a part of it. */
const citesIn = (block: Block): boolean => {
  const citations = memberAt(block.members, "citations");
  const enabled = citations && memberAt(membersAt(citations), "enabled");
  return (enabled !== undefined && rawText(enabled) === "true") || partsOf(block).some(citesIn);
};

export const imagesIn = (block: Block): readonly At[] =>
  [block, ...partsOf(block)].filter((part) => part.type === "image").map(({ at }) => at);

/** The model's own choice, of several calls too, is what no choice is. */
const choiceText = (at: At): string => {
  const parallel = memberAt(membersAt(at), "disable_parallel_tool_use");
  const isPlain = parallel === undefined || rawText(parallel) === "false";
  const text = isPlain ? without(at, "disable_parallel_tool_use") : unorderedText(at, rule);
  return text === '{"type":"auto"}' ? "auto" : text;
};

const without = (object: At, key: string): string =>
  unorderedText(object, { ...rule, unseen: new Set([...rule.unseen, key]) });

/** In the order in which a first difference is named. */
export const anthropicSettings = (
  members: readonly MemberAt[],
  turns: readonly Turn[],
  betas: readonly string[] | undefined,
): readonly Setting[] => {
  const blocks = turns.flatMap((turn) => turn.blocks);
  const images = blocks.flatMap(imagesIn);
  const citing = blocks.find(citesIn);
  const output = memberAt(members, "output_config");
  const effort = output && memberAt(membersAt(output), "effort");
  const format = memberAt(members, "output_format");
  const otherOutput = output && without(output, "effort");
  const thinking = memberAt(members, "thinking");
  const metadata = memberAt(members, "metadata");
  const user = metadata && memberAt(membersAt(metadata), "user_id");
  const plain = (["model", "speed", "context_management", "mcp_servers", "tool_choice"] as const).flatMap((name) => {
    const at = memberAt(members, name);
    return at
      ? [{ name, text: name === "tool_choice" ? choiceText(at) : (stringAt(at) ?? unorderedText(at, rule)), at }]
      : [];
  });
  return [
    ...plain.filter(({ name }) => name === "model" || name === "speed"),
    // In nobody's key but DeepSeek's.
    ...(user ? [{ name: "user_id", text: stringAt(user) ?? rawText(user), at: user } as const] : []),
    // What happens to thinking that no longer fits shows in the prompt by itself.
    ...(thinking ? [{ name: "thinking", text: without(thinking, "block_binding"), at: thinking } as const] : []),
    ...(effort ? [{ name: "effort", text: stringAt(effort) ?? rawText(effort), at: effort } as const] : []),
    ...(format
      ? [{ name: "output_format", text: unorderedText(format, rule), at: format } as const]
      : output && otherOutput !== "{}"
        ? [{ name: "output_format", text: otherOutput ?? "", at: output } as const]
        : []),
    ...plain.filter(({ name }) => name !== "model" && name !== "speed"),
    ...(betas && betas.length > 0 ? [{ name: "betas", text: [...new Set(betas)].sort().join(",") } as const] : []),
    ...(citing ? [{ name: "citations", text: "on", at: citing.at } as const] : []),
    ...(images.length > 0 ? [{ name: "images", text: String(images.length) } as const] : []),
  ];
};
