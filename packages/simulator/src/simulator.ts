/** Starts, controls and stops a simulator from a program.
 *  Invariant: it listens on loopback only, and disposal leaves no socket open.
 *  Elsewhere: HTTP (server.ts), the command that serves it (the command line). */

import type { AddressInfo } from "node:net";
import type { ModelFacts } from "@prefork/wire";
import { realClock, type SimClock } from "./clock.ts";
import { Engine } from "./engine.ts";
import { SimulatorError } from "./errors.ts";
import type { Fault } from "./faults.ts";
import type { LedgerRow } from "./ledger.ts";
import {
  type CacheRules,
  type ProviderName,
  type ProviderRules,
  providers,
  type RuleOverrides,
  resolveRules,
  rulesOf,
} from "./rules/index.ts";
import { defaultScript, type SimScript } from "./script.ts";
import { type KeptRequest, SimServer } from "./server.ts";
import { contentTokens, type TokenRule } from "./tokens.ts";
import type { Wire } from "./wire.ts";
import { wires } from "./wires/index.ts";

export type SimulatorOptions = {
  readonly port?: number; // default: 0, any free port
  readonly host?: "127.0.0.1" | "::1" | "localhost"; // default: 127.0.0.1
  readonly provider?: ProviderName; // whose rules, in which wire formats; default: anthropic
  readonly script?: SimScript; // default: defaultScript
  readonly clock?: SimClock; // default: real time
  readonly tokenRule?: TokenRule; // default: contentTokens
  readonly lookback?: CacheRules["lookback"]; // default: runs
  /** Changes to the rules of every model, and of single models. */
  readonly rules?: RuleOverrides;
  readonly modelRules?: Readonly<Record<string, RuleOverrides>>;
  /** Replaces published figures: prices, minimum, thinking. */
  readonly models?: ReadonlyMap<string, ModelFacts>;
  /** The model whose rules and figures are used for unknown ids. Default: the rules of the provider's default model,
   *  without money. */
  readonly unknownModelsAs?: string;
  readonly keepBodies?: boolean; // default: false
  /** Real delays. */
  readonly latency?: { readonly firstEventMs?: number; readonly betweenEventsMs?: number };
};

export interface Simulator extends AsyncDisposable {
  /** Base URL without a path, for a client's API address. */
  readonly url: string;
  readonly clock: SimClock;
  ledger(since?: number): readonly LedgerRow[];
  /** Requests as received; empty unless `keepBodies` is set. */
  requests(): readonly KeptRequest[];
  fault(fault: Fault): void;
  reset(): void;
  close(): Promise<void>;
}

export const startSimulator = async (options: SimulatorOptions = {}): Promise<Simulator> => {
  const clock = options.clock ?? realClock();
  const overrides: RuleOverrides = {
    ...options.rules,
    cache: { ...options.rules?.cache, ...(options.lookback === undefined ? {} : { lookback: options.lookback }) },
  };
  const table = {
    overrides,
    ...(options.modelRules === undefined ? {} : { byModel: options.modelRules }),
    ...(options.models === undefined ? {} : { models: options.models }),
    ...(options.unknownModelsAs === undefined ? {} : { unknownAs: options.unknownModelsAs }),
  };
  const { rules, wires: spoken } = providerOf(options.provider ?? "anthropic");
  const engine = new Engine({
    clock,
    tokenRule: options.tokenRule ?? contentTokens,
    rulesFor: (model) => resolveRules(rules, model, table),
    wires: spoken,
  });
  const server = new SimServer({
    engine,
    clock,
    script: options.script ?? defaultScript,
    keepBodies: options.keepBodies ?? false,
    wires: spoken,
    keyless: rules.free === true,
    latency: {
      firstEventMs: options.latency?.firstEventMs ?? 0,
      betweenEventsMs: options.latency?.betweenEventsMs ?? 0,
    },
  });
  const url = await listen(server, options.host ?? "127.0.0.1", options.port ?? 0);
  const close = (): Promise<void> => stop(server);
  return {
    url,
    clock,
    ledger: (since) => engine.ledger.rows(since),
    requests: () => [...server.kept],
    fault: (fault) => server.faults.add(fault),
    reset: () => server.reset(),
    close,
    [Symbol.asyncDispose]: close,
  };
};

type Provider = { readonly rules: ProviderRules; readonly wires: readonly [Wire, ...Wire[]] };

/** A name may come from a command line or from untyped code. */
const providerOf = (name: string): Provider => {
  const rules = rulesOf(name);
  const summary = providers.find((provider) => provider.name === name);
  if (rules === undefined || summary === undefined)
    throw new SimulatorError(
      "provider",
      `provider ${name}: no such rules; there are ${providers.map((provider) => provider.name).join(", ")}`,
    );
  const [first, ...others] = summary.wires;
  return { rules, wires: [wires[first](rules.reports), ...others.map((wire) => wires[wire](rules.reports))] };
};

const hosts = ["127.0.0.1", "::1", "localhost"];

const listen = (server: SimServer, host: string, port: number): Promise<string> =>
  new Promise((resolve, reject) => {
    if (!hosts.includes(host)) {
      reject(new SimulatorError("not-loopback", `host ${host}: the simulator listens on loopback only`));
      return;
    }
    const fail = (cause: NodeJS.ErrnoException): void =>
      reject(
        cause.code === "EADDRINUSE"
          ? new SimulatorError("port-in-use", `port ${port} is already in use on ${host}`, { cause })
          : new SimulatorError("listen", `cannot listen on ${host}:${port}: ${cause.message}`, { cause }),
      );
    server.http.once("error", fail);
    try {
      server.http.listen({ port, host, backlog: 4_096 }, () => {
        server.http.off("error", fail);
        const bound = (server.http.address() as AddressInfo).port;
        resolve(`http://${host === "::1" ? "[::1]" : host}:${bound}`);
      });
    } catch (cause) {
      fail(cause as NodeJS.ErrnoException);
    }
  });

const stop = (server: SimServer): Promise<void> =>
  new Promise((resolve) => {
    server.reset();
    server.http.close(() => resolve());
    server.http.closeAllConnections();
  });
