/** What prompt a request is, block by block, and how it relates to earlier ones. */

export type { Field } from "./block.ts";
export { canonical, countedBlock, fieldsOf, isThinking } from "./block.ts";
export type { Divergence } from "./diverge.ts";
export { Lineages } from "./diverge.ts";
export type { Rendered, RenderedBlock } from "./render.ts";
export { render } from "./render.ts";
