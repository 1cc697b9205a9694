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
    .addHelpText(
      "after",
      `
Rules:
  anthropic         /v1/messages: markers, 20 positions of look-back, 5 minutes or an hour
  openai            /v1/responses, /v1/chat/completions: breakpoints from GPT-5.6 on, older models by their own rules
  openai-legacy     the same paths, every model by the older rules: automatic, from 1,024 tokens, in steps of 128
  gemini            /v1beta/models/…, /v1beta/cachedContents: automatic, and stored by name
  gemini-explicit   the same paths, but only what is stored by name is cached
  deepseek          /chat/completions, /anthropic/v1/messages: units of 64 tokens
  minimax           /anthropic/v1/messages, /v1/chat/completions: automatic from 512 tokens; markers on M2
  dashscope         /compatible-mode/v1/chat/completions: markers or automatic, readable when complete
  vllm              /v1/chat/completions, /v1/messages: blocks of 16 tokens, shared at once; no key
  llamacpp          /v1/chat/completions, /v1/messages: slots that share nothing; no key

Point a client at the printed URL (ANTHROPIC_BASE_URL=<url>, OPENAI_BASE_URL=<url>/v1, GOOGLE_GEMINI_BASE_URL=<url>);
any key works.
  GET  /_sim/ledger   one row per request: expected, read, written, uncached, billed, first divergence
  POST /_sim/clock    {"advanceMs": 300000} advances the clock, so that entries expire
  POST /_sim/faults   {"kind": "status", "status": 529} makes the next request fail
More: docs/simulator.md in the repository.`,
    )
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
