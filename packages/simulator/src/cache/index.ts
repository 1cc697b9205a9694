/** What is kept of prompts, and what a request finds of it. */

export { Caching, type Taken } from "./caching.ts";
export type { CachingAsked, Miss, MissCause, Write } from "./plan.ts";
