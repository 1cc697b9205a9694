/** The simulator in its own process, taking the same orders as the canned server.
 *  Invariant: every open request has been parsed, priced and entered in the ledger, as a provider would do it.
 *  Elsewhere: the server for figures that a provider's work would only distort (server-process.ts). */

import { say, startSimulator } from "@prefork/simulator";
import type { ServerMode, ServerOrder, ServerReport } from "./server-process.ts";

const state = { mode: "answer" as ServerMode };
const never = new Promise<never>(() => undefined);
const answer = say("Scope: one part. Result: done.");

const simulator = await startSimulator({
  script: () => (state.mode === "hold" ? { ...answer, hold: never } : answer),
});

const tell = (report: ServerReport): void => void process.send?.(report);

process.on("message", (order: ServerOrder) => {
  if ("mode" in order) {
    state.mode = order.mode;
    tell({ type: "set" });
    return;
  }
  const held = simulator.ledger().filter(({ outcome }) => outcome === "open").length;
  tell({ type: "state", held, digests: [] });
});
process.on("disconnect", () => process.exit());
tell({ type: "listening", url: simulator.url });
