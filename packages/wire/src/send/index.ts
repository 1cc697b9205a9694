/** Sending prepared requests and reading what comes back. */

export { type CachedContents, createCachedContents, type StoredContent, withCachedContent } from "./cached-contents.ts";
export {
  Backoff,
  type Client,
  type ClientOptions,
  createClient,
  defaultRetry,
  formatWait,
  type RetryPolicy,
  type RetryTiming,
  type SendOptions,
} from "./client.ts";
export { decodeWhole, frameReader, openDecoder } from "./decode.ts";
export { defaultTimeouts, type Timeouts } from "./transport.ts";
