/** The server's side of the analysis thread: what is handed over, how much may wait, and what is known if the thread
 *  ends.
 *  Invariant: handing over never blocks; a thread that ends, for whatever reason, is reported, and forwarding continues
 *  without it.
 *  Elsewhere: the thread itself (thread.ts). */

import { Worker } from "node:worker_threads";
import type { ModelFacts } from "@prefork/wire";
import type { TrailOptions } from "../compare/index.ts";
import type { FromAnalysis, TapMessage, ThreadReport, ToAnalysis } from "./messages.ts";
import type { ProxyEvent } from "./report.ts";

export type ThreadSettings = Omit<TrailOptions, "models"> & {
  readonly models: readonly (readonly [string, ModelFacts])[];
  readonly bodyLimit: number;
  readonly recordTo: string | undefined;
  /** Somebody listens to events. */
  readonly hasListener: boolean;
};

export type AnalysisThread = {
  readonly post: (message: TapMessage) => void;
  readonly hasRoom: (bytes: number) => boolean;
  /** Adjusts the number of bytes that are waiting to be handed over. */
  readonly hold: (bytes: number) => void;
  /** `finish`: after everything that ended has been read. Undefined if the thread has ended. */
  readonly report: (when: "report" | "finish") => Promise<ThreadReport | undefined>;
  /** "runs", or why it does not. */
  readonly state: () => string;
  readonly close: () => Promise<void>;
};

/** Nobody waits for the analysis, so it may collect garbage more often and use less memory. */
const SMALL = { maxYoungGenerationSizeMb: 8 };

/** Bytes that may wait for analysis. */
const MOST_WAITING = 64 * 1024 * 1024;

/** Handing over wakes the other thread, which costs more than most messages. So messages are sent in batches, after
 *  their bytes have been forwarded. */
const GATHERED_MS = 10;

/** Sources run unbuilt; built files run as JavaScript. */
const script = new URL(`./thread${import.meta.url.endsWith(".ts") ? ".ts" : ".js"}`, import.meta.url);

export const startThread = (
  settings: Omit<ThreadSettings, "hasListener">,
  onEvent: ((event: ProxyEvent) => void) | undefined,
): AnalysisThread => {
  const workerData: ThreadSettings = { ...settings, hasListener: onEvent !== undefined };
  const worker = new Worker(script, { workerData, stdin: false, resourceLimits: SMALL });
  const asked = new Map<number, (report: ThreadReport | undefined) => void>();
  let state = "runs";
  let waiting = 0;
  let questions = 0;

  const gone = (why: string): void => {
    if (state !== "runs") return;
    state = why;
    for (const answer of asked.values()) answer(undefined);
    asked.clear();
  };
  worker.on("message", (message: FromAnalysis) => {
    if (message.type === "released") waiting -= message.bytes;
    else if (message.type === "event") onEvent?.(message.event);
    else {
      asked.get(message.id)?.(message.report);
      asked.delete(message.id);
    }
  });
  worker.on("error", (error: NodeJS.ErrnoException) => gone(`ended: ${error.code ?? error.name}`));
  worker.on("exit", (code) => gone(`ended: ${code}`));
  // The analysis alone does not keep a program alive.
  worker.unref();

  const outbox: { messages: ToAnalysis[]; buffers: ArrayBuffer[] } = { messages: [], buffers: [] };
  let timer: NodeJS.Timeout | undefined;
  const flush = (): void => {
    clearTimeout(timer);
    timer = undefined;
    if (state === "runs") worker.postMessage(outbox.messages, outbox.buffers);
    outbox.messages = [];
    outbox.buffers = [];
  };
  const send = (message: ToAnalysis, bytes?: Uint8Array): void => {
    waiting += bytes?.length ?? 0;
    outbox.messages.push(message);
    if (bytes) outbox.buffers.push(bytes.buffer as ArrayBuffer);
    timer ??= setTimeout(flush, GATHERED_MS).unref();
  };
  return {
    post: (message) => {
      if (state !== "runs") return;
      const bytes = message.type === "asked" ? message.body : message.bytes;
      send(message, typeof bytes === "string" ? undefined : bytes);
    },
    hold: (bytes) => {
      waiting += bytes;
    },
    hasRoom: (bytes) => state === "runs" && waiting + bytes <= MOST_WAITING,
    report: (when) => {
      if (state !== "runs") return Promise.resolve(undefined);
      questions += 1;
      const id = questions;
      worker.ref();
      return new Promise((resolve) => {
        asked.set(id, (report) => {
          worker.unref();
          resolve(report);
        });
        send({ type: when, id });
        flush();
      });
    },
    state: () => state,
    close: async () => {
      gone("closed");
      await worker.terminate();
    },
  };
};
