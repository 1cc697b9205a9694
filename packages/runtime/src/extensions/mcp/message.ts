/** Which messages do the two sides of a connection exchange? JSON-RPC 2.0, one message at a time. Pure.
 *  Invariant: text from a server is untrusted. What is not a valid message is reported as none and ignored.
 *  Elsewhere: matching answers to requests (connection.ts), transport (stdio.ts, http.ts). */

import type { Json, JsonObject } from "@prefork/wire";

export type Message =
  | { readonly kind: "result"; readonly id: number; readonly result: JsonObject }
  | { readonly kind: "error"; readonly id: number; readonly code: number; readonly message: string }
  | { readonly kind: "request"; readonly id: string | number; readonly method: string }
  | { readonly kind: "notification"; readonly method: string }
  | { readonly kind: "none" };

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const NONE: Message = { kind: "none" };

export const readMessage = (text: string): Message => {
  try {
    return messageOf(JSON.parse(text));
  } catch {
    return NONE; // servers print all sorts of lines
  }
};

const messageOf = (value: Json): Message => {
  if (!isObject(value) || value.jsonrpc !== "2.0") return NONE;
  const { id, method, result, error } = value;
  if (typeof method === "string")
    return typeof id === "string" || typeof id === "number"
      ? { kind: "request", id, method }
      : { kind: "notification", method };
  if (typeof id !== "number") return NONE; // our ids are numbers
  if (isObject(result)) return { kind: "result", id, result };
  if (!isObject(error)) return NONE;
  const { code, message } = error;
  return {
    kind: "error",
    id,
    code: typeof code === "number" ? code : 0,
    message: typeof message === "string" ? message : "no reason was given",
  };
};

export const METHOD_NOT_FOUND = -32601;
export const INVALID_PARAMS = -32602;
/** Our own code for an answer that was skipped. Servers use negative numbers. */
export const TOO_LONG = 1;

export const request = (id: number, method: string, params: JsonObject): JsonObject => ({
  jsonrpc: "2.0",
  id,
  method,
  params,
});

export const notification = (method: string, params?: JsonObject): JsonObject => ({
  jsonrpc: "2.0",
  method,
  ...(params === undefined ? {} : { params }),
});

/** A server may ping us. Nothing else was offered, so it may ask for nothing else. */
export const answerRequest = (id: string | number, method: string): JsonObject =>
  method === "ping"
    ? { jsonrpc: "2.0", id, result: {} }
    : { jsonrpc: "2.0", id, error: { code: METHOD_NOT_FOUND, message: `${method} is not offered by this client` } };
