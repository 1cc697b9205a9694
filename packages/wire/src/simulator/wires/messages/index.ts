/** Anthropic's Messages API. */

export type { DroppedThinking } from "./bound-thinking.ts";
export { BINDING_BETA, IssuedThinking, judgeThinking, signerFor } from "./bound-thinking.ts";
export { Diagnoses } from "./diagnose.ts";
export { checkRequest } from "./validate.ts";
