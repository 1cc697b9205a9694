/** How does a test in another process control the simulator?
 *  Invariant: only web pages served from loopback may use it; every answer is JSON, every refusal one line.
 *  Elsewhere: the same from inside the process (simulator.ts), who may connect at all (reach.ts). */

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Json, JsonObject } from "@prefork/wire";
import { isObject, ownEntry } from "./body.ts";
import type { SimClock } from "./clock.ts";
import type { Engine } from "./engine.ts";
import { errorType, oneLine } from "./errors.ts";
import { type Fault, type FaultQueue, parseFault } from "./faults.ts";
import { isForeignPage } from "./reach.ts";
import { sendJson } from "./reply.ts";

export type ControlCall = {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly url: URL;
  readonly body: Buffer;
};

export type Controlled = {
  readonly engine: Engine;
  readonly clock: SimClock;
  readonly server: { readonly faults: FaultQueue; reset(): void };
};

export const handleControl = (call: ControlCall, controlled: Controlled): void => {
  const { status, value } = reply(call, controlled);
  sendJson(call.response, { status }, value);
};

type Reply = { readonly status: number; readonly value: JsonObject };

const refusal = (status: number, message: string): Reply => ({
  status,
  value: { type: "error", error: { type: errorType(status), message: oneLine(message) } },
});

const reply = ({ request, url, body }: ControlCall, controlled: Controlled): Reply => {
  if (isForeignPage(request)) return refusal(403, "control: a web page from elsewhere may not steer the simulator");
  const endpoint = `${request.method} ${url.pathname}`;
  const action = ownEntry(actions, endpoint);
  if (action === undefined) return refusal(404, `control: no such endpoint: ${endpoint}`);
  const given = parse(body);
  if (given === undefined) return refusal(400, "control: the body is not valid JSON");
  const result = action(given, controlled, url);
  return typeof result === "string" ? refusal(400, result) : { status: 200, value: result };
};

const parse = (body: Buffer): Json | undefined => {
  if (body.length === 0) return {};
  try {
    return JSON.parse(body.toString("utf8")) as Json;
  } catch {
    return undefined;
  }
};

/** Data to answer with, or one line that says what is wrong. */
type Action = (given: Json, controlled: Controlled, url: URL) => JsonObject | string;

const moveClock: Action = (given, { clock }) => {
  const fields = isObject(given) ? Object.entries(given) : [];
  const [name, value] = fields[0] ?? [];
  if (fields.length !== 1 || (name !== "advanceMs" && name !== "setMs"))
    return 'clock: expected {"advanceMs": n} or {"setMs": n}';
  if (typeof value !== "number" || !Number.isFinite(value) || value < 0)
    return `clock.${name}: expected milliseconds from 0`;
  if (name === "advanceMs") clock.advance(value);
  else clock.set(value);
  return { nowMs: clock.now() };
};

const queueFaults: Action = (given, { server }) => {
  const faults = (Array.isArray(given) ? (given as readonly Json[]) : [given]).map(parseFault);
  const wrong = faults.find((fault) => typeof fault === "string");
  if (typeof wrong === "string") return wrong;
  for (const fault of faults as Fault[]) server.faults.add(fault);
  return { queued: faults.length };
};

const readLedger: Action = (_given, { engine }, url) => {
  const since = Number(url.searchParams.get("since") ?? 0);
  if (!Number.isInteger(since) || since < 0) return "ledger.since: expected a sequence number";
  return { rows: engine.ledger.rows(since) as unknown as Json };
};

const actions: Readonly<Record<string, Action>> = {
  "GET /_sim/clock": (_given, { clock }) => ({ nowMs: clock.now() }),
  "POST /_sim/clock": moveClock,
  "POST /_sim/faults": queueFaults,
  "POST /_sim/reset": (_given, { server }) => {
    server.reset();
    return { reset: true };
  },
  "GET /_sim/ledger": readLedger,
};
