/** `prefork sim`: serves the simulator until it is interrupted, so that any agent can be pointed at it.
 *  Invariant: loopback only; nothing is written.
 *  Elsewhere: the rules and the server (@prefork/wire/simulator). */

import { once } from "node:events";
import { DEFAULT_MODEL, modelFacts } from "@prefork/wire";
import { type Command, InvalidArgumentError, Option } from "commander";
import { type Io, newCommand, UsageError } from "../io.ts";
import { parseCount } from "../numbers.ts";
import { priceTable } from "../price-file.ts";

type SimOptions = {
  readonly port: number;
  readonly model: string;
  readonly provider: string;
  readonly script?: string;
  readonly lookback: "runs" | "singly";
  readonly prices?: string;
  readonly json?: true;
};

const port = (text: string): number => {
  const value = parseCount(text);
  if (value === undefined || value > 65_535) throw new InvalidArgumentError("Expected a port from 0 to 65535.");
  return value;
};

export const simCommand = (io: Io): Command =>
  newCommand("sim", io)
    .description("serve a simulated provider on loopback that caches and bills like the real one")
    .option("--port <n>", "port; 0 takes a free one", port, 0)
    .addOption(new Option("--provider <name>", "whose wire and rules").choices(["anthropic"]).default("anthropic"))
    .option("--model <id>", "whose rules and prices serve model ids that nobody published figures for", DEFAULT_MODEL)
    .option("--script <file>", "module whose `script` (or default) export answers requests")
    .addOption(
      new Option("--lookback <way>", "how look-back counts tool blocks").choices(["runs", "singly"]).default("runs"),
    )
    .option("--prices <file>", "prices in place of the published ones")
    .option("--json", "print the address as JSON")
    .addHelpText(
      "after",
      `
Point a client at the printed URL (for instance ANTHROPIC_BASE_URL=<url>); any key will do.
  GET  /_sim/ledger   one row a request: expected, read, written, plain, billed, first divergence
  POST /_sim/clock    {"advanceMs": 300000} moves time; entries expire
  POST /_sim/faults   {"kind": "status", "status": 529} makes the next request fail
See docs/simulator.md.`,
    )
    .action(async (options: SimOptions) => {
      const models = await priceTable(options.prices);
      if (!modelFacts(options.model, models)) {
        throw new UsageError(
          `option '--model': no figures for "${options.model}"; known: ${[...models.keys()].join(", ")}`,
        );
      }
      const { loadScript, startSimulator } = await import("@prefork/wire/simulator");
      const script = options.script === undefined ? {} : { script: await loadScript(options.script) };
      await using simulator = await startSimulator({
        port: options.port,
        lookback: options.lookback,
        models,
        unknownModelsAs: options.model,
        ...script,
      });
      io.out(options.json ? `${JSON.stringify({ url: simulator.url })}\n` : `${simulator.url}\n`);
      io.err("prefork: simulator running, Ctrl-C ends it\n");
      if (!io.signal.aborted) await once(io.signal, "abort");
    });
