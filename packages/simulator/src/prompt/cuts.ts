/** Where inside a prompt can an entry end at a token count instead of at a block?
 *  Invariant: two prompts have the same hash at a position exactly when they agree in every token up to it, and in who
 *  said those tokens. A block that cannot be shared partly agrees as a whole or not at all.
 *  Elsewhere: hashes at the ends of blocks (render.ts), which of these positions are cached (../cache). */

import { createHash, hash } from "node:crypto";
import { BYTES_PER_TOKEN } from "../tokens.ts";
import type { RenderedBlock } from "./render.ts";

/** An end of a prefix. */
export type PrefixEnd = { readonly hash: string; readonly end: number; readonly path: string };

export type Start = Pick<RenderedBlock, "hash" | "end">;

/** The positions at every multiple of `step` tokens after `start`. */
export const cutsOf = (blocks: readonly RenderedBlock[], start: Start, step: number): readonly PrefixEnd[] => {
  const places: PrefixEnd[] = [];
  let before = start;
  for (const block of blocks) {
    const firstCut = (Math.floor(before.end / step) + 1) * step;
    if (firstCut <= block.end) for (const place of cutsIn(block, before, { firstCut, step })) places.push(place);
    before = block;
  }
  return places;
};

type Steps = { readonly firstCut: number; readonly step: number };

function* cutsIn(block: RenderedBlock, before: Start, { firstCut, step }: Steps): Generator<PrefixEnd> {
  const { content, path } = block;
  if (content === undefined) {
    for (let end = firstCut; end <= block.end; end += step)
      yield { hash: hash("sha256", `${block.hash} ${end - before.end}`), end, path };
    return;
  }
  const bytes = Buffer.from(content);
  const running = createHash("sha256").update(`${before.hash} cut ${block.opening}\n`);
  let from = 0;
  for (let end = firstCut; end <= block.end; end += step) {
    const to = byteAt(bytes.length, block.tokens, end - before.end);
    running.update(bytes.subarray(from, to));
    from = to;
    yield { hash: running.copy().digest("hex"), end, path };
  }
}

/** Where token number `count` ends: every four bytes if that is how the block was counted, otherwise evenly. */
const byteAt = (length: number, tokens: number, count: number): number =>
  Math.ceil(length / BYTES_PER_TOKEN) === tokens
    ? Math.min(length, count * BYTES_PER_TOKEN)
    : Math.floor((length * count) / tokens);

/** How many tokens two prompts share from their start. */
export const commonTokens = (a: readonly RenderedBlock[], b: readonly RenderedBlock[]): number => {
  let common = 0;
  for (const [index, block] of a.entries()) {
    const other = b[index];
    if (other === undefined) return common;
    if (block.hash !== other.hash) return common + commonInside(block, other);
    common = block.end;
  }
  return common;
};

/** For two blocks that follow the same prompt and differ. */
const commonInside = (a: RenderedBlock, b: RenderedBlock): number => {
  if (a.content === undefined || b.content === undefined || a.opening !== b.opening) return 0;
  const [left, right] = [Buffer.from(a.content), Buffer.from(b.content)];
  const most = Math.min(a.tokens, b.tokens);
  let [low, high] = [0, most];
  // Binary search for the longest agreement, which ends only once.
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    const [ours, theirs] = [byteAt(left.length, a.tokens, middle), byteAt(right.length, b.tokens, middle)];
    if (ours === theirs && left.compare(right, 0, theirs, 0, ours) === 0) low = middle;
    else high = middle - 1;
  }
  return low;
};
