/** What OpenAI's two formats have in common. */

export { errorFields, openaiWire } from "./errors.ts";
export { cachingOf, checkBreakpoint, checkCaching, checkEffort, markerOn } from "./settings.ts";
export { markersIn, partTurns } from "./turns.ts";
export { openaiShapes, unsupported } from "./words.ts";
