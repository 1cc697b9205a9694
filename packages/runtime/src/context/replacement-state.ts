/** What was decided about each result, so that the answer is the same whenever it is asked again.
 *  Invariant: a decision is made once per tool_use_id and never changes; a clone knows all decisions up to its making,
 *  and neither side sees what the other decides later. Cloning copies nothing.
 *  Elsewhere: how it is decided (replacement.ts). */

import type { Json, JsonObject } from "@prefork/wire";
import * as z from "zod";
import { type Budget, type Decision, decideBatch, type Entering } from "./replacement.ts";

type Decisions = ReadonlyMap<string, Decision>;

/** Layers are looked through one by one; a parent of many forks gathers one a fork. */
const MOST_LAYERS = 8;

export class ReplacementState {
  /** The newest last; shared with clones, so never written. */
  #layers: readonly Decisions[];
  #own = new Map<string, Decision>();

  constructor(layers: readonly Decisions[] = []) {
    this.#layers = layers;
  }

  get(toolUseId: string): Decision | undefined {
    return this.#own.get(toolUseId) ?? this.#layers.find((layer) => layer.has(toolUseId))?.get(toolUseId);
  }

  /** The ids whose whole text must be kept in a file before `decide` is asked about the same batch. */
  toKeep(batch: readonly Entering[], budget: Budget): readonly string[] {
    const decisions = this.#decisions(batch, budget);
    return batch.flatMap(({ toolUseId }, at) =>
      decisions[at]?.kind === "replaced" && this.get(toolUseId) === undefined ? [toolUseId] : [],
    );
  }

  /** Decides about all results of a turn, in their order, and remembers it. */
  decide(batch: readonly Entering[], budget: Budget): readonly Decision[] {
    const decisions = this.#decisions(batch, budget);
    for (const [at, { toolUseId }] of batch.entries()) {
      const decision = decisions[at];
      if (decision !== undefined && this.get(toolUseId) === undefined) this.#own.set(toolUseId, decision);
    }
    return batch.map(({ toolUseId }) => this.get(toolUseId) ?? { kind: "whole" });
  }

  clone(): ReplacementState {
    if (this.#own.size > 0) {
      const layers = [...this.#layers, this.#own];
      this.#layers = layers.length > MOST_LAYERS ? [new Map(layers.flatMap((layer) => [...layer]))] : layers;
      this.#own = new Map();
    }
    return new ReplacementState(this.#layers);
  }

  toJson(): JsonObject {
    const all = [...this.#layers, this.#own].flatMap((layer) => [...layer]);
    const whole = all.flatMap(([id, { kind }]) => (kind === "whole" ? [id] : []));
    const replaced = all.flatMap(([id, decision]) => (decision.kind === "replaced" ? [asJson(id, decision)] : []));
    return { whole, replaced };
  }

  /** Undefined where this is no such state. */
  static fromJson(value: unknown): ReplacementState | undefined {
    const read = STORED.safeParse(value);
    if (!read.success) return undefined;
    const whole = read.data.whole.map((id): [string, Decision] => [id, { kind: "whole" }]);
    const replaced = read.data.replaced.map(({ id, preview, bytes, file }): [string, Decision] => {
      const kept = file === undefined ? {} : { file };
      return [id, { kind: "replaced", preview, bytes, ...kept }];
    });
    return new ReplacementState([new Map([...whole, ...replaced])]);
  }

  #decisions(batch: readonly Entering[], budget: Budget): readonly Decision[] {
    return decideBatch(batch, { budget, known: (id) => this.get(id) });
  }
}

type Replaced = Extract<Decision, { readonly kind: "replaced" }>;

const asJson = (id: string, { preview, bytes, file }: Replaced): Json => ({
  id,
  preview: preview.map((block) =>
    block.type === "text" ? { type: "text", text: block.text } : { type: "image", source: block.source },
  ),
  bytes,
  ...(file === undefined ? {} : { file }),
});

const STORED_IMAGE = z.union([
  z.object({ kind: z.literal("base64"), mediaType: z.string(), data: z.string() }),
  z.object({ kind: z.literal("url"), url: z.string() }),
  z.object({ kind: z.literal("file"), fileId: z.string() }),
  z.object({ kind: z.literal("text"), text: z.string() }),
]);

const STORED_BLOCK = z.union([
  z.object({ type: z.literal("text"), text: z.string() }),
  z.object({ type: z.literal("image"), source: STORED_IMAGE }),
]);

const STORED = z.object({
  whole: z.array(z.string()),
  replaced: z.array(
    z.object({ id: z.string(), preview: z.array(STORED_BLOCK), bytes: z.number(), file: z.string().optional() }),
  ),
});
