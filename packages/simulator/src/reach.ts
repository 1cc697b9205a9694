/** Who may connect to the simulator?
 *  Invariant: it answers only under loopback names, so a foreign name that resolves to loopback gets nothing; and no
 *  page served from elsewhere can control it, whatever name that page uses.
 *  Elsewhere: listening on loopback only (simulator.ts). */

import type { IncomingMessage } from "node:http";

const loopback = String.raw`(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?`;
const loopbackHost = new RegExp(`^${loopback}$`, "i");
const loopbackOrigin = new RegExp(`^https?://${loopback}$`, "i");

export const isLoopbackHost = (request: IncomingMessage): boolean => loopbackHost.test(request.headers.host ?? "");

/** Browsers name the page behind a request in one of two headers; programs send neither. */
export const isForeignPage = ({ headers }: IncomingMessage): boolean =>
  headers["sec-fetch-site"] === "cross-site" || (headers.origin !== undefined && !loopbackOrigin.test(headers.origin));
