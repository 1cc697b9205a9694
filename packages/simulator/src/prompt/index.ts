/** What prompt a request is, block by block, and how it relates to earlier ones. */

export { canonical, citesIn, countedBlock, fieldsOf, imagesIn, isThinking } from "./block.ts";
export type { Place, Start } from "./cuts.ts";
export { commonTokens, cutsOf } from "./cuts.ts";
export type { Divergence } from "./diverge.ts";
export { Lineages } from "./diverge.ts";
export type { Parameters, ReadPrompt, ReadTool } from "./prompt.ts";
export type { Fingerprint, Rendered, RenderedBlock } from "./render.ts";
export { render, renderAfter } from "./render.ts";
