/** How does a wild session live? Its process is killed at moments that follow from a seed, until one run finishes.
 *  Invariant: bounded in count and in time. Only processes that were started here are ended, by their id.
 *  Elsewhere: the session (wild-session.ts), what must hold (wild-laws.ts). */

import { spawn } from "node:child_process";
import { mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { ManualClock, type Simulator, startSimulator } from "@prefork/simulator";
import { type SeededRandom, seededRandom } from "@prefork/testing/chance";
import type { Task } from "../../src/index.ts";
import { readSession, type SessionStore } from "../../src/observe.ts";
import { tasksIn } from "../../src/tasks/index.ts";
import { type Asked, askedOf } from "./fixture.ts";
import { modelOf, roundIn, type Story, storyOf } from "./wild-session.ts";
import type { Playing } from "./wild-session-process.ts";

const PROGRAM = fileURLToPath(new URL("wild-session-process.ts", import.meta.url));
/** A process that takes longer hangs. */
const MAX_MS = 60_000;
/** Longer than the usual time between events, so that a kill can fall anywhere between two of them. */
const MAX_LATER_MS = 8;

export type Shown = {
  readonly type: string;
  readonly agent?: string;
  readonly taskId?: string;
  readonly status?: string;
};

export type Life = {
  readonly shown: readonly Shown[];
  readonly exitCode: number | null;
  readonly signal: NodeJS.Signals | null;
  /** What the process left: the rows, and how many requests had been sent by then. */
  readonly left: readonly Task[];
  readonly requests: number;
};

export type Wild = {
  readonly story: Story;
  readonly interrupted: "report" | "resume";
  readonly base: string;
  readonly id: string;
  readonly lives: readonly Life[];
  readonly asked: readonly Asked[];
};

export const storeIn = (base: string): SessionStore => ({ state: join(base, "state"), now: () => 0, newId: () => "" });

const rowsIn = async (base: string, id: string): Promise<readonly Task[]> =>
  id === "" ? [] : tasksIn((await readSession(storeIn(base), id)).replayed.state);

type Ended = Omit<Life, "left" | "requests"> & { readonly id: string };

const live = async (playing: Playing, killAfter: number | undefined, laterMs: number): Promise<Ended> => {
  const child = spawn(process.execPath, [...process.execArgv, PROGRAM, JSON.stringify(playing)], {
    stdio: ["ignore", "pipe", "inherit"],
    // If there is none yet, next to the folder, so that later processes start faster.
    env: { NODE_COMPILE_CACHE: join(dirname(playing.base), "compiled"), ...process.env },
    timeout: MAX_MS,
    killSignal: "SIGKILL",
  });
  const ended = new Promise<Pick<Life, "exitCode" | "signal">>((done) =>
    child.once("close", (exitCode, signal) => done({ exitCode, signal })),
  );
  const shown: Shown[] = [];
  let id = playing.earlier?.id ?? "";
  for await (const line of createInterface({ input: child.stdout })) {
    const fact = factIn(line);
    if (!fact) continue;
    shown.push(fact);
    if (fact.type === "opened") ({ id } = fact);
    if (shown.length !== killAfter) continue;
    await delay(laterMs);
    child.kill("SIGKILL");
  }
  return { id, shown, ...(await ended) };
};

/** The last line of a killed process may be torn. */
const factIn = (line: string): (Shown & { readonly id: string }) | undefined => {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
};

const FAULTS = [
  { kind: "status", status: 529 },
  { kind: "status", status: 429, retryAfterMs: 1 },
  { kind: "reset" },
  { kind: "reset-mid-stream", afterEvents: 3 },
  { kind: "error-mid-stream", moment: "after-content" },
  { kind: "error-mid-stream", moment: "before-content" },
  { kind: "truncated-json" },
] as const;

/** For all runs together, and far enough apart that a retried request is seldom hit again. */
const addFaults = (simulator: Simulator, chance: SeededRandom): void => {
  let nth = 0;
  for (let count = 0; count < 30; count += 1) {
    nth += 8 + chance.below(12);
    simulator.fault({ ...chance.one(FAULTS), nth });
  }
};

export type WildOptions = {
  readonly seed: number;
  readonly rounds: number;
  readonly kills: number;
  readonly interrupted: "report" | "resume";
};

export const playWild = async (base: string, { seed, rounds, kills, interrupted }: WildOptions): Promise<Wild> => {
  for (const name of ["work", "home", "traces"]) mkdirSync(join(base, name), { recursive: true });
  const chance = seededRandom(seed);
  const story = storyOf(seed, rounds);
  const script = modelOf(story, join(base, "traces"));
  await using simulator = await startSimulator({ script, clock: new ManualClock(), keepBodies: true });
  const lives: Life[] = [];
  let id = "";
  let round = 1;
  addFaults(simulator, chance);
  do {
    const isKilled = lives.length < kills;
    const earlier = id === "" ? {} : { earlier: { id, round } };
    const playing = { base, url: simulator.url, seed, rounds, interrupted, life: lives.length, ...earlier };
    const killAfter = isKilled ? 10 + chance.below(60 + rounds * 30) : undefined;
    const ended = await live(playing, killAfter, chance.below(MAX_LATER_MS));
    ({ id } = ended);
    lives.push({ ...ended, left: await rowsIn(base, id), requests: simulator.requests().length });
    const asked = askedOf(simulator).findLast(({ seen }) => seen.isMain);
    round = Math.max(1, roundIn(asked?.seen.told ?? []));
  } while (lives.at(-1)?.signal === "SIGKILL" && lives.length <= kills);
  return { story, interrupted, base, id, lives, asked: askedOf(simulator) };
};
