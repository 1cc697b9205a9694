/** How is one JSON answer written?
 *  Invariant: every error goes out in the provider's shape, with its request id in header and body.
 *  Elsewhere: messages and streams (serve-answer.ts). */

import type { ServerResponse } from "node:http";
import type { Json } from "../request.ts";
import type { Refusal } from "./errors.ts";
import { errorBody } from "./errors.ts";

export const sendJson = (
  response: ServerResponse,
  { status, requestId }: { readonly status: number; readonly requestId?: string },
  value: Json,
): void => {
  const text = JSON.stringify(value);
  response.writeHead(status, {
    "content-type": "application/json",
    "content-length": String(Buffer.byteLength(text)),
    ...(requestId === undefined ? {} : { "request-id": requestId }),
  });
  response.end(text);
};

export type RefusalTerms = { readonly requestId: string; readonly extra?: Readonly<Record<string, string>> };

export const refuse = (response: ServerResponse, refusal: Refusal, { requestId, extra = {} }: RefusalTerms): void => {
  if (response.destroyed) return;
  for (const [name, value] of Object.entries(extra)) response.setHeader(name, value);
  sendJson(response, { status: refusal.status, requestId }, errorBody(refusal, requestId));
};
