/** One client in its own process, so that its garbage and its memory do not affect the figures of others.
 *  Started with a client's name and a server's URL; takes orders until its parent exits.
 *  Elsewhere: the clients (clients.ts), who sends the orders (sending.ts, streams.ts). */

import { setTimeout as sleep } from "node:timers/promises";
import { cpuMicros, garbageCollector } from "../measure.ts";
import { type ClientName, clientOf, type Opened } from "./clients.ts";

export type ClientOrder = { readonly send: number } | { readonly hold: number };
export type ClientReport =
  | { readonly type: "ready" }
  /** CPU per fork: built, sent, and its answer read to the end. */
  | { readonly type: "sent"; readonly micros: number }
  /** Growth per fork while all are open: of the process, and of V8's heap with its buffers. */
  | { readonly type: "holding"; readonly resident: number; readonly held: number }
  | { readonly type: "failed"; readonly message: string };

const [name, baseUrl] = process.argv.slice(2);
const launch = clientOf(name as ClientName, baseUrl ?? "");
const collect = garbageCollector();
const open: Opened[] = [];

const numbers = (count: number): readonly number[] => Array.from({ length: count }, (_, index) => index);

const send = async (count: number): Promise<ClientReport> => {
  const before = cpuMicros();
  const opened = await Promise.all(launch(numbers(count)));
  await Promise.all(opened.map(({ rest }) => rest()));
  return { type: "sent", micros: (cpuMicros() - before) / count };
};

const memory = async (): Promise<{ readonly resident: number; readonly held: number }> => {
  // Several collections with pauses: what one finalizes is freed only by the next.
  for (let time = 0; time < 3; time += 1) {
    await sleep(150);
    await collect();
  }
  const { rss, heapUsed, external } = process.memoryUsage();
  return { resident: rss, held: heapUsed + external };
};

const hold = async (count: number): Promise<ClientReport> => {
  const before = await memory();
  open.push(...(await Promise.all(launch(numbers(count)))));
  const after = await memory();
  return {
    type: "holding",
    resident: (after.resident - before.resident) / count,
    held: (after.held - before.held) / count,
  };
};

const tell = (report: ClientReport): void => void process.send?.(report);

process.on("message", (order: ClientOrder) => {
  const done = "send" in order ? send(order.send) : hold(order.hold);
  done.then(tell, (error: Error) => tell({ type: "failed", message: error.message }));
});
process.on("disconnect", () => process.exit());
tell({ type: "ready" });
