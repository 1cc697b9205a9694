/** Runs the analysis in its own thread, so that it never delays what is forwarded.
 *  Invariant: messages are handled in the order in which they arrive; a failure to record is counted, and recording
 *  stops.
 *  Elsewhere: the server's side (server-thread.ts), the work (analysis.ts). */

import { parentPort, workerData } from "node:worker_threads";
import type { ModelFacts } from "@prefork/wire";
import { Analysis, type Exchange } from "./analysis.ts";
import type { FromAnalysis, ToAnalysis } from "./messages.ts";
import { openRecorder, type Recorder } from "./record.ts";
import type { ThreadSettings } from "./server-thread.ts";

const port = parentPort;
if (port === null) throw new Error("this runs in a thread");
const tell = (message: FromAnalysis): void => port.postMessage(message);

const { recordTo, models, hasListener, ...settings } = workerData as ThreadSettings;

class Recording {
  readonly #recorder: Recorder;
  requests = 0;
  isBroken = false;

  constructor(file: string) {
    this.#recorder = openRecorder(file);
  }

  write(exchange: Exchange): void {
    if (this.isBroken) return;
    try {
      this.#recorder.write(exchange);
      this.requests += 1;
    } catch (error) {
      this.isBroken = true;
      analysis.failed(`recording ended: ${(error as NodeJS.ErrnoException).code ?? "it cannot be written"}`);
    }
  }
}

/** Small amounts are reported together, to disturb the server less often. */
const RELEASE_BYTES = 256 * 1024;
const released = { bytes: 0 };

const recording = recordTo === undefined ? undefined : new Recording(recordTo);
const analysis = new Analysis({
  ...settings,
  models: new Map<string, ModelFacts>(models),
  onEvent: (event) => {
    if (hasListener) tell({ type: "event", event });
  },
  onReleased: (bytes) => {
    released.bytes += bytes;
    if (released.bytes < RELEASE_BYTES) return;
    tell({ type: "released", bytes: released.bytes });
    released.bytes = 0;
  },
  ...(recording ? { record: (exchange: Exchange) => recording.write(exchange) } : {}),
});

const report = (id: number): void => {
  const record =
    recording && recordTo !== undefined ? { record: { file: recordTo, requests: recording.requests } } : {};
  tell({ type: "report", id, report: { ...analysis.report(), ...record, heapUsed: process.memoryUsage().heapUsed } });
};

const take = (message: ToAnalysis): void => {
  if (message.type === "report") report(message.id);
  else if (message.type === "finish") analysis.whenRead(() => report(message.id));
  else analysis.take(message);
};

port.on("message", (messages: readonly ToAnalysis[]) => messages.forEach(take));
