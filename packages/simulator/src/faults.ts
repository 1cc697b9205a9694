/** Which request should fail, and how?
 *  Invariant: a fault is used up by the requests it hits; a request gets at most one fault; the oldest matching fault
 *  wins.
 *  Elsewhere: carrying them out (serve-answer.ts). */

import type { Json, JsonObject } from "@prefork/wire";
import { isObject, ownEntry } from "./body.ts";

export type FaultKind =
  /** An error status instead of an answer; nothing is read, written or billed. */
  | {
      readonly kind: "status";
      readonly status: number;
      readonly retryAfterMs?: number;
      readonly retryAfterForm?: RetryAfterForm;
      /** The error message. Default: the provider's message for this status. */
      readonly message?: string;
    }
  /** Status 200 and something other than an answer; nothing is read, written or billed. */
  | { readonly kind: "not-an-answer"; readonly form: NoAnswerForm }
  /** The answer in an encoding that was not requested. `damaged`: labelled as gzip, but is not gzip. */
  | { readonly kind: "encoded"; readonly encoding: AnswerEncoding }
  /** Everything except the last event. `reset`: the connection is also lost there. */
  | { readonly kind: "no-last-event"; readonly end?: "closed" | "reset" } // default: closed
  /** The whole answer, with a bill in an undocumented form. The ledger has the correct one. */
  | { readonly kind: "usage"; readonly form: UsageForm }
  /** An answer that never ends: endless content, one endless line, or only comments. */
  | { readonly kind: "endless"; readonly of: "content" | "line" | "comments" }
  /** The connection is reset before any byte. */
  | { readonly kind: "reset" }
  | { readonly kind: "reset-mid-stream"; readonly afterEvents: number }
  /** An `error` event inside the stream. */
  | { readonly kind: "error-mid-stream"; readonly moment: "before-content" | "after-content" }
  /** JSON that stops in the middle, then a proper end of the response. */
  | { readonly kind: "truncated-json" }
  | { readonly kind: "slow-drip"; readonly delayMs: number }
  /** Ids that the conversation has used before. */
  | { readonly kind: "wrong-ids" }
  /** Only the delay of `latencyMs`. */
  | { readonly kind: "latency" }
  /** None of the next `times` requests is answered before all of them have looked into the cache. */
  | { readonly kind: "together" };

export type RetryAfterForm = "both" | "seconds" | "milliseconds" | "date";

const NO_ANSWER_FORMS = ["html", "json", "text"] as const;
export type NoAnswerForm = (typeof NO_ANSWER_FORMS)[number];

const ENCODINGS = ["gzip", "deflate", "br", "zstd", "damaged", "unknown"] as const;
export type AnswerEncoding = (typeof ENCODINGS)[number];

const USAGE_FORMS = ["missing", "null", "text", "negative", "zero", "prompt-only", "output-only"] as const;
export type UsageForm = (typeof USAGE_FORMS)[number];

export type Fault = FaultKind & {
  readonly model?: string; // default: any
  readonly nth?: number; // default: 1, the next matching request
  readonly times?: number; // default: 1
  /** Real time before the first event. */
  readonly latencyMs?: number;
};

type Queued = { readonly fault: Fault; skip: number; left: number };

export class FaultQueue {
  readonly #queue: Queued[] = [];

  add(fault: Fault): void {
    this.#queue.push({ fault, skip: (fault.nth ?? 1) - 1, left: fault.times ?? 1 });
  }

