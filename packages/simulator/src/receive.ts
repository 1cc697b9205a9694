/** What does a request contain before its meaning is checked?
 *  Invariant: nothing here judges a body's content; credentials are only hashed, and are never in a stored path or list
 *  of headers.
 *  Elsewhere: routing (server.ts), what the body means (wires/). */

import type { IncomingMessage } from "node:http";
import { type ParsedBody, parseBody } from "./body.ts";
import { oneLine, type Refusal } from "./errors.ts";
import type { Wire } from "./wire.ts";

const MAX_BODY_BYTES = 32 * 1024 * 1024;
const credentialHeaders = new Set(["x-api-key", "authorization", "x-goog-api-key", "cookie", "proxy-authorization"]);

/** Undefined if the client disconnected while sending. An oversized body is read to its end but not kept completely. */
export const readBody = async (request: IncomingMessage): Promise<Buffer | undefined> => {
  const chunks: Buffer[] = [];
  let length = 0;
  try {
    for await (const chunk of request as AsyncIterable<Buffer>) {
      length += chunk.length;
      if (length <= MAX_BODY_BYTES + 65_536) chunks.push(chunk);
    }
  } catch {
    return undefined;
  }
  return Buffer.concat(chunks);
};

/** Null for a target that is not a path; a path that looks like a host, such as `//[`, stays a path. */
export const urlOf = ({ url = "/" }: IncomingMessage): URL | null =>
  URL.parse(url.startsWith("/") ? `http://simulator${url}` : url);

/** The path without the key that some clients put into it. */
export const keptPath = (url: URL): string => {
  const kept = new URL(url);
  kept.searchParams.delete("key");
  return `${kept.pathname}${kept.search}`;
};

export type OpenTerms = {
  readonly wire: Wire;
  readonly credential: string;
  /** A self-hosted engine needs no key. */
  readonly keyless: boolean;
};

/** The checks before the provider reads the request itself. */
export const openBody = (received: Buffer, terms: OpenTerms): { readonly parsed: ParsedBody } | Refusal => {
  const { refusals } = terms.wire;
  if (terms.credential === "" && !terms.keyless) return refusals.noKey;
  if (received.length > MAX_BODY_BYTES) return { status: 413, message: "Request exceeds the maximum size of 32 MB" };
  try {
    const parsed = parseBody(received.toString("utf8"));
    return parsed === undefined ? refusals.noObject : { parsed };
  } catch (cause) {
    const refusal = refusals.noJson(cause instanceof Error ? cause.message : "");
    return { ...refusal, message: oneLine(refusal.message) };
  }
};

const header = (request: IncomingMessage, name: string): string => {
  const value = request.headers[name];
  return Array.isArray(value) ? value.join(",") : (value ?? "");
};

export const credentialOf = (request: IncomingMessage, url: URL): string =>
  header(request, "x-api-key").trim() ||
  header(request, "x-goog-api-key").trim() ||
  header(request, "authorization")
    .replace(/^bearer\s+/i, "")
    .trim() ||
  (url.searchParams.get("key") ?? "");

export const headersOf = (request: IncomingMessage): Readonly<Record<string, string>> =>
  Object.fromEntries(
    Object.keys(request.headers)
      .filter((name) => !credentialHeaders.has(name))
      .map((name) => [name, header(request, name)]),
  );
