/** What OpenAI's two formats have in common. */

export { errorFields, openaiWire } from "./errors.ts";
export { cachingOf, checkBreakpoint, checkCaching, checkEffort, markerOn, markersIn, partTurns } from "./settings.ts";
export { openaiShapes, unsupported } from "./words.ts";
