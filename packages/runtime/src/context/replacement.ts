/** Which results of tools are too long to enter the conversation whole, and what enters in their place?
 *  Invariant: pure, and decided when a result enters: the same batch and budget give the same decisions, byte for byte.
 *  Nothing that has entered is ever replaced later, since that would edit what is cached.
 *  Elsewhere: remembering decisions (replacement-state.ts), keeping the whole in a file and sending (../agent). */

import { type ImageBlock, type TextBlock, text } from "@prefork/wire";
import { bytesOfText, figure, headOf, mostBytesOfText, tailOf, tokensOfBytes } from "./text.ts";

export type ResultBlock = TextBlock | ImageBlock;

/** In tokens. */
export type Budget = {
  readonly result: number;
  /** All results of one turn together. */
  readonly batch: number;
  /** Tools whose results may be longer, or must be shorter. */
  readonly byTool?: Readonly<Record<string, number>>;
};

/** A token that enters is written once (1.25) and read every later turn (0.1): with thirty turns to come about 4. Coming
 *  back for a part costs a turn that reads the prefix again: about 10,000 of the same units at 100,000 tokens. So a
 *  result of 10,000 tokens is cheaper as a preview even if the model comes back for parts of it more than once.
 *  What Read gives was asked for by file and lines, and a preview of it would be read again: it gets what the tool
 *  itself permits at most. A turn gets a quarter of the window, so that the next few still fit. */
export const budgetFor = (window = DEFAULT_WINDOW): Budget => {
  const batch = Math.floor(window / 4);
  return { result: Math.min(10_000, batch), batch, byTool: { Read: Math.min(25_000, batch) } };
};

/** Tokens a model takes where its own figure is not known. */
export const DEFAULT_WINDOW = 200_000;

/** A result that wants to enter. */
export type Entering = {
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
      /** Of the text that the preview stands for. */
      readonly bytes: number;
      readonly file?: string;
    };

const WHOLE: Decision = { kind: "whole" };

/** Of a usual picture; providers count by its size on the screen, which is not looked at here. */
const IMAGE_TOKENS = 1_600;

export const tokensOfBlocks = (blocks: readonly ResultBlock[], bytesOf = bytesOfText): number =>
  blocks.reduce((sum, block) => sum + (block.type === "text" ? tokensOfBytes(bytesOf(block.text)) : IMAGE_TOKENS), 0);

/** One result by itself. */
export const decideReplacement = (entering: Entering & { readonly budget: Budget }): Decision =>
  tokensOfBlocks(entering.blocks) <= limitOf(entering.tool, entering.budget) ? WHOLE : (replace(entering) ?? WHOLE);

const limitOf = (tool: string, { result, byTool = {} }: Budget): number =>
  Object.hasOwn(byTool, tool) ? (byTool[tool] ?? result) : result;

/** All results of one turn, in their order: first each by itself, then the largest of the rest until all fit together.
 *  `known` were decided before; they stay as they are, and count. */
export const decideBatch = (
  batch: readonly Entering[],
  { budget, known }: { readonly budget: Budget; readonly known?: (toolUseId: string) => Decision | undefined },
): readonly Decision[] => {
  if (surelyFit(batch, budget)) return batch.map(({ toolUseId }) => known?.(toolUseId) ?? WHOLE);
  const decisions = batch.map((entering) => known?.(entering.toolUseId) ?? decideReplacement({ ...entering, budget }));
  const sizes = batch.map(({ blocks }, at) => sizeOf(decisions[at] ?? WHOLE, blocks));
  let total = sizes.reduce((sum, size) => sum + size, 0);
  // Sorting is stable: of equals the earlier goes first.
  const largestFirst = [...batch.entries()].sort(([a], [b]) => (sizes[b] ?? 0) - (sizes[a] ?? 0));
  for (const [at, entering] of largestFirst) {
    if (total <= budget.batch) break;
    if (decisions[at]?.kind !== "whole" || known?.(entering.toolUseId) !== undefined) continue;
    const replaced = replace(entering);
    if (replaced === undefined) continue;
    total += sizeOf(replaced, entering.blocks) - (sizes[at] ?? 0);
    decisions[at] = replaced;
  }
  return decisions;
};

/** Most batches are so short that nothing has to be measured. */
const surelyFit = (batch: readonly Entering[], budget: Budget): boolean => {
  const most = batch.map(({ blocks }) => tokensOfBlocks(blocks, mostBytesOfText));
  return (
    batch.every(({ tool }, at) => (most[at] ?? 0) <= limitOf(tool, budget)) &&
    most.reduce((sum, tokens) => sum + tokens, 0) <= budget.batch
  );
};

const sizeOf = (decision: Decision, blocks: readonly ResultBlock[]): number =>
  tokensOfBlocks(decision.kind === "whole" ? blocks : decision.preview);

const HEAD_BYTES = 4_000;
const TAIL_BYTES = 2_000;

/** Undefined where a preview would not be shorter. Pictures cannot be shown in part, and stay. */
const replace = ({ blocks, file }: Entering): Decision | undefined => {
  const texts = blocks.flatMap((block) => (block.type === "text" ? [block.text] : []));
  const pictures = blocks.filter((block) => block.type !== "text");
  const whole = texts.join("\n");
  const preview = previewText(whole, file);
  if (bytesOfText(preview) >= bytesOfText(whole)) return undefined;
  const kept = file === undefined ? {} : { file };
  return { kind: "replaced", preview: [text(preview), ...pictures], bytes: bytesOfText(whole), ...kept };
};

/** The beginning says what it is, the end how it came out. */
const previewText = (whole: string, file: string | undefined): string => {
  const head = headOf(whole, HEAD_BYTES);
  const tail = tailOf(whole.slice(head.length), TAIL_BYTES);
  const leftOut = whole.slice(head.length, whole.length - tail.length);
  const where =
    file === undefined
      ? "The rest could not be kept; ask for less at a time."
      : `All of it is in ${file}: read parts of that file, or search it.`;
  return [
    `[Too long to show whole: ${figure(bytesOfText(whole))} bytes, ${figure(linesIn(whole))} lines. ${where}]`,
    withoutLastBreak(head),
    `[… ${figure(bytesOfText(leftOut))} bytes, ${figure(linesIn(leftOut))} lines left out …]`,
    tail,
  ].join("\n");
};

const withoutLastBreak = (part: string): string => (part.endsWith("\n") ? part.slice(0, -1) : part);

/** Lines that begin in the text. */
const linesIn = (part: string): number => (part === "" ? 0 : withoutLastBreak(part).split("\n").length);

/** What was decided about each result, so that the answer is the same whenever it is asked again.
 *  Invariant: a decision is made once per tool_use_id and never changes; a clone knows all decisions up to its making,
 *  and neither side sees what the other decides later. Cloning copies nothing.
 *  Elsewhere: how it is decided (replacement.ts). */

type Decisions = ReadonlyMap<string, Decision>;

/** Layers are looked through one by one; a parent of many forks gathers one a fork. */
const MAX_LAYERS = 8;

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
      this.#layers = layers.length > MAX_LAYERS ? [new Map(layers.flatMap((layer) => [...layer]))] : layers;
      this.#own = new Map();
    }
    return new ReplacementState(this.#layers);
  }

  #decisions(batch: readonly Entering[], budget: Budget): readonly Decision[] {
    return decideBatch(batch, { budget, known: (id) => this.get(id) });
  }
}
