/** The server's end of the analysis: what is handed over, how much of it may wait, and what is known when it is gone.
 *  Invariant: handing over never waits; a thread that ends, for whatever reason, is reported and missed by nobody who
 *  only passes requests.
 *  Elsewhere: the other end (thread.ts). */

import { Worker } from "node:worker_threads";
import type { ModelFacts } from "../models.ts";
import type { TrailOptions } from "../xray/index.ts";
import type { AnalysisReport, FromAnalysis, TapMessage, ToAnalysis } from "./messages.ts";
import type { ProxyEvent } from "./report.ts";

export type ThreadSettings = Omit<TrailOptions, "models"> & {
  readonly models: readonly (readonly [string, ModelFacts])[];
  readonly bodyLimit: number;
  readonly recordTo: string | undefined;
};

export type AnalysisThread = {
  readonly post: (message: TapMessage) => void;
  readonly hasRoom: (bytes: number) => boolean;
  /** `finish`: when everything that ended has been read. Undefined when the thread is gone. */
  readonly report: (when: "report" | "finish") => Promise<AnalysisReport | undefined>;
  /** "runs", or why it does not. */
  readonly state: () => string;
  readonly close: () => Promise<void>;
};

/** Bytes that may wait to be looked at. */
const MOST_WAITING = 128 * 1024 * 1024;

/** Sources run as they are, built files as what they were built to. */
const script = new URL(`./thread${import.meta.url.endsWith(".ts") ? ".ts" : ".js"}`, import.meta.url);

export const startThread = (settings: ThreadSettings, told: (event: ProxyEvent) => void): AnalysisThread => {
  const worker = new Worker(script, { workerData: settings, stdin: false });
  const asked = new Map<number, (report: AnalysisReport | undefined) => void>();
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
    else if (message.type === "event") told(message.event);
    else {
      asked.get(message.id)?.(message.report);
      asked.delete(message.id);
    }
  });
  worker.on("error", (error: NodeJS.ErrnoException) => gone(`ended: ${error.code ?? error.name}`));
  worker.on("exit", (code) => gone(`ended: ${code}`));
  // A program is not kept alive by what only looks on.
  worker.unref();

  const send = (message: ToAnalysis, bytes?: Uint8Array): void => {
    waiting += bytes?.length ?? 0;
    worker.postMessage(message, bytes ? [bytes.buffer as ArrayBuffer] : []);
  };
  return {
    post: (message) => {
      if (state !== "runs") return;
      if (message.type === "bytes") send(message, message.bytes);
      else if (message.type === "asked" && typeof message.body !== "string") send(message, message.body);
      else send(message);
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
      });
    },
    state: () => state,
    close: async () => {
      gone("closed");
      await worker.terminate();
    },
  };
};
