/** The simulator in its own process, playing the same model and taking the same orders as the cheap provider.
 *  Invariant: every request is validated, priced and looked up in the cache, as a provider would do it; what is held has
 *  been through all of that.
 *  Elsewhere: the conversation (conversation.ts), the provider for times (provider-process.ts). */

import { callTools, lastUserText, type SimAnswer, say, startSimulator } from "@prefork/simulator";
import { LOOKED_AT, REPORT, WORD, wantedAt } from "./conversation.ts";
import type { ProviderOrder, ProviderReport } from "./provider-process.ts";

/** The latest family: its forks so far, and what they wait for. */
const state = { holds: false, gathers: 0, forks: 0, gathered: 0, all: Promise.withResolvers<void>() };
const never = new Promise<never>(() => undefined);

/** A client that cannot open this many must not wait forever. */
const PATIENCE_MS = 20_000;

const begin = (): void => {
  const all = Promise.withResolvers<void>();
  Object.assign(state, { forks: 0, gathered: 0, all });
  void all.promise.then(() => {
    state.gathered = state.forks;
  });
  setTimeout(all.resolve, PATIENCE_MS).unref();
};

const report = (): SimAnswer => {
  state.forks += 1;
  if (state.holds) return { ...say(REPORT), hold: never };
  if (state.gathers === 0) return say(REPORT);
  if (state.forks >= state.gathers) state.all.resolve();
  return { ...say(REPORT), hold: state.all.promise };
};

const simulator = await startSimulator({
  script: (request) => {
    const wanted = wantedAt(lastUserText(request).slice(-LOOKED_AT));
    switch (wanted.kind) {
      case "start":
        begin();
        return callTools(wanted.calls);
      case "report":
        return report();
      case "word":
        return say(WORD);
    }
  },
});

const tell = (report: ProviderReport): void => void process.send?.(report);

process.on("message", (order: ProviderOrder) => {
  if (!("tell" in order)) {
    Object.assign(state, order);
    tell({ type: "set" });
    return;
  }
  const rows = simulator.ledger();
  tell({
    type: "family",
    forks: state.forks,
    gathered: state.gathered,
    ms: Number.NaN,
    held: rows.filter(({ outcome }) => outcome === "open").length,
    digests: [],
    refused: rows.flatMap(({ error }) => (error ? [error] : [])),
  });
});
process.on("disconnect", () => process.exit());
tell({ type: "listening", url: simulator.url });
