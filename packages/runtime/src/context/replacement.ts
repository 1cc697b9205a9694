/** Which tool results are too long for the conversation, and what replaces them?
 *  Invariant: decided when a result arrives, once per tool_use_id: the same batch and budget give the same decisions,
 *  byte for byte, and a decision never changes. Replacing a result later would edit what is cached. A clone knows all
 *  decisions up to its creation, and neither side sees what the other decides later. Cloning copies nothing.
 *  Elsewhere: keeping the whole text in a file, and sending (../agent). */

import { type ImageBlock, type TextBlock, text } from "@prefork/wire";
import { byteLength, estimateTokens, formatNumber, maxByteLength, takeHead, takeTail } from "./text.ts";

export type ResultBlock = TextBlock | ImageBlock;

/** In tokens. */
export type Budget = {
  readonly result: number;
  /** All results of one turn together. */
  readonly batch: number;
  /** Tools whose results may be longer, or must be shorter. */
  readonly byTool?: Readonly<Record<string, number>>;
};

/** A token that enters is a cache write once (1.25) and a cache read in every later turn (0.1): about 4 with thirty
 *  turns to come. Fetching a part later costs a turn that reads the prefix again: about 10,000 of the same units at
 *  100,000 tokens. So a result of 10,000 tokens is cheaper as a preview even if the model fetches parts of it more than
 *  once. What Read returns was requested by file and lines, and a preview of it would be read again, so its limit is the
 *  tool's own. A turn gets a quarter of the window, so that the next few still fit. */
export const budgetFor = (window = DEFAULT_WINDOW): Budget => {
  const batch = Math.floor(window / 4);
  return { result: Math.min(10_000, batch), batch, byTool: { Read: Math.min(25_000, batch) } };
};

/** The window of a model whose own figure is not known, in tokens. */
export const DEFAULT_WINDOW = 200_000;

/** A result that is about to enter the conversation. */
export type IncomingResult = {
  readonly toolUseId: string;
  readonly tool: string;
  readonly blocks: readonly ResultBlock[];
  /** Where its whole text is, or will be before this is sent. Absent: it could not be kept. */
  readonly file?: string;
};

export type Decision =
  | { readonly kind: "whole" }
  | {
      readonly kind: "replaced";
      readonly preview: readonly ResultBlock[];
      /** Bytes of the text that the preview replaces. */
      readonly bytes: number;
      readonly file?: string;
    };

const WHOLE: Decision = { kind: "whole" };

/** Of a typical image. Providers count by its dimensions, which are not read here. */
const IMAGE_TOKENS = 1_600;

export const tokensOfBlocks = (blocks: readonly ResultBlock[], bytesOf = byteLength): number =>
  blocks.reduce((sum, block) => sum + (block.type === "text" ? estimateTokens(bytesOf(block.text)) : IMAGE_TOKENS), 0);

/** One result on its own. */
export const decideReplacement = (entering: IncomingResult & { readonly budget: Budget }): Decision =>
  tokensOfBlocks(entering.blocks) <= limitOf(entering.tool, entering.budget) ? WHOLE : (toPreview(entering) ?? WHOLE);

const limitOf = (tool: string, { result, byTool = {} }: Budget): number =>
  Object.hasOwn(byTool, tool) ? (byTool[tool] ?? result) : result;

/** All results of one turn, in order: first each on its own, then the largest of the rest until all fit together.
 *  Results that are `known` were decided before; they keep their decision, and count. */
export const decideBatch = (
  batch: readonly IncomingResult[],
  { budget, known }: { readonly budget: Budget; readonly known?: (toolUseId: string) => Decision | undefined },
): readonly Decision[] => {
  if (certainlyFits(batch, budget)) return batch.map(({ toolUseId }) => known?.(toolUseId) ?? WHOLE);
  const decisions = batch.map((entering) => known?.(entering.toolUseId) ?? decideReplacement({ ...entering, budget }));
  const sizes = batch.map(({ blocks }, at) => sizeOf(decisions[at] ?? WHOLE, blocks));
  let total = sizes.reduce((sum, size) => sum + size, 0);
  // Sorting is stable: of equal results, the earlier goes first.
  const largestFirst = [...batch.entries()].sort(([a], [b]) => (sizes[b] ?? 0) - (sizes[a] ?? 0));
  for (const [at, entering] of largestFirst) {
    if (total <= budget.batch) break;
    if (decisions[at]?.kind !== "whole" || known?.(entering.toolUseId) !== undefined) continue;
    const replaced = toPreview(entering);
    if (replaced === undefined) continue;
    total += sizeOf(replaced, entering.blocks) - (sizes[at] ?? 0);
    decisions[at] = replaced;
  }
  return decisions;
};

