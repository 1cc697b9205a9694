/** What does one more fork hold in memory while its answer is open?
 *  Invariant: all streams of a client are open at the same moment, counted by the server; each client starts in a fresh
 *  process, and what it holds before the first stream (the parent, the runtime, its own code) is not counted.
 *  Elsewhere: the clients (clients.ts). */

import type { Extent } from "../measure.ts";
import type { Amount, Finding } from "../table.ts";
import { CLIENT_NAMES, type ClientName, ownBytes } from "./clients.ts";
import { ordered, type Server, startClient, startServer } from "./processes.ts";

const KIB = 1_024;
const MAX_KIB = 64;
const PROMISED_STREAMS = 1_000;
/** Clients that copy the whole body for each fork get fewer, or they would need gigabytes. */
const FEWER = 10;
/** Enough to load all code, but too few to leave free memory in the process that the measured streams could fill unnoticed. */
const WARM_UP = 2;

type Holding = { readonly open: number; readonly resident: number; readonly held: number };
type Kind = "resident" | "held";

const KINDS: readonly (readonly [Kind, string])[] = [
  ["resident", "resident memory of the process"],
  ["held", "JavaScript heap and buffers"],
];

/** At a tenth of the streams, a client that drops its bodies grows by less than the noise of a process's memory. */
const COMPARED: Readonly<Record<Kind, readonly ClientName[]>> = {
  resident: ["raw two-chunk POST", "official SDK"],
  held: ["raw two-chunk POST", "JSON.stringify client", "official SDK"],
};

/** What the design promises: our client, and the simulator in another process. */
export const measureStreams = async ({ streams }: Extent): Promise<readonly Finding[]> => {
  await using simulator = await startServer("simulator");
  const { tail, overTail } = tailOf();
  const holding = await holdOpen(simulator, "ours", streams);
  const group = `Memory of one more open fork of a 200K-token parent, over its own ${tail} (simulator)`;
  return [
    {
      group,
      figure: "streams open at once",
      ours: { value: holding.open, unit: "streams" },
      limit: { of: "ours", is: "at least", value: PROMISED_STREAMS },
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

/** Compared with other clients, on a server that answers at once. */
export const compareStreams = async (server: Server, { streams }: Extent): Promise<readonly Finding[]> => {
  const holdings = new Map<ClientName, Holding>();
  for (const name of CLIENT_NAMES) {
    const copies = name === "JSON.stringify client" || name === "official SDK";
    holdings.set(name, await holdOpen(server, name, copies ? streams / FEWER : streams));
  }
  const { tail, overTail } = tailOf();
  const amount = (name: ClientName, kind: Kind): Amount => overTail(holdings.get(name)?.[kind] ?? Number.NaN);
  return KINDS.flatMap(([kind, figure]) =>
    COMPARED[kind].map((name) => ({
      group: `The same, compared with other clients, over the ${tail} (canned server)`,
      figure,
      ours: amount("ours", kind),
      against: { name: `${name}, ${holdings.get(name)?.open} open`, amount: amount(name, kind) },
    })),
  );
};

/** The promise covers what a fork costs beyond its own text. */
const tailOf = (): { readonly tail: string; readonly overTail: (bytes: number) => Amount } => {
  const own = ownBytes();
  return {
    tail: `tail of ${(own / KIB).toFixed(1)} KiB`,
    overTail: (bytes) => ({ value: (bytes - own) / KIB, unit: "KiB" }),
  };
};

const holdOpen = async (server: Server, name: ClientName, streams: number): Promise<Holding> => {
  await using client = await startClient(name, server);
  await server.become("answer");
  await ordered(client, { send: WARM_UP }, "sent");
  await server.become("hold");
  const { resident, held } = await ordered(client, { hold: streams }, "holding");
  const { held: open } = await server.state();
  if (open !== streams) throw new Error(`${name}: the server held ${open} streams, not ${streams}`);
  return { open, resident, held };
};
