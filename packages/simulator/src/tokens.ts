/** How many tokens is a block?
 *  Invariant: the count is additive: a prompt is the sum of its blocks, and a block's count depends on that block
 *  alone.
 *  Elsewhere: which text of a block the rule sees (prompt/block.ts). */

/** A block as the rule sees it: what a model would read of it, without JSON structure. */
export type CountedBlock = {
  /** `tool`, or the block's own type: `text`, `tool_use`, `tool_result`, `thinking`, … */
  readonly kind: string;
  /** Text content: a tool's definition as JSON, a tool_use's input as JSON, otherwise the text itself. */
  readonly text: string;
  /** Images, and documents that are not plain text, inside the block. */
  readonly images: number;
  readonly documents: number;
};

export type TokenRule = (block: CountedBlock) => number;

export const BYTES_PER_TOKEN = 4;
export const TOKENS_PER_IMAGE = 1_600;
export const TOKENS_PER_DOCUMENT = 3_000;

/** The default rule: one token per four UTF-8 bytes of content, rounded up; structure is free. */
export const contentTokens: TokenRule = (block) =>
  Math.ceil(Buffer.byteLength(block.text) / BYTES_PER_TOKEN) +
  block.images * TOKENS_PER_IMAGE +
  block.documents * TOKENS_PER_DOCUMENT;

const words = ["oak ", "elm ", "fir ", "ash ", "yew ", "bay ", "box ", "fig "] as const;

/** Readable text of exactly `tokens` tokens under `contentTokens`; another seed gives different text from the first
 *  word on. */
export const textOfTokens = (tokens: number, seed = 0): string => {
  if (!Number.isInteger(tokens) || tokens < 0) throw new RangeError(`tokens: expected a whole number, got ${tokens}`);
  const parts: string[] = [];
  // A linear congruential generator: the text must depend on the seed alone, and neighbouring seeds must differ at
  // once.
  let state = (Math.imul(seed, 2_654_435_761) ^ 0x9e3779b9) >>> 0;
  for (let index = 0; index < tokens; index += 1) {
    parts.push(index < 8 ? seedWord(seed, index) : (words[state >>> 29] as string));
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
  }
  return parts.join("");
};

/** The first eight words spell the seed in octal digits, low digit first, so distinct seeds never begin the same
 *  way. */
const seedWord = (seed: number, index: number): string => words[Math.floor(Math.abs(seed) / 8 ** index) % 8] as string;
