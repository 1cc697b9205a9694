/** What OpenAI's two formats have in common. */

export { openaiShapes, unsupported } from "./complaints.ts";
export { errorFields, openaiWire } from "./errors.ts";
export { cachingOf, checkBreakpoint, checkCaching, checkEffort, markerOn, markersIn, partTurns } from "./settings.ts";
