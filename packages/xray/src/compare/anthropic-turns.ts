/** The turns of an Anthropic Messages body, and the blocks of each.
 *  Invariant: reading never fails on a wrong type: what is no block is one of no type.
 *  Elsewhere: what they render to (anthropic.ts), what of them are parameters (anthropic-settings.ts). */

import {
  type At,
  isArrayHere,
  itemsAt,
  type MemberAt,
  memberAt,
  membersAt,
  stringAt,
  type TextRule,
} from "./places.ts";

/** The order of keys counts where a model sees it; markers are no part of the prompt. */
export const anthropicText: TextRule = {
  ordered: new Set(["input", "input_schema", "input_examples"]),
  unseen: new Set(["cache_control"]),
};

export type Block = {
  readonly at: At;
  readonly type: string;
  readonly members: readonly MemberAt[];
};

export type Turn = {
  readonly role: string;
  readonly at: At;
  readonly members: readonly MemberAt[];
  readonly blocks: readonly Block[];
};

/** A string is one block of text. */
export const blocksOf = (content: At | undefined): readonly Block[] => {
  if (content === undefined) return [];
  if (!isArrayHere(content)) return [{ at: content, type: "text", members: [] }];
  return itemsAt(content).map((at) => {
    const members = membersAt(at);
    return { at, type: stringAt(memberAt(members, "type")) ?? "", members };
  });
};

export const turnsOf = (members: readonly MemberAt[]): readonly Turn[] => {
  const messages = memberAt(members, "messages");
  return (messages ? itemsAt(messages) : []).map((at) => {
    const inside = membersAt(at);
    const blocks = blocksOf(memberAt(inside, "content"));
    return { role: stringAt(memberAt(inside, "role")) ?? "", at, members: inside, blocks };
  });
};

/** The blocks inside a tool result. */
export const partsOf = ({ type, members }: Block): readonly Block[] =>
  type === "tool_result" ? blocksOf(memberAt(members, "content")) : [];
