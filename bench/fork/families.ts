/** What does one more fork of a session cost, and how soon is the last request of a family sent?
 *  Invariant: only the client process's CPU counts, and time is the provider's clock; all clients send identical bytes,
 *  every client runs in every round, and each round starts with another one.
 *  Elsewhere: the clients (clients/), the provider (provider-process.ts), memory (open-forks.ts). */

import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { type Extent, median } from "../measure.ts";
import { makeScratch } from "../scratch.ts";
import type { Amount, Finding } from "../table.ts";
import { lengthText } from "../wire/history.ts";
import { CLIENT_NAMES, type ClientName } from "./clients/client.ts";
import { type ClientChild, ordered, type Provider, startClient, startProvider } from "./processes.ts";

const LONG = 200_000;
const SHORT = 10_000;
/** The difference between a family of one and a family of fifty gives the cost of one more fork. */
const FEW = 1;
const MANY = 50;
const SIZES = [FEW, 5, 20, MANY, 200] as const;
const RAW: ClientName = "raw two-chunk POST";
const WIRE: ClientName = "our wire alone";
const NAIVE: ClientName = "copy and JSON.stringify";

const TWICE = 2;
const FLAT = 1.5;

type Subject = { readonly name: ClientName; readonly tokens: number; readonly client: ClientChild };

type Sample = { readonly micros: number; readonly ms: number };

export const measureFamilies = async ({ rounds }: Extent): Promise<readonly Finding[]> => {
  await using scratch = await makeScratch();
  await using provider = await startProvider("canned");
  await using clients = new AsyncDisposableStack();
  const subjects: Subject[] = [];
  for (const { tokens, names, sizes } of PARENTS) {
    const folder = join(scratch.path, String(tokens));
    await mkdir(folder);
    const sent = new Map<number, string>();
    for (const name of names) {
      const client = clients.use(await startClient(name, provider, { tokens, folder }));
      // Ours runs first: its requests of every size are saved, so that the others send the same bytes.
      const checked = name === "ours" ? sizes : [FEW, MANY];
      await mustSendTheSame({ name, tokens, client }, sent, { provider, folder, sizes: checked });
      subjects.push({ name, tokens, client });
    }
  }
  const taken = new Samples(provider);
  for (let round = 0; round < Math.ceil(rounds / ROUNDS_PER_FAMILY); round += 1)
    for (const index of subjects.keys()) {
      const subject = subjects[(index + round) % subjects.length];
      if (subject) for (const forks of sizesFor(subject, round)) await taken.take(subject, forks);
    }
  return [...cpuFindings(taken), ...timeFindings(taken)];
};

const PARENTS: readonly {
  readonly tokens: number;
  readonly names: readonly ClientName[];
  readonly sizes: readonly number[];
}[] = [
  { tokens: LONG, names: CLIENT_NAMES, sizes: SIZES },
  { tokens: SHORT, names: ["ours", RAW], sizes: [FEW, MANY] },
];

/** Few rounds are enough, because a family is already many samples. */
const ROUNDS_PER_FAMILY = 5;
/** CPU uses only two sizes. The times of the other sizes are there for scale, and the largest takes seconds. */
const ROUNDS_OF_ALL_SIZES = 3;

const sizesFor = ({ name, tokens }: Subject, round: number): readonly number[] =>
  tokens === LONG && name !== WIRE && round < ROUNDS_OF_ALL_SIZES ? SIZES : [FEW, MANY];

type Keeping = { readonly provider: Provider; readonly folder: string; readonly sizes: readonly number[] };

/** `sent`: hashes of what was sent before, by the number of forks. */
const mustSendTheSame = async (
  { name, client }: Subject,
  sent: Map<number, string>,
  { provider, folder, sizes }: Keeping,
): Promise<void> => {
  await provider.set({ keeps: folder });
  for (const forks of sizes) {
    await ordered(client, { family: forks }, "had");
    const [digest = "nothing"] = (await provider.family()).digests;
    if (digest !== (sent.get(forks) ?? digest)) throw new Error(`${name} sent another request for ${forks} forks`);
    sent.set(forks, digest);
  }
  await provider.set({ keeps: "" });
};

/** The samples of every client, for families of every size. */
class Samples {
  readonly #provider: Provider;
  readonly #taken = new Map<string, Sample[]>();

  constructor(provider: Provider) {
    this.#provider = provider;
  }

  async take({ name, tokens, client }: Subject, forks: number): Promise<void> {
    const { micros } = await ordered(client, { family: forks }, "had");
    const { ms, forks: seen } = await this.#provider.family();
    if (seen !== forks) throw new Error(`${name}: the provider saw ${seen} of ${forks} forks`);
    const key = `${name} ${tokens} ${forks}`;
    this.#taken.set(key, [...(this.#taken.get(key) ?? []), { micros, ms }]);
  }

  median(name: ClientName, tokens: number, forks: number): Sample {
    const taken = this.#taken.get(`${name} ${tokens} ${forks}`) ?? [];
    return { micros: median(taken.map(({ micros }) => micros)), ms: median(taken.map(({ ms }) => ms)) };
  }
}

const cpuFindings = (taken: Samples): readonly Finding[] => {
  const oneMore = (name: ClientName, tokens: number): number =>
    (taken.median(name, tokens, MANY).micros - taken.median(name, tokens, FEW).micros) / (MANY - FEW) / 1_000;
  const added = (tokens: number): number => oneMore("ours", tokens) - oneMore(RAW, tokens);
  const ms = (value: number): Amount => ({ value, unit: "ms" });
  const group = `One more fork of a session of ${lengthText(LONG)} tokens, 50 at once: CPU of the client`;
  const raw = { name: RAW, amount: ms(oneMore(RAW, LONG)) };
  const session = { group, figure: "from its call to the word of its report", ours: ms(oneMore("ours", LONG)) };
  const twice: Finding["limit"] = { of: "ratio", is: "at most", value: TWICE };
  return [
    { group, figure: "built, sent and read, no session", ours: ms(oneMore(WIRE, LONG)), against: raw, limit: twice },
    // No limit here: the promise is about building and sending. A session also writes a journal, checks permissions and
    // reports events.
    { ...session, against: raw },
    { ...session, against: { name: NAIVE, amount: ms(oneMore(NAIVE, LONG)) } },
    {
      group,
      figure: "what the session adds to that POST",
      ours: ms(added(LONG)),
      against: { name: `ours, parent of ${lengthText(SHORT)}`, amount: ms(added(SHORT)) },
      limit: { of: "ratio", is: "at most", value: FLAT },
    },
  ];
};

const timeFindings = (taken: Samples): readonly Finding[] =>
  SIZES.flatMap((forks) =>
    [RAW, NAIVE].map((name) => ({
      group: `From the parent's answer to the last fork's first byte, parent of ${lengthText(LONG)} tokens: time`,
      figure: forks === 1 ? "one fork" : `${forks} forks`,
      ours: { value: taken.median("ours", LONG, forks).ms, unit: "ms" },
      against: { name, amount: { value: taken.median(name, LONG, forks).ms, unit: "ms" } },
    })),
  );
