/** Scripted agents, the proxy, and the simulator behind it on one clock; and what the ledger says of them.
 *  Invariant: each answer takes half a second of that clock; disposal closes both. */

import { type LedgerRow, ManualClock, type Simulator, type SimulatorOptions, startSimulator } from "@prefork/simulator";
import {
  type ProxyOptions,
  type ProxyReport,
  type ProxySpend,
  type RunningProxy,
  startProxy,
} from "@prefork/xray/proxy";
import type { Request } from "../compare/corpus/conversation.ts";

export const ANSWER_MS = 500;

export type Sent = { readonly status: number; readonly text: string; readonly row: LedgerRow | undefined };

export interface Ground extends AsyncDisposable {
  readonly sim: Simulator;
  readonly proxy: RunningProxy;
  readonly clock: ManualClock;
  /** Sends a body through the proxy and reads the answer to its end. */
  send(body: Request | string, options?: SendOptions): Promise<Sent>;
  /** Everything that was sent is in it. */
  report(): Promise<ProxyReport>;
}

export type SendOptions = {
  readonly key?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly stream?: boolean; // default: true
};

export const openGround = async (
  options: { readonly sim?: SimulatorOptions; readonly proxy?: ProxyOptions } = {},
): Promise<Ground> => {
  const clock = new ManualClock();
  const script = options.sim?.script;
  const sim = await startSimulator({
    ...options.sim,
    clock,
    script: async (request) => {
      clock.advance(ANSWER_MS);
      return script ? script(request) : { content: [{ type: "text", text: "Done." }], outputTokens: 7 };
    },
  });
  const proxy = await startProxy({ upstream: sim.url, now: () => clock.now(), ...options.proxy });
  const send = async (
    body: Request | string,
    { key = "key-a", headers = {}, stream = true }: SendOptions = {},
  ): Promise<Sent> => {
    const response = await fetch(`${proxy.url}/v1/messages`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-api-key": key, ...headers },
      body: typeof body === "string" ? body : JSON.stringify({ ...body, stream }),
    });
    const text = await response.text();
    const id = response.headers.get("request-id");
    return { status: response.status, text, row: sim.ledger().find(({ requestId }) => requestId === id) };
  };
  return {
    sim,
    proxy,
    clock,
    send,
    report: async () => {
      for (;;) {
        const report = await proxy.report();
        if (report.open === 0) return report;
      }
    },
    [Symbol.asyncDispose]: async () => {
      await proxy.close();
      await sim.close();
    },
  };
};

const sum = (rows: readonly LedgerRow[], pick: (row: LedgerRow) => number): number =>
  rows.reduce((total, row) => total + pick(row), 0);

/** What rows of the ledger come to, in the words of a report. */
export const ledgerSums = (rows: readonly LedgerRow[]) => ({
  requests: rows.length,
  plain: sum(rows, ({ plain }) => plain),
  read: sum(rows, ({ read }) => read),
  written: sum(rows, ({ written }) => written["5m"] + written["1h"]),
  output: sum(rows, ({ output }) => output),
  readShare: sum(rows, ({ read }) => read) / sum(rows, ({ promptTokens }) => promptTokens),
  units: rounded(sum(rows, ({ billed }) => billed.inputUnits ?? Number.NaN)),
  usd: rounded(sum(rows, ({ billed }) => billed.usd ?? Number.NaN)),
});

/** The same of a part of a report. */
export const spentSums = ({ requests, usage, readShare, units, usd }: ProxySpend) => ({
  requests,
  plain: usage.plain,
  read: usage.read,
  written: Object.values(usage.written).reduce((total, tokens) => total + tokens, 0),
  output: usage.output,
  readShare,
  units: rounded(units),
  usd: rounded(usd ?? Number.NaN),
});

/** Sums of fractions end in noise. */
const rounded = (figure: number): number => Number(figure.toPrecision(12));
