/** The providers and the clients of this benchmark, as child processes.
 *  Elsewhere: what they do (provider-process.ts, simulator-process.ts, client-process.ts), starting and ending them
 *  (../children.ts). */

import { setTimeout as sleep } from "node:timers/promises";
import { type Child, startChild } from "../children.ts";
import type { ClientOrder, ClientReport } from "./client-process.ts";
import type { ClientName } from "./clients/client.ts";
import type { ProviderOrder, ProviderReport } from "./provider-process.ts";

export type FamilySeen = Extract<ProviderReport, { readonly type: "family" }>;

export type Provider = AsyncDisposable & {
  readonly url: string;
  readonly set: (order: Exclude<ProviderOrder, { readonly tell: true }>) => Promise<void>;
  /** What it saw of the latest family. */
  readonly family: () => Promise<FamilySeen>;
};

/** `canned` does as little as a provider can; `simulator` does what a real one does. */
export const startProvider = async (kind: "canned" | "simulator"): Promise<Provider> => {
  const script = kind === "canned" ? "./provider-process.ts" : "./simulator-process.ts";
  const child = await startChild<ProviderOrder, ProviderReport>(new URL(script, import.meta.url));
  if (child.first.type !== "listening") throw new Error("the provider did not start");
  return {
    url: child.first.url,
    set: async (order) => void (await child.ask(order)),
    family: async () => {
      const report = await child.ask({ tell: true });
      if (report.type !== "family") throw new Error("the provider did not tell what it saw");
      if (report.refused[0] !== undefined) throw new Error(`the provider refused a request: ${report.refused[0]}`);
      return report;
    },
    [Symbol.asyncDispose]: () => child[Symbol.asyncDispose](),
  };
};

const POLL_MS = 100;
const PATIENCE_MS = 400_000;

/** Waits until this many forks are open, or fails with how many were. */
export const untilHeld = async (provider: Provider, forks: number): Promise<void> => {
  const until = performance.now() + PATIENCE_MS;
  for (;;) {
    const { held, forks: seen } = await provider.family();
    if (held === forks && seen === forks) return;
    if (performance.now() > until) throw new Error(`${held} of ${forks} forks were open after ${PATIENCE_MS} ms`);
    await sleep(POLL_MS);
  }
};

export type ClientChild = Child<ClientOrder, ClientReport>;

export type ClientStart = { readonly tokens: number; readonly folder: string };

export const startClient = async (
  name: ClientName,
  { url }: Provider,
  { tokens, folder }: ClientStart,
): Promise<ClientChild> => {
  const script = new URL("./client-process.ts", import.meta.url);
  const child = await startChild<ClientOrder, ClientReport>(script, [name, url, String(tokens), folder]);
  if (child.first.type === "ready") return child;
  await child[Symbol.asyncDispose]();
  throw new Error(`${name} did not start: ${child.first.type === "failed" ? child.first.message : child.first.type}`);
};

/** The report of the kind that the order asks for; anything else is a failed benchmark. */
export const ordered = async <TType extends ClientReport["type"]>(
  client: ClientChild,
  order: ClientOrder,
  type: TType,
): Promise<Extract<ClientReport, { readonly type: TType }>> => {
  const report = await client.ask(order);
  if (report.type === type) return report as Extract<ClientReport, { readonly type: TType }>;
  throw new Error(report.type === "failed" ? `a client failed: ${report.message}` : `unexpected: ${report.type}`);
};
