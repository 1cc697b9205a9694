/** Files of recorded requests: one body, or one per line, each alone or with what was recorded about it.
 *  Invariant: a body has exactly the bytes of the file; anything that is not a recording is refused in one line that
 *  names the location.
 *  Elsewhere: what a body says (body.ts), reading the file (the command line). */

import { InputError, type Json, type JsonObject } from "@prefork/wire";
import { endOfValue, isArray, isObject, parseJson, skipSpace } from "@prefork/wire/internal";
import { readUsage, type SentFacts } from "./sent.ts";
import { type BodyValue, isObjectHere, isStringHere, memberAt, membersAt, stringAt } from "./values.ts";

export type RecordedBody = SentFacts & {
  /** The file, and the line number if there are several. */
  readonly name: string;
  readonly body: Buffer;
};

/** The requests of a file. A line may be a body, or an object with a `body` (or a `request`) and optionally `headers`,
 *  `usage` (or a `response` that has one), `startedAt`, `firstEventAt`, `endedAt`, and the `path` (or `url`) it was
 *  sent to. Requests whose `response` has the `status` of an error are skipped. A line that is not JSON is reported to
 *  `unreadable` and skipped; without that callback it is refused. */
export const readRequests = (
  file: Uint8Array,
  name: string,
  unreadable?: (line: string) => void,
): readonly RecordedBody[] =>
  valuesIn(file, name, unreadable)
    .filter(({ value }) => !isRefused(value))
    .map(({ at, value, name: place }) => ({ name: place, ...readSentFacts(value), body: bodyIn(at) }));

/** A request that was refused or got no answer left nothing in the cache. */
const isRefused = (value: Json): boolean => {
  const { status } = isObject(value) ? objectIn(value, "response") : {};
  return typeof status === "number" && (status === 0 || status >= 400);
};

/** Reported facts about requests, in order: usages, or objects as above without a body; null states nothing. */
export const readStated = (file: Uint8Array, name: string): readonly SentFacts[] =>
  valuesIn(file, name)
    .flatMap(({ value, name: place }) =>
      isArray(value)
        ? value.map((item, index) => ({ value: item, name: `${place}[${index}]` }))
        : [{ value, name: place }],
    )
    .map(({ value, name: place }) => {
      if (value === null) return {};
      const usage = readUsage(value);
      const facts = usage ? { usage } : isObject(value) ? readSentFacts(value) : {};
      if (Object.keys(facts).length === 0) throw new InputError(`${place} states no usage and no time`);
      return facts;
    });

type Value = { readonly at: BodyValue; readonly value: Json; readonly name: string };

const MARK = Buffer.from([0xef, 0xbb, 0xbf]);
const LINE_FEED = 0x0a;

/** One value, or one per line. */
const valuesIn = (file: Uint8Array, name: string, unreadable?: (line: string) => void): readonly Value[] => {
  const given = Buffer.from(file.buffer, file.byteOffset, file.byteLength);
  const bytes = given.subarray(0, 3).equals(MARK) ? given.subarray(3) : given;
  if (skipSpace(bytes, 0) === bytes.length) throw new InputError(`${name} is empty`);
  const lines = linesOf(bytes);
  const [first] = lines;
  if (first === undefined || lines.length === 1 || !isJson(first.bytes)) return [readValue(bytes, name)];
  return lines.flatMap(({ bytes: line, number }) => {
    try {
      return [readValue(line, `${name}:${number}`)];
    } catch (error) {
      if (!unreadable || !(error instanceof InputError)) throw error;
      unreadable(error.message);
      return [];
    }
  });
};

/** The lines that are not blank. */
const linesOf = (bytes: Buffer): readonly { readonly bytes: Buffer; readonly number: number }[] => {
  const lines: { bytes: Buffer; number: number }[] = [];
  for (let from = 0, number = 1; from < bytes.length; number += 1) {
    const end = bytes.indexOf(LINE_FEED, from);
    const line = bytes.subarray(from, end === -1 ? bytes.length : end);
    if (skipSpace(line, 0) < line.length) lines.push({ bytes: line, number });
    from = end === -1 ? bytes.length : end + 1;
  }
  return lines;
};

