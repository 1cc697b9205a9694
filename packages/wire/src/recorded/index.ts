/** Requests that somebody else encoded, used with their exact bytes. */

export { readRecorded } from "./anthropic.ts";
export { type FormatGuess, type FormatName, guessFormat, readAnswer, readParent } from "./format.ts";
export { answerTextCalls } from "./openai-responses.ts";
export type { RecordedAnswer, RecordedParent, RecordedRequest, Recording } from "./recording.ts";
export { heldConversation } from "./recording.ts";
