/** What does the proxy between an agent and its provider cost: time, CPU, memory?
 *  Invariant: direct, bare and ours run in every round, on connections that are already open, against the same provider.
 *  Elsewhere: the gateways (gateway-process.ts), how to read the table (../README.md). */

import { setTimeout as sleep } from "node:timers/promises";
import { type Child, startChild } from "../children.ts";
import { type Extent, interleave, median } from "../measure.ts";
import type { Finding } from "../table.ts";
import { type Server, startServer } from "../wire/processes.ts";
import { type Client, openClient, turnOf } from "./client.ts";
import type { GatewayOrder, GatewayReport } from "./gateway-process.ts";

type Gateway = Child<GatewayOrder, GatewayReport>;
type State = Extract<GatewayReport, { readonly type: "state" }>;

const startGateway = async (
  name: "ours" | "bare",
  { url }: Server,
): Promise<{ readonly child: Gateway; readonly url: string }> => {
  const child = await startChild<GatewayOrder, GatewayReport>(new URL("./gateway-process.ts", import.meta.url), [
    name,
    url,
  ]);
  if (child.first.type !== "listening") throw new Error("the gateway did not start");
  return { child, url: child.first.url };
};

const stateOf = async (gateway: Gateway, tell: GatewayOrder["tell"]): Promise<State> => {
  const report = await gateway.ask({ tell });
  if (report.type !== "state") throw new Error("the gateway did not tell its state");
  return report;
};

const SIZES = [
  { name: "2 KB", body: turnOf(1, 1, 2_000) },
  { name: "800 KB (200K tokens)", body: turnOf(2, 100, 800_000) },
] as const;
const SENT = 10;
const BATCH = 20;

export const measureProxy = async (extent: Extent, report: (step: string) => void): Promise<readonly Finding[]> => {
  await using server = await startServer("canned");
  await using stack = new AsyncDisposableStack();
  const [ours, bare] = [await startGateway("ours", server), await startGateway("bare", server)];
  stack.use(ours.child);
  stack.use(bare.child);
  const findings: Finding[] = [];
  report("one request after the other: direct, bare and ours");
  for (const size of SIZES)
    findings.push(...(await measureTime(size, { direct: server.url, bare: bare.url, ours: ours.url }, extent)));
  report("the same while four others send 800 KB at once");
  findings.push(...(await measureBusy({ bare: bare.url, ours: ours.url }, extent)));
  report("CPU of the gateways");
  for (const size of SIZES) findings.push(...(await measureCpu(size, { bare, ours }, extent)));
  const requests = extent.streams * 10;
  report(`memory over ${requests} requests`);
  findings.push(...(await measureMemory(server, requests)));
  return findings;
};

// --- time ------------------------------------------------------------------------------------------------------------

type Urls = Readonly<Record<string, string>>;

/** Agents pause longer than this between two requests: work after one request must not delay the next. */
const REST_MS = 20;

/** The median time to the first byte of several requests in a row. */
const firstByte = async (client: Client, body: Buffer): Promise<number> => {
  const times: number[] = [];
  for (let index = 0; index < SENT; index += 1) {
    await sleep(REST_MS);
    times.push((await client.send(body)).firstMs);
  }
  return median(times);
};

const beside = (group: string, figure: string, times: ReadonlyMap<string, number>): readonly Finding[] =>
  [...times.keys()]
    .filter((name) => name !== "ours")
    .map((name) => ({
      group,
      figure,
      ours: { value: times.get("ours") ?? Number.NaN, unit: "ms" },
      against: { name: NAMES[name] ?? name, amount: { value: times.get(name) ?? Number.NaN, unit: "ms" } },
      ...(name === "bare" ? { limit: { of: "ratio", is: "at most", value: 2 } as const } : {}),
    }));

const NAMES: Readonly<Record<string, string>> = { direct: "no gateway", bare: "bare node:http pipe" };

const measureTime = async (
  { name, body }: (typeof SIZES)[number],
  urls: Urls,
  { rounds }: Extent,
): Promise<readonly Finding[]> => {
  using stack = new DisposableStack();
  const subjects = Object.entries(urls).map(([subject, url]) => {
    const client = stack.use(openClient(url));
    return { name: subject, sample: () => firstByte(client, body) };
  });
  const times = await interleave(subjects, { warmUp: 5, rounds });
  return beside("Time to the first byte of an answer, one request after the other", name, times);
};

