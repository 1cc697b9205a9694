/** A gateway in its own process, so that its CPU and memory can be measured.
 *  Started with its name and the provider's URL; `ours` is the proxy, `bare` the smallest possible one.
 *  Elsewhere: who sends through it (client.ts). */

import { Agent, createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { startProxy } from "@prefork/xray/proxy";
import { cpuMicros, garbageCollector } from "../measure.ts";

export type GatewayOrder = { readonly tell: "cost" | "memory" };
export type GatewayReport =
  | { readonly type: "listening"; readonly url: string }
  | {
      readonly type: "state";
      /** CPU of all threads, and of the thread that forwards requests. */
      readonly micros: number;
      readonly passingMicros: number;
      readonly resident: number;
      readonly heap: number;
      readonly analysisHeap: number;
      /** Requests that were forwarded but are not in the report's sums. */
      readonly missed: number;
    };

const [name, upstream = ""] = process.argv.slice(2);
const collect = garbageCollector();

type Gateway = { readonly url: string; readonly settled: () => Promise<Pick<Seen, "analysisHeap" | "missed">> };
type Seen = Extract<GatewayReport, { readonly type: "state" }>;

/** Two streams piped into each other: it inspects no header, records nothing, and an error ends the process. */
const startBare = async (): Promise<Gateway> => {
  const { hostname, port } = new URL(upstream);
  const agent = new Agent({ keepAlive: true });
  const server = createServer((incoming, response) => {
    const { method, url, headers } = incoming;
    const outgoing = request({ hostname, port, method, path: url, headers, agent }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    incoming.pipe(outgoing);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { url, settled: async () => ({ analysisHeap: 0, missed: 0 }) };
};

const startOurs = async (): Promise<Gateway> => {
  const proxy = await startProxy({ upstream });
  return {
    url: proxy.url,
    settled: async () => {
      for (;;) {
        const { open, heap, passed, all } = await proxy.report();
        if (open === 0) return { analysisHeap: heap.analysis, missed: passed.requests - all.requests };
      }
    },
  };
};

const gateway = await (name === "ours" ? startOurs() : startBare());
const tell = (report: GatewayReport): void => void process.send?.(report);

const state = async ({ tell: what }: GatewayOrder): Promise<GatewayReport> => {
  const seen = await gateway.settled();
  if (what === "memory") for (let time = 0; time < 3; time += 1) await collect();
  const { rss, heapUsed, external } = process.memoryUsage();
  const { user, system } = process.threadCpuUsage();
  return {
    type: "state",
    micros: cpuMicros(),
    passingMicros: user + system,
    resident: rss,
    heap: heapUsed + external,
    ...seen,
  };
};

process.on("message", (order: GatewayOrder) => void state(order).then(tell));
process.on("disconnect", () => process.exit());
tell({ type: "listening", url: gateway.url });
