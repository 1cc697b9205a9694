/** What is cached of prompts, and what a request finds of it. */

export { type CacheResult, Caching } from "./caching.ts";
export type { CachingSettings, Miss, MissCause, PlannedWrite } from "./plan.ts";
