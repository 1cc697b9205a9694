/** Where does a request diverge from the best earlier one?
 *  Invariant: every rendered block is remembered once, however many requests share it; no body is kept.
 *  Elsewhere: the hashes (render.ts), what the divergence cost (../cache). */

import type { Rendered, RenderedBlock } from "./render.ts";

type SeenBlock = {
  /** The block that most recently followed this one. */
  next: { readonly kind: string; readonly role: string; readonly digests: RenderedBlock["digests"] } | undefined;
  /** A request ended here. */
  ended: boolean;
};

export type Divergence = {
  /** JSON path in this request, such as `tools[7].description`. */
  readonly path: string;
  readonly index: number;
  readonly strippedThinking: boolean;
};

export class Lineages {
  readonly #seen = new Map<string, SeenBlock>();

  /** Null if the request extends an earlier one, is part of it, or is the first of its partition. */
  firstDivergence(rendered: Rendered, partition: string): Divergence | null {
    let at = this.#seen.get(partition);
    for (const [index, block] of rendered.blocks.entries()) {
      const seen = this.#seen.get(block.hash);
      if (seen !== undefined) {
        at = seen;
        continue;
      }
      if (at === undefined || at.ended || at.next === undefined) return null;
      if (block.strippedBefore !== undefined) return { path: block.strippedBefore, index, strippedThinking: true };
      return { path: `${block.path}${differingField(block, at.next)}`, index, strippedThinking: false };
    }
    return null;
  }

  remember(rendered: Rendered, partition: string): void {
    let at = this.#node(partition);
    for (const { hash, kind, role, digests } of rendered.blocks) {
      at.next = { kind, role, digests };
      at = this.#node(hash);
    }
    at.ended = true;
  }

  #node(key: string): SeenBlock {
    const known = this.#seen.get(key);
    if (known !== undefined) return known;
    const fresh: SeenBlock = { next: undefined, ended: false };
    this.#seen.set(key, fresh);
    return fresh;
  }
}

const differingField = (block: RenderedBlock, other: NonNullable<SeenBlock["next"]>): string => {
  if (block.role !== other.role || block.kind !== other.kind) return "";
  const theirs = new Map(other.digests);
  const different = block.digests.find(([shown, digest]) => theirs.get(shown) !== digest);
  if (different !== undefined) return different[0];
  const ours = new Set(block.digests.map(([shown]) => shown));
  const missing = other.digests.find(([shown]) => !ours.has(shown));
  return (missing ?? block.digests.at(-1))?.[0] ?? "";
};
