/** Pictures that no provider has counted yet. Pure.
 *  Invariant: their bytes say nothing of their tokens, so both are kept apart from all other bytes.
 *  Elsewhere: what they are taken to cost (../agent), what a journal adds up to (replay.ts). */

import type { Block } from "@prefork/wire";

export type Pictures = { readonly count: number; readonly bytes: number };

export const noPictures: Pictures = { count: 0, bytes: 0 };

export const withPictures = (before: Pictures, blocks: readonly Block[]): Pictures =>
  blocks.reduce<Pictures>((sum, block) => {
    if (block.type === "tool_result") return withPictures(sum, block.content);
    if (block.type !== "image") return sum;
    const { source } = block;
    return { count: sum.count + 1, bytes: sum.bytes + (source.kind === "base64" ? source.data.length : 0) };
  }, before);
