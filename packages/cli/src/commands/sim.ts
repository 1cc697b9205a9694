/** `prefork sim`: serves the simulator until it is interrupted, for any agent to use.
 *  Invariant: it listens on loopback only and writes nothing; the simulator is loaded only when it is served.
 *  Elsewhere: the rules and the server (@prefork/simulator). */

import { once } from "node:events";
import type { ProviderSummary, WireName } from "@prefork/simulator";
import { DEFAULT_MODEL, type ModelFacts } from "@prefork/wire";
import { type Command, InvalidArgumentError, Option } from "commander";
import { type Io, newCommand, UsageError } from "../io.ts";
import { parseCount } from "../numbers.ts";
import { priceTable } from "../price-file.ts";

type SimOptions = {
  readonly port: number;
  readonly model?: string;
  readonly rules: string;
  readonly script?: string;
  readonly lookback?: "runs" | "singly";
  readonly prices?: string;
  readonly json?: true;
};

const port = (text: string): number => {
  const value = parseCount(text);
  if (value === undefined || value > 65_535) throw new InvalidArgumentError("Expected a port from 0 to 65535.");
  return value;
};

const served: Readonly<Record<WireName, string>> = {
  messages: "/v1/messages",
  responses: "/v1/responses",
  chat: "/v1/chat/completions",
  gemini: "/v1beta/models/<model>:generateContent",
};

export const simCommand = (io: Io): Command =>
  newCommand("sim", io)
    .description("serve a simulated provider on loopback, which caches and bills like the real one")
    .option("--port <n>", "port; 0 picks a free one", port, 0)
    .option("--rules <name>", "provider to simulate (see below)", "anthropic")
    .option("--model <id>", "model whose rules and prices apply to unknown model ids (default: one of the provider)")
    .option("--script <file>", "module whose `script` or default export answers requests")
    .addOption(
      new Option("--lookback <way>", "how look-back counts tool blocks (default: the provider's way)").choices([
        "runs",
        "singly",
      ]),
    )
    .option("--prices <file>", "JSON file with your own prices")
    .option("--json", "print the address as JSON")
    .action(async (options: SimOptions) => {
      const models = await priceTable(options.prices);
      const { loadScript, providerRules, providers, startSimulator } = await import("@prefork/simulator");
      const provider = providers.find(({ name }) => name === options.rules);
      if (provider === undefined) {
        const known = providers.map(({ name }) => name).join(", ");
        throw new UsageError(`option '--rules': there is no provider "${options.rules}"; known: ${known}`);
      }
      const { name } = provider;
      const model = options.model ?? (name === "anthropic" ? DEFAULT_MODEL : provider.defaultModel);
      const rules = providerRules(name, model, { models });
      if (rules.facts === undefined && !rules.free)
        throw new UsageError(
          `option '--model': the prices of "${model}" are unknown; known: ${knownTo(provider, models).join(", ")}`,
        );
      const script = options.script === undefined ? {} : { script: await loadScript(options.script) };
      await using simulator = await startSimulator({
        provider: name,
        port: options.port,
        models,
        unknownModelsAs: model,
        ...(options.lookback === undefined ? {} : { lookback: options.lookback }),
        ...script,
      });
      const { url } = simulator;
      io.out(options.json ? `${JSON.stringify({ url, rules: name })}\n` : `${url}\n`);
      const paths = provider.wires.map((wire) => served[wire]).join(", ");
      io.err(`prefork: simulating ${name} (${paths}); stop with Ctrl-C\n`);
      if (!io.signal.aborted) await once(io.signal, "abort");
    });

const knownTo = (provider: ProviderSummary, models: ReadonlyMap<string, ModelFacts>): readonly string[] =>
  provider.name === "anthropic" ? [...models.keys()] : provider.models;
