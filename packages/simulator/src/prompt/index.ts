/** The prompt of a request, block by block, and how it relates to earlier ones. */

export { canonical, citesIn, countedBlock, fieldsOf, imagesIn, isThinking } from "./block.ts";
export { commonTokens, cutsOf, type PrefixEnd, type Start } from "./cuts.ts";
export { type Divergence, Lineages } from "./diverge.ts";
export type { Parameters, ReadPrompt, ReadTool } from "./prompt.ts";
export { type Fingerprint, type Rendered, type RenderedBlock, render, renderAfter } from "./render.ts";
