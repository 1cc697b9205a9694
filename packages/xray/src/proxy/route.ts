/** Where does a request go, which format is it in, and how is it refused?
 *  Invariant: a credential is never sent to a provider that its request does not name: if neither the path nor a header
 *  says whose request it is, nobody gets it.
 *  Elsewhere: sending it (server-pass.ts), who may send requests (reach.ts). */

import {
  anthropic,
  gemini,
  InputError,
  type JsonObject,
  openaiResponses,
  type Protocol,
  profileAt,
  profiles,
} from "@prefork/wire";
import { ANTHROPIC_ERRORS, errorNameFor, plainChat } from "@prefork/wire/internal";
import type { XrayProtocol } from "../compare/index.ts";
import { hasHeader, type RawHeaders } from "./headers.ts";

export type Upstream = {
  readonly isSecure: boolean;
  readonly hostname: string;
  readonly port: number;
  /** As in the `Host` header. */
  readonly host: string;
  /** What comes before the path of every request; "" or "/api". */
  readonly base: string;
};

export const upstreamOf = (text: string): Upstream => {
  const url = URL.parse(text);
  const wrong = (why: string): InputError => new InputError(`upstream ${withoutSecrets(text)}: ${why}`);
  if (!url || (url.protocol !== "http:" && url.protocol !== "https:"))
    throw wrong("expected an address such as https://api.anthropic.com");
  if (url.username !== "" || url.password !== "") throw wrong("must not contain a user or a password");
  if (url.search !== "" || url.hash !== "") throw wrong("must not have a query or a fragment");
  const isSecure = url.protocol === "https:";
  const port = url.port === "" ? (isSecure ? 443 : 80) : Number(url.port);
  return {
    isSecure,
    hostname: url.hostname.replace(/^\[(.*)\]$/, "$1"),
    port,
    host: url.host,
    base: url.pathname.replace(/\/+$/, ""),
  };
};

/** An address for an error message, without a possible password. */
const withoutSecrets = (text: string): string => text.replace(/\/\/[^/]*@/, "//…@").replace(/[?#].*$/s, "?…");

export const upstreamUrl = ({ isSecure, host, base }: Upstream): string =>
  `${isSecure ? "https" : "http"}://${host}${base}`;

/** A provider's own address, without the path that our requests add to it. */
const homeOf = (profile: string): Upstream => upstreamOf(new URL(profiles.get(profile)?.baseUrl ?? "").origin);

const ANTHROPIC = homeOf("anthropic");
const OPENAI = homeOf("openai");
const GEMINI = homeOf("gemini");

// --- what a request speaks -------------------------------------------------------------------------------------------

/** The path without its query, which may contain a key. */
export const pathOf = (url: string): string => url.split(/[?#]/, 1)[0] ?? "";

const WIRES: readonly (readonly [XrayProtocol, RegExp])[] = [
  // Messages of a thread are a different API.
  ["anthropic-messages", /^(?!.*\/threads\/).*\/messages$/],
  ["openai-responses", /\/responses$/],
  ["openai-chat", /\/chat\/completions$/],
  ["gemini", /\/models\/[^/]+:(?:generateContent|streamGenerateContent)$/],
];

/** The format of a request that is analysed; everything else is only forwarded. */
export const wireOf = (method: string, path: string): XrayProtocol | undefined =>
  method === "POST" ? WIRES.find(([, pattern]) => pattern.test(path))?.[0] : undefined;

/** Creates a stored entry. */
export const isCreation = (method: string, path: string): boolean =>
  method === "POST" && /\/cachedContents$/.test(path);

/** The protocol that reads the usage in its answers. */
export const protocolOf = (wire: XrayProtocol, upstream: string): Protocol => {
  const known = profileAt(upstream)?.protocol;
  if (wire === "anthropic-messages") return known?.path === anthropic.path ? known : anthropic;
  if (wire === "openai-responses") return openaiResponses;
  if (wire === "gemini") return gemini;
  return known?.path === plainChat.path ? known : plainChat;
};

// --- where it goes ---------------------------------------------------------------------------------------------------

const isAnthropic = (path: string, raw: RawHeaders): boolean =>
  /^\/v1\/messages(?:\/|$)/.test(path) || hasHeader(raw, "anthropic-version") || hasHeader(raw, "x-api-key");

const isGemini = (path: string, raw: RawHeaders): boolean =>
  /^\/v1(?:alpha|beta)?\/models\/[^/]+:\w+$/.test(path) || hasHeader(raw, "x-goog-api-key");

/** `given`, or the provider that the request belongs to; undefined if that is unknown. */
export const upstreamFor = (path: string, raw: RawHeaders, given: Upstream | undefined): Upstream | undefined => {
  if (given) return given;
  if (isAnthropic(path, raw)) return ANTHROPIC;
  if (isGemini(path, raw)) return GEMINI;
  return /^\/v1\//.test(path) ? OPENAI : undefined;
};

// --- refusals --------------------------------------------------------------------------------------------------------

export type Refusal = { readonly status: number; readonly message: string };

/** In the form that this request's client understands. */
export const refusalBody = ({ status, message }: Refusal, path: string, raw: RawHeaders): JsonObject => {
  const text = `prefork proxy: ${message}`;
  if (isAnthropic(path, raw) || wireOf("POST", path) === "anthropic-messages")
    return {
      type: "error",
      error: { type: errorNameFor(status === 405 ? 400 : status, ANTHROPIC_ERRORS) ?? "api_error", message: text },
    };
  if (isGemini(path, raw))
    return { error: { code: status, message: text, status: status < 500 ? "INVALID_ARGUMENT" : "UNAVAILABLE" } };
  const type = status < 500 ? "invalid_request_error" : "server_error";
  return { error: { message: text, type, param: null, code: null } };
};

const CONNECT_FAILURES: Readonly<Record<string, string>> = {
  ECONNREFUSED: "nothing is listening there",
  ENOTFOUND: "no such host",
  EAI_AGAIN: "its name cannot be resolved now",
  ETIMEDOUT: "no answer to the connection",
  EHOSTUNREACH: "no route to that host",
  ENETUNREACH: "no route to that network",
  ECONNRESET: "the connection was reset while it was made",
};

/** Why there is no connection. Several addresses may have been tried. */
export const unreachable = (upstream: Upstream, error: NodeJS.ErrnoException): Refusal => {
  const code = error.code ?? "no connection";
  const isCertificate = /CERT|SELF_SIGNED|UNABLE_TO_/.test(code);
  const words =
    CONNECT_FAILURES[code] ??
    (isCertificate ? "its certificate is not trusted here; NODE_EXTRA_CA_CERTS adds to those that are" : undefined);
  const why = words === undefined ? code : `${words} (${code})`;
  return { status: 502, message: `cannot reach ${upstreamUrl(upstream)}: ${why}` };
};