const isJson = (bytes: Buffer): boolean => {
  try {
    JSON.parse(bytes.toString("utf8"));
    return true;
  } catch {
    return false;
  }
};

const readValue = (bytes: Buffer, name: string): Value => {
  const value = parseJson(bytes.toString("utf8"), name);
  const start = skipSpace(bytes, 0);
  return { at: { bytes, start, end: endOfValue(bytes, start), path: "" }, value, name };
};

/** The body itself, or the object that contains it, at most three levels deep. */
const bodyIn = (at: BodyValue): Buffer => {
  let here = at;
  for (let depth = 0; depth < 3; depth += 1) {
    const members = membersAt(here);
    const isBody = ["messages", "input", "contents", "instructions"].some((key) => memberAt(members, key));
    const inner = isBody ? undefined : (memberAt(members, "body") ?? memberAt(members, "request"));
    if (inner === undefined) break;
    if (isStringHere(inner)) return Buffer.from(stringAt(inner) ?? "");
    if (!isObjectHere(inner)) break;
    here = inner;
  }
  return here.bytes.subarray(here.start, here.end);
};

const objectIn = (object: JsonObject, key: string): JsonObject => {
  const value = object[key];
  return isObject(value) ? value : {};
};

const readSentFacts = (value: Json): SentFacts => {
  if (!isObject(value)) return {};
  const [request, response] = [objectIn(value, "request"), objectIn(value, "response")];
  const answer = objectIn(response, "body");
  const usage = [value.usage, response.usage, answer.usage, response.usageMetadata, answer.usageMetadata]
    .map(readUsage)
    .find((found) => found);
  const betas = betasIn(value.betas, isObject(value.headers) ? value.headers : request.headers);
  const startedAt = timeOf(value.startedAt);
  const firstEventAt = timeOf(value.firstEventAt);
  const endedAt = isInterrupted(value) ? Number.POSITIVE_INFINITY : timeOf(value.endedAt);
  const model = modelIn([value.path, value.url, request.path, request.url]);
  return {
    ...(usage ? { usage } : {}),
    ...(betas ? { betas } : {}),
    ...(startedAt === undefined ? {} : { startedAt }),
    ...(firstEventAt === undefined ? {} : { firstEventAt }),
    ...(endedAt === undefined ? {} : { endedAt }),
    ...(model === undefined ? {} : { model }),
  };
};

const isInterrupted = ({ outcome }: JsonObject): boolean => outcome === "aborted" || outcome === "cut";

/** Some providers have the model in the address of a request. */
const modelIn = (addresses: readonly (Json | undefined)[]): string | undefined =>
  addresses.map((address) => (typeof address === "string" ? modelAt(address) : undefined)).find((found) => found);

/** `/v1beta/models/gemini-3.8-flash:streamGenerateContent` names a model. */
export const modelAt = (address: string): string | undefined =>
  /\/models\/([^/:?#]+):(?:stream)?[gG]enerateContent\b/.exec(address)?.[1];

/** Milliseconds, or an ISO 8601 time. */
const timeOf = (value: Json | undefined): number | undefined => {
  const time = typeof value === "string" ? Date.parse(value) : value;
  return typeof time === "number" && Number.isFinite(time) ? time : undefined;
};

/** Headers without betas mean that there were none. */
const betasIn = (listed: Json | undefined, headers: Json | undefined): readonly string[] | undefined => {
  if (isArray(listed)) return listed.filter((beta) => typeof beta === "string");
  if (!isObject(headers)) return undefined;
  const [, header] = Object.entries(headers).find(([name]) => name.toLowerCase() === "anthropic-beta") ?? [];
  const stated = isArray(header) ? header.join(",") : typeof header === "string" ? header : "";
  return stated.split(",").flatMap((beta) => beta.trim() || []);
};