  /** The fault that hits this request; `kinds` are the kinds that can happen to it. */
  take(model: string, kinds?: readonly Fault["kind"][]): Fault | undefined {
    let taken: Fault | undefined;
    for (const queued of this.#queue) {
      if (queued.fault.model !== undefined && queued.fault.model !== model) continue;
      if (kinds !== undefined && !kinds.includes(queued.fault.kind)) continue;
      if (queued.skip > 0) queued.skip -= 1;
      else if (taken === undefined) {
        queued.left -= 1;
        taken = queued.fault;
      }
    }
    for (let index = this.#queue.length - 1; index >= 0; index -= 1)
      if (this.#queue[index]?.left === 0) this.#queue.splice(index, 1);
    return taken;
  }

  clear(): void {
    this.#queue.length = 0;
  }
}

type FieldRule = "count" | "milliseconds" | "wait" | "status" | "text" | readonly string[];

const common: Readonly<Record<string, FieldRule>> = {
  model: "text",
  nth: "count",
  times: "count",
  latencyMs: "milliseconds",
};

/** Fields of each kind; those in `required` must be present. */
const kinds: Readonly<
  Record<string, { readonly required: readonly string[]; readonly fields: Record<string, FieldRule> }>
> = {
  status: {
    required: ["status"],
    fields: {
      status: "status",
      retryAfterMs: "wait",
      retryAfterForm: ["both", "seconds", "milliseconds", "date"],
      message: "text",
    },
  },
  reset: { required: [], fields: {} },
  "reset-mid-stream": { required: ["afterEvents"], fields: { afterEvents: "count" } },
  "error-mid-stream": { required: ["moment"], fields: { moment: ["before-content", "after-content"] } },
  "truncated-json": { required: [], fields: {} },
  "slow-drip": { required: ["delayMs"], fields: { delayMs: "milliseconds" } },
  "wrong-ids": { required: [], fields: {} },
  latency: { required: ["latencyMs"], fields: {} },
  together: { required: ["times"], fields: {} },
  "not-an-answer": { required: ["form"], fields: { form: NO_ANSWER_FORMS } },
  encoded: { required: ["encoding"], fields: { encoding: ENCODINGS } },
  "no-last-event": { required: [], fields: { end: ["closed", "reset"] } },
  usage: { required: ["form"], fields: { form: USAGE_FORMS } },
  endless: { required: ["of"], fields: { of: ["content", "line", "comments"] } },
};

/** A fault from JSON, or one line that says what is wrong with it. */
export const parseFault = (value: Json | undefined): Fault | string => {
  if (!isObject(value)) return "fault: expected an object";
  const kind = value.kind;
  const known = typeof kind === "string" ? ownEntry(kinds, kind) : undefined;
  if (known === undefined) return `fault.kind: expected one of ${Object.keys(kinds).join(", ")}`;
  const rules: Record<string, FieldRule> = { ...common, ...known.fields };
  for (const name of known.required)
    if (value[name] === undefined) return `fault.${name}: required for ${String(kind)}`;
  for (const [name, given] of Object.entries(value)) {
    if (name === "kind") continue;
    const rule = ownEntry(rules, name);
    if (rule === undefined) return `fault.${name}: unknown field for ${String(kind)}`;
    const wrong = wrongValue(given, rule);
    if (wrong !== undefined) return `fault.${name}: expected ${wrong}`;
  }
  return value as JsonObject as unknown as Fault;
};

const wrongValue = (given: Json, rule: FieldRule): string | undefined => {
  if (rule === "text") return typeof given === "string" ? undefined : "text";
  if (rule === "count") return Number.isInteger(given) && (given as number) >= 1 ? undefined : "a whole number from 1";
  if (rule === "milliseconds")
    return typeof given === "number" && given >= 0 && given <= 3_600_000 ? undefined : "milliseconds up to an hour";
  if (rule === "wait")
    return typeof given === "number" && given >= 0 && given <= 2_678_400_000 ? undefined : "milliseconds up to a month";
  if (rule === "status")
    return Number.isInteger(given) && (given as number) >= 400 && (given as number) <= 599
      ? undefined
      : "a status from 400 to 599";
  return typeof given === "string" && rule.includes(given) ? undefined : `one of ${rule.join(", ")}`;
};

/** `nowMs`: real time, for dates. */
export const retryHeaders = (
  fault: Fault & { readonly kind: "status" },
  nowMs: number,
): Readonly<Record<string, string>> => {
  if (fault.retryAfterMs === undefined) return {};
  const form = fault.retryAfterForm ?? "both";
  if (form === "date") return { "retry-after": new Date(nowMs + fault.retryAfterMs).toUTCString() };
  return {
    ...(form === "milliseconds" ? {} : { "retry-after": String(Math.ceil(fault.retryAfterMs / 1_000)) }),
    ...(form === "seconds" ? {} : { "retry-after-ms": String(fault.retryAfterMs) }),
  };
};

// --- requests that arrive together -----------------------------------------------------------------------------------

type BarrierGroup = { missing: number; readonly all: Promise<void>; readonly open: () => void };

export class RequestBarrier {
  readonly #groups = new Map<Fault, BarrierGroup>();

  /** Resolves when all members have joined or left. */
  join(fault: Fault): Promise<void> {
    return this.#count(fault).all;
  }

  leave(fault: Fault): void {
    this.#count(fault);
  }

  release(): void {
    for (const group of this.#groups.values()) group.open();
    this.#groups.clear();
  }

  #count(fault: Fault): BarrierGroup {
    const group = this.#groups.get(fault) ?? this.#start(fault);
    group.missing -= 1;
    if (group.missing === 0) {
      this.#groups.delete(fault);
      group.open();
    }
    return group;
  }

  #start(fault: Fault): BarrierGroup {
    const { promise: all, resolve: open } = Promise.withResolvers<void>();
    const group = { missing: fault.times ?? 1, all, open };
    this.#groups.set(fault, group);
    return group;
  }
}
