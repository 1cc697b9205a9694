/** What does one more fork of a session hold in memory while its answer is open?
 *  Invariant: all forks of a client are open at the same moment, counted by the provider; each client has a fresh process
 *  and has had one small family in it, and what it holds before the measured one is not counted.
 *  Elsewhere: the clients (clients/), what is left when forks have ended (left-behind.ts). */

import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { Extent } from "../measure.ts";
import { makeScratch } from "../scratch.ts";
import type { Amount, Finding } from "../table.ts";
import { lengthText } from "../wire/history.ts";
import type { Weight } from "./client-process.ts";
import type { ClientName } from "./clients/client.ts";
import { ownBytes } from "./conversation.ts";
import { type ClientStart, ordered, type Provider, startClient, startProvider, untilHeld } from "./processes.ts";

const KIB = 1_024;
const MAX_KIB = 64;
const PROMISED = 1_000;
const LONG = 200_000;
const SHORT = 10_000;
/** Enough to load all code, but too few to leave free memory in the process that the measured forks could fill unnoticed. */
const WARM_UP = 2;
/** Comparisons need fewer forks, and a client that copies the whole body gets fewer still. */
const FEWER = 4;
const FEWEST = 20;

const KINDS: readonly (readonly [keyof Weight, string])[] = [
  ["resident", "resident memory of the process"],
  ["held", "JavaScript heap and buffers"],
];

type Holding = Weight & { readonly open: number };

/** What the design promises: a session of ours, and the simulator in another process. */
export const measureOpenForks = async ({ streams }: Extent): Promise<readonly Finding[]> => {
  await using scratch = await makeScratch();
  await using simulator = await startProvider("simulator");
  const holding = await holdOpen("ours", simulator, { tokens: LONG, folder: scratch.path, forks: streams });
  const { tail, overTail } = tailOf();
  const group = `Memory of one more open fork of a session of ${lengthText(LONG)} tokens, over its own ${tail} (simulator)`;
  return [
    {
      group,
      figure: "forks open at once",
      ours: { value: holding.open, unit: "forks" },
      limit: { of: "ours", is: "at least", value: PROMISED },
    },
    ...KINDS.map(
      ([kind, figure]): Finding => ({
        group,
        figure,
        ours: overTail(holding[kind]),
        limit: { of: "ours", is: "at most", value: MAX_KIB },
      }),
    ),
  ];
};

/** Compared with other clients and another length, on the provider that answers at once. */
export const compareOpenForks = async ({ streams }: Extent): Promise<readonly Finding[]> => {
  await using scratch = await makeScratch();
  await using provider = await startProvider("canned");
  const [fewer, fewest] = [streams / FEWER, streams / FEWEST];
  const folder = join(scratch.path, "requests");
  await mkdir(folder);
  const starts: readonly (readonly [string, ClientName, Start])[] = [
    ["ours", "ours", { tokens: LONG, folder, forks: fewer }],
    ["raw", "raw two-chunk POST", { tokens: LONG, folder, forks: fewer }],
    ["naive", "copy and JSON.stringify", { tokens: LONG, folder, forks: fewest }],
    ["short", "ours", { tokens: SHORT, folder: scratch.path, forks: fewer }],
  ];
  await keepRequests(provider, { tokens: LONG, folder }, [WARM_UP, fewer, fewest]);
  const holdings = new Map<string, Holding>();
  for (const [key, name, start] of starts) holdings.set(key, await holdOpen(name, provider, start));
  const { tail, overTail } = tailOf();
  const amount = (key: string, kind: keyof Weight): Amount => overTail(holdings.get(key)?.[kind] ?? Number.NaN);
  const beside = (key: string, name: string): readonly Finding[] =>
    KINDS.map(([kind, figure]) => ({
      group: `The same beside others, ${fewer} open, over the ${tail} (cheap provider)`,
      figure,
      ours: amount("ours", kind),
      against: { name: `${name}, ${holdings.get(key)?.open} open`, amount: amount(key, kind) },
    }));
  return [
    ...beside("raw", "raw two-chunk POST"),
    ...beside("naive", "copy and JSON.stringify"),
    ...beside("short", `ours, parent of ${lengthText(SHORT)}`),
  ];
};

type Start = ClientStart & { readonly forks: number };

const holdOpen = async (name: ClientName, provider: Provider, start: Start): Promise<Holding> => {
  await using client = await startClient(name, provider, start);
  await provider.set({ holds: false });
  await ordered(client, { family: WARM_UP }, "had");
  await provider.set({ holds: true });
  const { forks } = start;
  const before = await ordered(client, { open: forks }, "opening");
  await untilHeld(provider, forks);
  const after = await ordered(client, { weigh: true }, "weighed");
  const { held: open } = await provider.family();
  if (open !== forks) throw new Error(`${name}: the provider held ${open} forks, not ${forks}`);
  await provider.set({ holds: false });
  return { open, resident: (after.resident - before.resident) / forks, held: (after.held - before.held) / forks };
};

/** Our requests, so that the others send the same bytes. */
const keepRequests = async (provider: Provider, start: ClientStart, sizes: readonly number[]): Promise<void> => {
  await using client = await startClient("ours", provider, start);
  await provider.set({ keeps: start.folder });
  for (const forks of sizes) await ordered(client, { family: forks }, "had");
  await provider.set({ keeps: "" });
};

/** The promise covers what a fork costs beyond its own text. */
const tailOf = (): { readonly tail: string; readonly overTail: (bytes: number) => Amount } => {
  const own = ownBytes();
  return {
    tail: `tail of ${(own / KIB).toFixed(1)} KiB`,
    overTail: (bytes) => ({ value: (bytes - own) / KIB, unit: "KiB" }),
  };
};
