/** Who may ask the proxy for anything?
 *  Invariant: it answers under loopback names only, so a foreign name that resolves to loopback reaches nothing; and no
 *  page that somebody visits can use it, whatever name that page uses.
 *  Elsewhere: listening on loopback alone (proxy.ts). */

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
