/** @prefork/wire/internal: what our other packages share with this one. No promise is made about these names. */

export { withoutNoise } from "./cost/index.ts";
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
export { plainChat } from "./protocols/index.ts";
export { signsIn } from "./recorded/index.ts";
export { SHORTEST_FIRST } from "./request.ts";
export { decodeWhole, frameReader, openDecoder } from "./send/index.ts";
