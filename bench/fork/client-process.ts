/** One client in its own process, so that its garbage and its memory do not affect the figures of others.
 *  Started with a client's name, the provider's URL, the parent's length, and a folder for saved files; takes orders
 *  until its owner exits.
 *  Elsewhere: the clients (clients/), who sends the orders (families.ts, open-forks.ts). */

import { setTimeout as sleep } from "node:timers/promises";
import { cpuMicros, garbageCollector } from "../measure.ts";
import type { ClientName, ForkClient, ReadyFamily } from "./clients/client.ts";

export type ClientOrder =
  | { readonly family: number }
  /** Starts a family whose answers are held open; the next order measures the process. */
  | { readonly open: number }
  | { readonly weigh: true };

export type Weight = { readonly resident: number; readonly held: number };

export type ClientReport =
  | { readonly type: "ready" }
  /** CPU from the request that starts the family to its end. */
  | { readonly type: "had"; readonly micros: number }
  /** Before the family was started. */
  | ({ readonly type: "opening" } & Weight)
  | ({ readonly type: "weighed" } & Weight)
  | { readonly type: "failed"; readonly message: string };

const [name, baseUrl = "", tokens, folder = ""] = process.argv.slice(2);
const collect = garbageCollector();
const state: { family?: ReadyFamily; failed?: Error } = {};

/** Loads only what the client needs: anything else would count as its memory. */
const clientOf = async (wanted: ClientName): Promise<ForkClient> => {
  switch (wanted) {
    case "ours":
      return (await import("./clients/ours.ts")).oursOf({ baseUrl, tokens: Number(tokens), folder });
    case "our wire alone":
      return (await import("./clients/wire.ts")).wireOf(baseUrl, folder);
    case "raw two-chunk POST":
      return (await import("./clients/raw.ts")).rawOf(baseUrl, folder);
    case "copy and JSON.stringify":
      return (await import("./clients/naive.ts")).naiveOf(baseUrl, folder);
  }
};

const have = async (client: ForkClient, forks: number): Promise<ClientReport> => {
  await using family = await client(forks);
  await collect();
  const before = cpuMicros();
  await family.run();
  return { type: "had", micros: cpuMicros() - before };
};

const weigh = async (): Promise<Weight> => {
  // Several collections with pauses: what one finalizes is freed only by the next.
  for (let time = 0; time < 3; time += 1) {
    await sleep(150);
    await collect();
  }
  const { rss, heapUsed, external } = process.memoryUsage();
  return { resident: rss, held: heapUsed + external };
};

const open = async (client: ForkClient, forks: number): Promise<ClientReport> => {
  state.family = await client(forks);
  const before = await weigh();
  state.family.run().catch((error: Error) => {
    state.failed = error;
  });
  return { type: "opening", ...before };
};

const weighed = async (): Promise<ClientReport> => {
  const after = await weigh();
  if (state.failed) throw state.failed;
  return { type: "weighed", ...after };
};

const tell = (report: ClientReport): void => void process.send?.(report);
const fail = (error: Error): void => tell({ type: "failed", message: error.message });

process.on("disconnect", () => process.exit());
clientOf(name as ClientName).then((client) => {
  process.on("message", (order: ClientOrder) => {
    const done =
      "family" in order ? have(client, order.family) : "open" in order ? open(client, order.open) : weighed();
    done.then(tell, fail);
  });
  tell({ type: "ready" });
}, fail);
