/** Writes one JSON answer.
 *  Invariant: every error has the provider's form, with its request id in the provider's header.
 *  Elsewhere: messages and streams (serve-answer.ts). */

import type { ServerResponse } from "node:http";
import type { Json } from "@prefork/wire";
import type { Refusal } from "./errors.ts";
import type { Wire } from "./wire.ts";

export type ReplyTerms = {
  readonly status: number;
  readonly requestId?: string;
  /** The header with the request id. */
  readonly idHeader?: string;
};

export const sendJson = (response: ServerResponse, terms: ReplyTerms, value: Json): void => {
  const { status, requestId, idHeader = "request-id" } = terms;
  const text = JSON.stringify(value);
  response.writeHead(status, {
    "content-type": "application/json",
    "content-length": String(Buffer.byteLength(text)),
    ...(requestId === undefined ? {} : { [idHeader]: requestId }),
  });
  response.end(text);
};

export type RefusalTerms = {
  readonly wire: Pick<Wire, "errorBody" | "idHeader">;
  readonly requestId: string;
  readonly extra?: Readonly<Record<string, string>>;
};

export const refuse = (response: ServerResponse, refusal: Refusal, terms: RefusalTerms): void => {
  if (response.destroyed) return;
  const { wire, requestId, extra = {} } = terms;
  for (const [name, value] of Object.entries(extra)) response.setHeader(name, value);
  const { idHeader } = wire;
  sendJson(response, { status: refusal.status, requestId, idHeader }, wire.errorBody(refusal, requestId));
};
