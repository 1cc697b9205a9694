export { anthropic } from "./anthropic.ts";
export { readBlock } from "./anthropic-step.ts";
export type { Credential, FailedResponse, ParserState, Protocol, ReadableMoment, Step } from "./protocol.ts";