/** Most batches are so short that nothing has to be measured. */
const certainlyFits = (batch: readonly IncomingResult[], budget: Budget): boolean => {
  const most = batch.map(({ blocks }) => tokensOfBlocks(blocks, maxByteLength));
  return (
    batch.every(({ tool }, at) => (most[at] ?? 0) <= limitOf(tool, budget)) &&
    most.reduce((sum, tokens) => sum + tokens, 0) <= budget.batch
  );
};

const sizeOf = (decision: Decision, blocks: readonly ResultBlock[]): number =>
  tokensOfBlocks(decision.kind === "whole" ? blocks : decision.preview);

const HEAD_BYTES = 4_000;
const TAIL_BYTES = 2_000;

/** Undefined if a preview would not be shorter. Images cannot be shown in part, and stay. */
const toPreview = ({ blocks, file }: IncomingResult): Decision | undefined => {
  const texts = blocks.flatMap((block) => (block.type === "text" ? [block.text] : []));
  const pictures = blocks.filter((block) => block.type !== "text");
  const whole = texts.join("\n");
  const preview = previewText(whole, file);
  if (byteLength(preview) >= byteLength(whole)) return undefined;
  const kept = file === undefined ? {} : { file };
  return { kind: "replaced", preview: [text(preview), ...pictures], bytes: byteLength(whole), ...kept };
};

/** The beginning shows what it is, the end how it turned out. */
const previewText = (whole: string, file: string | undefined): string => {
  const head = takeHead(whole, HEAD_BYTES);
  const tail = takeTail(whole.slice(head.length), TAIL_BYTES);
  const leftOut = whole.slice(head.length, whole.length - tail.length);
  const where =
    file === undefined
      ? "The rest could not be kept; ask for less at a time."
      : `All of it is in ${file}: read parts of that file, or search it.`;
  return [
    `[Too long to show whole: ${formatNumber(byteLength(whole))} bytes, ${formatNumber(countLines(whole))} lines. ${where}]`,
    withoutLastBreak(head),
    `[… ${formatNumber(byteLength(leftOut))} bytes, ${formatNumber(countLines(leftOut))} lines left out …]`,
    tail,
  ].join("\n");
};

const withoutLastBreak = (part: string): string => (part.endsWith("\n") ? part.slice(0, -1) : part);

/** The number of lines that begin in the text. */
const countLines = (part: string): number => {
  let count = part === "" || part.endsWith("\n") ? 0 : 1;
  for (let at = 0; at < part.length; at += 1) if (part[at] === "\n") count += 1;
  return count;
};

/** Remembers the decision about each result. */

type Decisions = ReadonlyMap<string, Decision>;

/** Lookups go through the layers one by one, and a parent of many forks adds a layer per fork. */
const MAX_LAYERS = 8;

export class ReplacementState {
  /** Newest last. Shared with clones, so never changed. */
  #layers: readonly Decisions[];
  #own = new Map<string, Decision>();

  constructor(layers: readonly Decisions[] = []) {
    this.#layers = layers;
  }

  get(toolUseId: string): Decision | undefined {
    return this.#own.get(toolUseId) ?? this.#layers.find((layer) => layer.has(toolUseId))?.get(toolUseId);
  }

  /** The ids whose whole text must be kept in a file before `decide` is called with the same batch. */
  idsToKeep(batch: readonly IncomingResult[], budget: Budget): readonly string[] {
    const decisions = this.#decisions(batch, budget);
    return batch.flatMap(({ toolUseId }, at) =>
      decisions[at]?.kind === "replaced" && this.get(toolUseId) === undefined ? [toolUseId] : [],
    );
  }

  /** Decides about all results of a turn, in order, and remembers the decisions. */
  decide(batch: readonly IncomingResult[], budget: Budget): readonly Decision[] {
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
      this.#layers = layers.length > MAX_LAYERS ? [new Map(layers.flatMap((layer) => [...layer]))] : layers;
      this.#own = new Map();
    }
    return new ReplacementState(this.#layers);
  }

  #decisions(batch: readonly IncomingResult[], budget: Budget): readonly Decision[] {
    return decideBatch(batch, { budget, known: (id) => this.get(id) });
  }
}
