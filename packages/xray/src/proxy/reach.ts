/** Who may send requests to the proxy?
 *  Invariant: it answers only under loopback names, so a foreign name that resolves to loopback gets nothing; and no
 *  web page served from elsewhere can use it, whatever name that page uses.
 *  Elsewhere: listening on loopback only (proxy.ts). */

import { headerValue, type RawHeaders } from "./headers.ts";

const LOOPBACK = String.raw`(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?`;
const HOST = new RegExp(`^${LOOPBACK}$`, "i");
const ORIGIN = new RegExp(`^https?://${LOOPBACK}$`, "i");

/** Exactly one `Host`, and it is ours. */
export const isLoopbackHost = (raw: RawHeaders): boolean => HOST.test(headerValue(raw, "host"));

/** Browsers name the page behind a request in one of two headers; programs send neither. */
export const isForeignPage = (raw: RawHeaders): boolean => {
  const origin = headerValue(raw, "origin");
  return headerValue(raw, "sec-fetch-site") === "cross-site" || (origin !== "" && !ORIGIN.test(origin));
};

export const LOOPBACK_HOSTS = ["127.0.0.1", "::1", "localhost"] as const;
export type LoopbackHost = (typeof LOOPBACK_HOSTS)[number];
