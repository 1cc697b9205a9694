export { anthropic } from "./anthropic.ts";
export { readBlock } from "./anthropic-step.ts";
export { openaiChat } from "./openai-chat.ts";
export { openaiResponses } from "./openai-responses.ts";
export { readItem } from "./openai-responses-step.ts";
export { type Profile, plainChat, profileAt, profiles, protocols } from "./profiles.ts";
export type { Credential, FailedResponse, ParserState, Protocol, ReadableMoment, Step } from "./protocol.ts";
