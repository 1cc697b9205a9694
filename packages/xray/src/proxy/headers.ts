/** Which headers are forwarded, and which belong to one connection only? Which of them are secrets?
 *  Invariant: forwarded headers keep their order, case and duplicates; headers that frame a connection or keep it open
 *  are written again in the same place; credentials leave this module only in order to be redacted.
 *  Elsewhere: sending them (server-pass.ts), where a request goes (route.ts). */

/** Name, value, name, value … as they were on the wire. */
export type RawHeaders = readonly string[];

type Pair = readonly [name: string, value: string];

export const pairsOf = (raw: RawHeaders): readonly Pair[] =>
  Array.from({ length: raw.length >> 1 }, (_, index): Pair => [raw[2 * index] ?? "", raw[2 * index + 1] ?? ""]);

/** Called a dozen times per request, so it builds no list. */
const isNamed = (text: string | undefined, name: string): boolean =>
  text !== undefined && text.length === name.length && text.toLowerCase() === name;

/** All values of one header, joined as a list. */
export const headerValue = (raw: RawHeaders, name: string): string => {
  let found: string | undefined;
  for (let at = 0; at < raw.length; at += 2)
    if (isNamed(raw[at], name)) found = found === undefined ? raw[at + 1] : `${found}, ${raw[at + 1]}`;
  return found ?? "";
};

export const listOf = (raw: RawHeaders, name: string): readonly string[] => {
  const value = headerValue(raw, name);
  return value === "" ? [] : value.split(",").flatMap((item) => item.trim().toLowerCase() || []);
};

export const hasHeader = (raw: RawHeaders, name: string): boolean => {
  for (let at = 0; at < raw.length; at += 2) if (isNamed(raw[at], name)) return true;
  return false;
};

/** Headers of one connection only, whether or not `Connection` names them. */
const HOP_BY_HOP: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "transfer-encoding",
  "upgrade",
]);

/** Naming these in `Connection` does not remove them. */
const ESSENTIAL: ReadonlySet<string> = new Set(["host", "content-length"]);

const forwardHeaders = (
  raw: RawHeaders,
  overrides: Readonly<Record<string, string | undefined>>,
): readonly string[] => {
  const named = new Set(listOf(raw, "connection").filter((name) => !ESSENTIAL.has(name)));
  const seen = new Set<string>();
  const kept: string[] = [];
  for (let at = 0; at < raw.length; at += 2) {
    const [name = "", value = ""] = [raw[at], raw[at + 1]];
    const key = name.toLowerCase();
    if (Object.hasOwn(overrides, key)) {
      const text = overrides[key];
      if (text !== undefined && !seen.has(key)) kept.push(name, text);
      seen.add(key);
    } else if (!HOP_BY_HOP.has(key) && !named.has(key)) kept.push(name, value);
  }
  return kept;
};

/** The headers of a request for the provider, which is called `host`. */
export const requestHeaders = (raw: RawHeaders, host: string): readonly string[] => {
  const asksToClose = listOf(raw, "connection").includes("close");
  const takesTrailers = listOf(raw, "te").includes("trailers");
  const isFramed = hasHeader(raw, "transfer-encoding");
  const connection = `${asksToClose ? "close" : "keep-alive"}${takesTrailers ? ", TE" : ""}`;
  return [
    ...forwardHeaders(raw, {
      host,
      connection: hasHeader(raw, "connection") ? connection : undefined,
      te: takesTrailers ? "trailers" : undefined,
      "transfer-encoding": isFramed ? headerValue(raw, "transfer-encoding") : undefined,
      // Trailers can only follow a body in chunks.
      ...(isFramed ? {} : { trailer: undefined }),
    }),
    ...(hasHeader(raw, "connection") || !takesTrailers ? [] : ["Connection", connection]),
  ];
};

/** A request for another protocol needs both sides to agree, so all of its headers are forwarded. */
export const upgradeHeaders = (raw: RawHeaders, host: string): readonly string[] =>
  pairsOf(raw).flatMap(([name, value]) => (name.toLowerCase() === "host" ? [name, host] : [name, value]));

export type AnswerFraming = {
  /** The connection ends with this answer. */
  readonly closes: boolean;
  /** Its body is sent in chunks. */
  readonly isChunked: boolean;
};

/** The headers of an answer for the client. */
export const answerHeaders = (raw: RawHeaders, { closes, isChunked }: AnswerFraming): readonly string[] => {
  const framing = headerValue(raw, "transfer-encoding") || "chunked";
  const hasTransferEncoding = hasHeader(raw, "transfer-encoding");
  return [
    ...forwardHeaders(raw, {
      connection: closes ? "close" : undefined,
      "transfer-encoding": isChunked ? framing : undefined,
      ...(isChunked ? {} : { trailer: undefined }),
    }),
    ...(closes && !hasHeader(raw, "connection") ? ["Connection", "close"] : []),
    ...(isChunked && !hasTransferEncoding ? ["Transfer-Encoding", framing] : []),
  ];
};

// --- what may be reported --------------------------------------------------------------------------------------------

export const betasIn = (raw: RawHeaders): readonly string[] =>
  headerValue(raw, "anthropic-beta")
    .split(",")
    .flatMap((beta) => beta.trim() || []);

/** The headers that are recorded with a body: only those that say how to read it. */
const RECORDED = ["anthropic-beta", "anthropic-version", "openai-beta"] as const;

export const recordedHeaders = (raw: RawHeaders): Readonly<Record<string, string>> =>
  Object.fromEntries(RECORDED.filter((name) => hasHeader(raw, name)).map((name) => [name, headerValue(raw, name)]));

/** The program that sent a request, by its own name and version. */
export const clientIn = (raw: RawHeaders): string =>
  /^[\w.-]{1,40}(?:\/[\w.-]{1,20})?/.exec(headerValue(raw, "user-agent"))?.[0] ?? "";

// --- secrets ---------------------------------------------------------------------------------------------------------

const CREDENTIALS: ReadonlySet<string> = new Set([
  "authorization",
  "proxy-authorization",
  "x-api-key",
  "api-key",
  "x-goog-api-key",
  "cookie",
  "set-cookie",
]);

/** Header names that suggest a credential: gateways have their own names. */
const SECRET_NAME = /auth|key|token|secret|cookie|password|credential/i;

/** Shorter values are ordinary words. */
const SHORTEST_SECRET = 8;

const valuesIn = (name: string, value: string): readonly string[] => {
  if (/cookie/i.test(name)) return [value, ...value.split(";").map((part) => part.trim().replace(/^[^=]*=/, ""))];
  return [value, value.replace(/^\w+\s+/, "")];
};

/** Everything in a request that proves who sent it, to be redacted everywhere. */
export const secretsIn = (raw: RawHeaders, url: string): readonly string[] => {
  const query = [...new URLSearchParams(url.split("?").slice(1).join("?"))];
  const values = [
    ...pairsOf(raw).filter(([name]) => CREDENTIALS.has(name.toLowerCase()) || SECRET_NAME.test(name)),
    ...query.filter(([name]) => SECRET_NAME.test(name) || /^(?:sig|code)$/i.test(name)),
  ].flatMap(([name, value]) => valuesIn(name, value));
  return [...new Set(values)]
    .filter((value) => value.length >= SHORTEST_SECRET)
    .sort((one, other) => other.length - one.length);
};

/** Who pays, as one text: requests of different accounts share no cache. */
export const accountText = (raw: RawHeaders): string =>
  ["authorization", "x-api-key", "api-key", "x-goog-api-key", "openai-organization", "openai-project"]
    .map((name) => headerValue(raw, name))
    .join("\n");
