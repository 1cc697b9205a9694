/** What is kept of prompts, and what a request finds of it. */

export type { Breakpoint } from "./breakpoints.ts";
export { breakpointsOf } from "./breakpoints.ts";
export type { Asked, Miss, MissCause } from "./entries.ts";
export { PrefixCache } from "./entries.ts";
