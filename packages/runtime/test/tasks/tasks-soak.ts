/** The long form of the durability tests: wild sessions that are killed, and a small family killed at every moment.
 *  Elsewhere: wild sessions (wild-lives.ts, wild-laws.ts), the family (killed-family.ts, crash-laws.ts). */

import { scratch } from "@prefork/testing/scratch";
import { type Moved, moveCalls, moveForks } from "../fork/backgrounding.ts";
import { broken as brokenAt, casesOf as casesAt } from "./crash-laws.ts";
import { firstLife, openTheatre, resumeAt, WAYS, type Way } from "./killed-family.ts";
import { broken, casesOf } from "./wild-laws.ts";
import { playWild, type WildOptions } from "./wild-lives.ts";

export type SoakResult = {
  readonly sessions: number;
  readonly tasks: number;
  readonly kills: number;
  /** How often each case was tested. */
  readonly cases: Readonly<Record<string, number>>;
  readonly broken: readonly string[];
};

const counted = (into: Record<string, number>, names: readonly string[]): void => {
  for (const name of names) into[name] = (into[name] ?? 0) + 1;
};

/** No session is started after this time. */
const MAX_SOAK_MS = 15 * 60_000;

export const wildSoak = async (runs: readonly WildOptions[]): Promise<SoakResult> => {
  using place = scratch();
  const cases: Record<string, number> = {};
  const failures: string[] = [];
  let [sessions, tasks, kills] = [0, 0, 0];
  const begun = performance.now();
  for (const [at, options] of runs.entries()) {
    if (performance.now() - begun > MAX_SOAK_MS) break;
    sessions += 1;
    const wild = await playWild(place.at(`wild-${at}`), options);
    tasks += wild.lives.at(-1)?.left.length ?? 0;
    kills += wild.lives.filter(({ signal }) => signal === "SIGKILL").length;
    counted(cases, casesOf(wild));
    failures.push(...(await broken(wild)).map((words) => `seed ${options.seed}, ${options.interrupted}: ${words}`));
  }
  return { sessions, tasks, kills, cases, broken: failures };
};

// --- every moment of a small family ----------------------------------------------------------------------------------

export type MomentSoak = Pick<SoakResult, "cases" | "broken"> & { readonly cuts: number; readonly warm: number };

/** Kills a family at every `stride`-th moment, and whenever one of its tasks has just ended. */
export const momentSoak = async (ways: readonly Way[], stride: number): Promise<MomentSoak> => {
  const cases: Record<string, number> = {};
  const failures: string[] = [];
  let [cuts, warm] = [0, 0];
  for (const way of ways) {
    await using theatre = await openTheatre(way);
    const first = await firstLife(theatre);
    for (const moment of first.moments) {
      const hasJustEnded = moment.ended > (first.moments[moment.at - 2]?.ended ?? 0);
      if (moment.at % stride !== 0 && !hasJustEnded) continue;
      for (const interrupted of ["report", "resume"] as const) {
        const resumed = await resumeAt(theatre, { first, moment, interrupted });
        cuts += 1;
        warm += resumed.warmth.length;
        counted(cases, [...new Set(casesAt(resumed))]);
        failures.push(...brokenAt(resumed).map((words) => `${way}: ${words}`));
      }
    }
  }
  return { cuts, warm, cases, broken: failures };
};

const SEED = 20_260_304;

/** What `npm run soak -- tasks` runs: some hundreds of tasks in a few minutes. */
export const soakRuns: readonly WildOptions[] = Array.from({ length: 24 }, (_, at) => ({
  seed: SEED + at,
  rounds: 5,
  kills: 4,
  interrupted: at % 2 === 0 ? "report" : "resume",
}));

/** What `npm test` runs. */
export const testRuns: readonly WildOptions[] = [
  { seed: SEED + 100, rounds: 2, kills: 1, interrupted: "report" },
  { seed: SEED + 101, rounds: 2, kills: 1, interrupted: "resume" },
];

export type TasksSoak = {
  readonly wild: SoakResult;
  readonly moments: MomentSoak;
  /** Throws if a task that is moved to the background does other work than one that is not. */
  readonly moved: readonly Moved[];
};

export const tasksSoak = async (): Promise<TasksSoak> => ({
  wild: await wildSoak(soakRuns),
  moments: await momentSoak(WAYS, 1),
  moved: [await moveForks(1), await moveCalls(1)],
});
