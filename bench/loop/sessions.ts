/** What does a turn of a long session cost the client, compared with other libraries in the same conversation?
 *  Invariant: only CPU and memory of the client's process count; every round has a fresh process of every client, and each
 *  round starts with another one; the run fails if a client was refused or had a different conversation.
 *  Elsewhere: the conversation (conversation.ts), one session (session-process.ts). */

import { type Child, startChild } from "../children.ts";
import { type Extent, median } from "../measure.ts";
import type { Finding } from "../table.ts";
import { CLIENT_NAMES, type ClientName, KEEPING_NAMES, TURNS } from "./conversation.ts";
import type { SessionReport } from "./session-process.ts";
import type { SimulatorOrder, SimulatorReport } from "./simulator-process.ts";

type Ended = Extract<SessionReport, { readonly type: "ended" }>;
type Told = Extract<SimulatorReport, { readonly type: "session" }>;
type Simulator = Child<SimulatorOrder, SimulatorReport>;

export const measureSessions = async ({ rounds }: Extent): Promise<readonly Finding[]> => {
  await using simulator = await startChild<SimulatorOrder, SimulatorReport>(
    new URL("./simulator-process.ts", import.meta.url),
  );
  const taken = new Map<ClientName, Ended[]>(CLIENT_NAMES.map((name) => [name, []]));
  for (let round = 0; round < Math.ceil(rounds / ROUNDS_PER_SESSION); round += 1)
    for (const index of CLIENT_NAMES.keys()) {
      const name = CLIENT_NAMES[(index + round) % CLIENT_NAMES.length];
      if (name) taken.get(name)?.push(await sessionOf(name, simulator));
    }
  const figures = new Map([...taken].map(([name, reports]) => [name, middle(reports)]));
  return findingsOf((name) => figures.get(name) ?? middle([]));
};

/** Few rounds are enough, because a session is already a hundred samples. */
const ROUNDS_PER_SESSION = 5;

const sessionOf = async (name: ClientName, simulator: Simulator): Promise<Ended> => {
  if (simulator.first.type !== "listening") throw new Error("the simulator did not start");
  await using child = await startChild<never, SessionReport>(new URL("./session-process.ts", import.meta.url), [
    name,
    simulator.first.url,
  ]);
  if (child.first.type === "failed") throw new Error(`${name} failed: ${child.first.message}`);
  const seen = await simulator.ask({ tell: true });
  if (seen.type !== "session") throw new Error("the simulator did not report what it saw");
  requireSameConversation(name, seen);
  return child.first;
};

const PROMPT_TOKENS = { least: 196_000, most: 204_000 };
const MIN_READ = 0.95;

const requireSameConversation = (name: ClientName, seen: Told): void => {
  const { requests, refused, lastPrompt, read, prompts } = seen;
  if (refused.length > 0 || requests !== TURNS)
    throw new Error(`${name} sent ${requests} good requests; refused: ${refused[0] ?? "none"}`);
  if (lastPrompt < PROMPT_TOKENS.least || lastPrompt > PROMPT_TOKENS.most)
    throw new Error(`the last prompt of ${name} had ${lastPrompt} tokens`);
  if (read / prompts < MIN_READ) throw new Error(`${name} read only ${read} of ${prompts} tokens from the cache`);
};

const middle = (reports: readonly Ended[]): Ended => ({
  type: "ended",
  turn: median(reports.map(({ turn }) => turn)),
  early: median(reports.map(({ early }) => early)),
  late: median(reports.map(({ late }) => late)),
  peak: median(reports.map(({ peak }) => peak)),
});

const HALF = 0.5;
const NO_MORE = 1;
const MIB = 1_024 * 1_024;
const OTHERS = KEEPING_NAMES.filter((name) => name !== "ours");
const KEEPS_NOTHING = "Anthropic SDK, keeping nothing";

const findingsOf = (of: (name: ClientName) => Ended): readonly Finding[] => {
  const micros = (name: ClientName, figure: "turn" | "early" | "late") =>
    ({ value: of(name)[figure], unit: "µs" }) as const;
  const mebibytes = (name: ClientName) => ({ value: of(name).peak / MIB, unit: "MiB" }) as const;
  // Cheaper than the better one means cheaper than both, so every row has the limit.
  const cpu = OTHERS.map(
    (name): Finding => ({
      group: `One turn of a session of ${TURNS} turns and 200K tokens, all with a journal: CPU of the client`,
      figure: "turns 2 to 100",
      ours: micros("ours", "turn"),
      against: { name, amount: micros(name, "turn") },
      limit: { of: "ratio", is: "at most", value: HALF },
    }),
  );
  // Not a promise: the cost for somebody who needs no journal.
  const bare: Finding = {
    group: "The same, beside a client that could not be resumed",
    figure: "turns 2 to 100",
    ours: micros("ours", "turn"),
    against: { name: KEEPS_NOTHING, amount: micros(KEEPS_NOTHING, "turn") },
  };
  const growth = KEEPING_NAMES.map(
    (name): Finding => ({
      group: "How a turn grows with the conversation: CPU of the client",
      figure: `${name}: turns 91 to 100`,
      ours: micros(name, "late"),
      against: { name: "the same client, turns 2 to 11", amount: micros(name, "early") },
    }),
  );
  const memory = OTHERS.map(
    (name): Finding => ({
      group: "Peak memory of the client's process over that session",
      figure: "largest resident set",
      ours: mebibytes("ours"),
      against: { name, amount: mebibytes(name) },
      limit: { of: "ratio", is: "at most", value: NO_MORE },
    }),
  );
  return [...cpu, bare, ...growth, ...memory];
};