/** Small requests while others keep the gateway busy with long ones. */
const measureBusy = async (urls: Urls, { rounds }: Extent): Promise<readonly Finding[]> => {
  const [small, large] = SIZES;
  const subjects = Object.entries(urls).map(([name, url]) => ({
    name,
    sample: async () => {
      using client = openClient(url);
      using others = openClient(url, 4);
      let isOver = false;
      const busy = Array.from({ length: 4 }, async () => {
        while (!isOver) await others.send(large.body);
      });
      const time = await firstByte(client, small.body);
      isOver = true;
      await Promise.all(busy);
      return time;
    },
  }));
  const times = await interleave(subjects, { warmUp: 2, rounds: Math.ceil(rounds / 2) });
  return beside("The same while four others send 800 KB again and again", small.name, times);
};

// --- CPU -------------------------------------------------------------------------------------------------------------

type Gateways = Readonly<Record<"bare" | "ours", { readonly child: Gateway; readonly url: string }>>;

const measureCpu = async (
  { name, body }: (typeof SIZES)[number],
  gateways: Gateways,
  { rounds }: Extent,
): Promise<readonly Finding[]> => {
  using stack = new DisposableStack();
  const passing: number[] = [];
  const subjects = Object.entries(gateways).map(([subject, { child, url }]) => {
    const client = stack.use(openClient(url));
    const sample = async (): Promise<number> => {
      const before = await stateOf(child, "cost");
      for (let index = 0; index < BATCH; index += 1) await client.send(body);
      const after = await stateOf(child, "cost");
      if (subject === "ours") passing.push((after.passingMicros - before.passingMicros) / BATCH);
      return (after.micros - before.micros) / BATCH;
    };
    return { name: subject, sample };
  });
  const micros = await interleave(subjects, { warmUp: 5, rounds });
  const bare = { name: NAMES.bare ?? "", amount: { value: micros.get("bare") ?? Number.NaN, unit: "µs" } } as const;
  const group = "CPU of the gateway for one request";
  return [
    {
      group,
      figure: `${name}: the thread that passes it on`,
      ours: { value: median(passing), unit: "µs" },
      against: bare,
      limit: { of: "ratio", is: "at most", value: 2 },
    },
    {
      group,
      figure: `${name}: with the analysis`,
      ours: { value: micros.get("ours") ?? Number.NaN, unit: "µs" },
      against: bare,
    },
  ];
};

// --- memory ----------------------------------------------------------------------------------------------------------

const AGENTS = 8;
const TURNS = 10;
const TURN_BYTES = 40_000;
const MEBIBYTE = 1024 * 1024;

/** Agents that start over after some turns: more of them than the proxy remembers. */
const measureMemory = async (server: Server, requests: number): Promise<readonly Finding[]> => {
  const { child, url } = await startGateway("ours", server);
  await using _gateway = child;
  using client = openClient(url, AGENTS);
  const states: State[] = [];
  let sent = 0;
  const until = async (count: number): Promise<void> => {
    const work = Array.from({ length: AGENTS }, async () => {
      while (sent < count) {
        const number = sent;
        sent += 1;
        const [agent, turn] = [
          Math.floor(number / (AGENTS * TURNS)) * AGENTS + (number % AGENTS),
          Math.floor(number / AGENTS) % TURNS,
        ];
        await client.send(turnOf(agent, turn, TURN_BYTES));
      }
    });
    await Promise.all(work);
    states.push(await stateOf(child, "memory"));
  };
  for (const part of [0.25, 0.625, 1]) await until(Math.round(requests * part));
  const [start, middle, end] = states as [State, State, State];
  if (end.missed > 0) throw new Error(`${end.missed} requests are in no sum of the report`);
  const rows = [
    { figure: "of the thread that passes requests on", pick: ({ heap }: State) => heap },
    { figure: "of the analysis, not collected", pick: ({ analysisHeap }: State) => analysisHeap },
  ];
  const amount = (bytes: number) => ({ value: bytes / MEBIBYTE, unit: "MiB" }) as const;
  const group = `Memory after ${requests.toLocaleString("en-US")} requests, against that after a quarter of them`;
  return [
    {
      group,
      figure: "resident, of the whole process",
      ours: amount(end.resident),
      against: {
        name: `start (middle: ${amount(middle.resident).value.toFixed(0)} MiB)`,
        amount: amount(start.resident),
      },
      limit: { of: "ratio", is: "at most", value: 1.25 },
    },
    ...rows.map(
      ({ figure, pick }): Finding => ({
        group,
        figure: `heap ${figure}`,
        ours: amount(pick(end)),
        against: { name: `start (middle: ${amount(pick(middle)).value.toFixed(1)} MiB)`, amount: amount(pick(start)) },
      }),
    ),
  ];
};
