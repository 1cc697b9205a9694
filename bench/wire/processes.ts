/** The servers and the clients of this benchmark, as child processes.
 *  Elsewhere: what they do (server-process.ts, simulator-process.ts, client-process.ts), starting and ending them (../children.ts). */

import { type Child, startChild } from "../children.ts";
import type { ClientOrder, ClientReport } from "./client-process.ts";
import type { ClientName } from "./clients.ts";
import type { ServerMode, ServerOrder, ServerReport } from "./server-process.ts";

export type Server = AsyncDisposable & {
  readonly url: string;
  readonly become: (mode: ServerMode) => Promise<void>;
  readonly state: () => Promise<{ readonly held: number; readonly digests: readonly string[] }>;
};

/** `canned` does as little as a server can; `simulator` does what a real provider does. */
export const startServer = async (kind: "canned" | "simulator"): Promise<Server> => {
  const script = kind === "canned" ? "./server-process.ts" : "./simulator-process.ts";
  const child = await startChild<ServerOrder, ServerReport>(new URL(script, import.meta.url));
  if (child.first.type !== "listening") throw new Error("the server did not start");
  return {
    url: child.first.url,
    become: async (mode) => void (await child.ask({ mode })),
    state: async () => {
      const report = await child.ask({ tell: true });
      if (report.type !== "state") throw new Error("the server did not tell its state");
      return report;
    },
    [Symbol.asyncDispose]: () => child[Symbol.asyncDispose](),
  };
};

export type ClientChild = Child<ClientOrder, ClientReport>;

export const startClient = (name: ClientName, { url }: Server): Promise<ClientChild> =>
  startChild<ClientOrder, ClientReport>(new URL("./client-process.ts", import.meta.url), [name, url]);

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
