/** What does one more fork of a long parent cost to build and send, compared with other ways to send the same bytes?
 *  Invariant: only the CPU of the client's process counts; every client runs in every round, on connections that are already open.
 *  Elsewhere: the ways (clients.ts), building alone (forks.ts). */

import { type Extent, interleave } from "../measure.ts";
import type { Finding } from "../table.ts";
import { CLIENT_NAMES, type ClientName } from "./clients.ts";
import { type ClientChild, ordered, type Server, startClient } from "./processes.ts";

const FORKS = 10;
const TWICE = 2;
const FLOOR: ClientName = "raw two-chunk POST";

export const measureSending = async (server: Server, { rounds }: Extent): Promise<readonly Finding[]> => {
  await using clients = new AsyncDisposableStack();
  const subjects: { readonly name: ClientName; readonly client: ClientChild }[] = [];
  for (const name of CLIENT_NAMES) subjects.push({ name, client: clients.use(await startClient(name, server)) });

  await server.become("digest");
  for (const { client } of subjects) await ordered(client, { send: 1 }, "sent");
  const { digests } = await server.state();
  if (digests.length !== 1) throw new Error(`the clients sent ${digests.length} different bodies for one fork`);

  await server.become("answer");
  const cost = await interleave(
    subjects.map(({ name, client }) => ({
      name,
      sample: async () => (await ordered(client, { send: FORKS }, "sent")).micros,
    })),
    { warmUp: 8, rounds },
  );
  const millis = (name: ClientName): number => (cost.get(name) ?? Number.NaN) / 1_000;
  return CLIENT_NAMES.filter((name) => name !== "ours").map((name) => ({
    group: "Build and send one more fork, read its answer: CPU of the client",
    figure: "parent of 200K tokens",
    ours: { value: millis("ours"), unit: "ms" },
    against: { name, amount: { value: millis(name), unit: "ms" } },
    ...(name === FLOOR ? { limit: { of: "ratio", is: "at most", value: TWICE } } : {}),
  }));
};
