/** How each provider is spoken to. */

export type { DroppedThinking } from "./messages/index.ts";
export { BINDING_BETA, checkRequest, Diagnoses, IssuedThinking, judgeThinking, signerFor } from "./messages/index.ts";
