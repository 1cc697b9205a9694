export { anthropic, readBlock } from "./anthropic.ts";
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
export { openaiResponses, readItem } from "./openai-responses.ts";
export { gptVersion, hasBreakpoints } from "./openai-settings.ts";
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
