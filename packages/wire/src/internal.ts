/** @prefork/wire/internal: what our other packages share with this one. No promise is made about these names. */

export { decodeWhole, openDecoder } from "./decode.ts";
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
export { withoutNoise } from "./prices.ts";
export { plainChat } from "./protocols/index.ts";
export { signsIn } from "./recorded/index.ts";
export { SHORTEST_FIRST } from "./request.ts";
export { frameReader } from "./transport.ts";
