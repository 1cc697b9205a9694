export { anthropic } from "./anthropic.ts";
export { readBlock } from "./anthropic-step.ts";
export { gemini } from "./gemini.ts";
export {
  type CachedContentOptions,
  type CachedContentPlan,
  checkedName,
  checkTtl,
  creationBody,
  namingBody,
  planCachedContent,
  readStored,
} from "./gemini-caches.ts";
export { requestIdIn } from "./http-failures.ts";
export { openaiChat } from "./openai-chat.ts";
export { openaiResponses } from "./openai-responses.ts";
export { readItem } from "./openai-responses-step.ts";
export { type Profile, plainChat, profileAt, profiles, protocols } from "./profiles.ts";
export type {
  Credential,
  FailedResponse,
  Pacing,
  ParserState,
  Protocol,
  ReadableMoment,
  Step,
  StreamEnd,
} from "./protocol.ts";
