/** Sending prepared requests and reading what comes back. */

export { type CachedContents, createCachedContents, type StoredContent, withCachedContent } from "./cached-contents.ts";
export { type Client, type ClientOptions, createClient, type SendOptions } from "./client.ts";
export { decodeWhole, frameReader, openDecoder } from "./decode.ts";
export { Backoff, defaultRetry, formatWait, type RetryEdge, type RetryPolicy } from "./retry.ts";
export { defaultTimeouts, type Timeouts } from "./transport.ts";
