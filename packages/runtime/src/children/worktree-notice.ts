/** What an agent is told that works in a copy of the checkout. Pure.
 *  Invariant: stands at the end of what it is given, so that siblings share everything before; names both folders.
 *  Elsewhere: making the copy (isolation.ts), what happens to paths all the same (bounds.ts). */

import { shownName } from "@prefork/guard/internal";
import type { Addition, Block, ToolResultBlock } from "@prefork/wire";
import { oneLine } from "../context/index.ts";

export type Folders = {
  /** Of whoever started it. */
  readonly from: string;
  /** Its own. */
  readonly to: string;
};

export const worktreeNotice = (
  { from, to }: Folders,
  { isFork, leftOut }: { readonly isFork: boolean; readonly leftOut: readonly string[] },
): string =>
  [
    `You work in a git worktree of your own: ${to}`,
    `It is a copy of the checkout at ${from}, uncommitted files included, with the same layout below it.`,
    ...(isFork
      ? [
          `Paths in the conversation above mean the checkout; read them as paths below ${to}. Read a file there again before you edit it: it may have changed since it was shown.`,
        ]
      : []),
    `Leave the checkout alone. What you change in the worktree is on its branch when you end, whether you commit it yourself or not, and is merged later.`,
    ...(leftOut.length === 0 ? [] : [`Not copied: ${someOf(leftOut)}.`]),
  ].join("\n");

const MOST_NAMES = 20;

/** Names of files are anybody's words: each on one line, and no more than a model should read. */
export const someOf = (names: readonly string[]): string => {
  const shown = names.slice(0, MOST_NAMES).map((name) => oneLine(shownName(name)));
  return [...shown, ...(names.length > MOST_NAMES ? [`and ${names.length - MOST_NAMES} more`] : [])].join(", ");
};

/** The words of a child, with something at their very end. */
export const withLast = (words: readonly Addition[], notice: string): readonly Addition[] => {
  const last = words.at(-1);
  if (!last) return words;
  const ended: Addition =
    last.kind === "blocks"
      ? { ...last, blocks: ending(last.blocks, notice) }
      : { ...last, message: { ...last.message, content: ending(last.message.content, notice) } };
  return [...words.slice(0, -1), ended];
};

/** In the last text, also where that stands inside a result. */
const ending = <B extends Block>(blocks: readonly B[], notice: string): readonly Block[] => {
  const last = blocks.at(-1);
  const own = { type: "text", text: notice } as const;
  if (last?.type === "text") return [...blocks.slice(0, -1), { ...last, text: `${last.text}\n\n${notice}` }];
  if (last?.type === "tool_result") return [...blocks.slice(0, -1), inside(last, notice)];
  return [...blocks, own];
};

const inside = (result: ToolResultBlock, notice: string): ToolResultBlock => {
  const last = result.content.at(-1);
  if (last?.type !== "text") return { ...result, content: [...result.content, { type: "text", text: notice }] };
  return { ...result, content: [...result.content.slice(0, -1), { ...last, text: `${last.text}\n\n${notice}` }] };
};
