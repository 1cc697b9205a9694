/** What does an endpoint send that is not an answer, or an answer with something wrong about it?
 *  Invariant: the content of an answer stays as the script gave it; only its bill, its end or its encoding is wrong.
 *  Elsewhere: which request gets one (faults.ts), sending correct answers (serve-answer.ts). */

import type { ServerResponse } from "node:http";
import type { Json, JsonObject } from "@prefork/wire";
import { isObject } from "./body.ts";
import type { AnswerEncoding, NoAnswerForm, UsageForm } from "./faults.ts";
import type { SimEvent } from "./wire.ts";

const zlib = () => process.getBuiltinModule("node:zlib");

// --- no answer -------------------------------------------------------------------------------------------------------

const NO_ANSWERS: Readonly<Record<NoAnswerForm, readonly [string, string]>> = {
  html: ["text/html; charset=utf-8", "<!DOCTYPE html>\n<html><head><title>Sign in\u001b[31m</title></head></html>\n"],
  json: ["application/json", '{"code":0,"msg":"welcome to the gateway"}'],
  text: ["text/plain", "upstream is being updated\n"],
};

export const sendNoAnswer = (
  response: ServerResponse,
  form: NoAnswerForm,
  headers: Readonly<Record<string, string>>,
): void => {
  const [type, text] = NO_ANSWERS[form];
  response.writeHead(200, { "content-type": type, ...headers });
  response.end(text);
};

// --- encodings -------------------------------------------------------------------------------------------------------

/** A body in an encoding, and the name that it is labelled with. */
export const encodeBody = (
  text: string,
  encoding: AnswerEncoding,
): { readonly name: string; readonly body: Buffer } => {
  const bytes = Buffer.from(text);
  switch (encoding) {
    case "gzip":
      return { name: encoding, body: zlib().gzipSync(bytes) };
    case "deflate":
      return { name: encoding, body: zlib().deflateSync(bytes) };
    case "br":
      return { name: encoding, body: zlib().brotliCompressSync(bytes) };
    case "zstd":
      return { name: encoding, body: zlib().zstdCompressSync(bytes) };
    case "damaged":
      return { name: "gzip", body: zlib().deflateSync(bytes) };
    case "unknown":
      return { name: "x-own", body: zlib().gzipSync(bytes) };
  }
};

// --- bills -----------------------------------------------------------------------------------------------------------

const BILLS: ReadonlySet<string> = new Set(["usage", "usageMetadata"]);
const OUTPUT = /^(?:output|completion|candidates|thoughts|reasoning)/;

/** An answer's JSON with its bills in another form. */
export const withUsageForm = <Value extends Json>(value: Value, form: UsageForm): Value => {
  if (Array.isArray(value)) return value.map((item: Json) => withUsageForm(item, form)) as Json as Value;
  if (!isObject(value)) return value;
  const members = Object.entries(value as JsonObject).flatMap(([key, member]): readonly (readonly [string, Json])[] => {
    if (!BILLS.has(key) || !isObject(member)) return [[key, withUsageForm(member, form)]];
    if (form === "missing") return [];
    return [[key, form === "null" ? null : figuresIn(member, form)]];
  });
  return Object.fromEntries(members) as Json as Value;
};

const figuresIn = (bill: JsonObject, form: UsageForm): JsonObject =>
  Object.fromEntries(
    Object.entries(bill).flatMap(([key, figure]): readonly (readonly [string, Json])[] => {
      const isOutput = OUTPUT.test(key);
      if ((form === "prompt-only" && isOutput) || (form === "output-only" && !isOutput)) return [];
      if (isObject(figure)) return [[key, figuresIn(figure, form)]];
      if (typeof figure !== "number") return [[key, figure]];
      return [[key, figureAs(figure, form)]];
    }),
  );

const figureAs = (figure: number, form: UsageForm): Json => {
  if (form === "text") return String(figure);
  if (form === "negative") return -1 - figure;
  return form === "zero" ? 0 : figure;
};

export function* withUsageForms(events: Iterable<SimEvent>, form: UsageForm): Generator<SimEvent> {
  for (const event of events)
    yield { ...event, data: typeof event.data === "string" ? event.data : withUsageForm(event.data, form) };
}

// --- ends ------------------------------------------------------------------------------------------------------------

export function* withoutLast(events: Iterable<SimEvent>): Generator<SimEvent> {
  let before: SimEvent | undefined;
  for (const event of events) {
    if (before) yield before;
    before = event;
  }
}

/** What an endless answer repeats. `growing`: an event that adds to the content. */
export const endlessPiece = (of: "content" | "line" | "comments", growing: string): string => {
  if (of === "content") return growing.repeat(Math.ceil(65_536 / growing.length));
  return of === "line" ? "x".repeat(65_536) : ": still here\n".repeat(4_096);
};
