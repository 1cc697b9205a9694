/** @prefork/wire/internal: shared with our other packages, without any promise about these names. */

export { withoutNoise } from "./cost/index.ts";
export { ANTHROPIC_ERRORS, errorNameFor, GOOGLE_ERRORS } from "./errors.ts";
export {
  endOfValue,
  isArray,
  isArrayAt,
  isObject,
  isObjectAt,
  isStringAt,
  itemsOf,
  membersOf,
  parseJson,
  skipSpace,
} from "./json.ts";
export type { EncodedSegment, Insertion, MarkerSite, OpenTail, PrefixOrigin, SegmentEncoder } from "./prefix/index.ts";
export type { Assembly } from "./prepare.ts";
export type { FailedResponse, ParserState, ReadableMoment, Step, StreamEnd } from "./protocols/index.ts";
export { gptVersion, hasBreakpoints, plainChat } from "./protocols/index.ts";
export { type FormatName, guessFormat, heldConversation } from "./recorded/index.ts";
export type { Verbatim } from "./request.ts";
export { SHORTEST_FIRST } from "./request.ts";
export { decodeWhole, frameReader, openDecoder } from "./send/index.ts";
