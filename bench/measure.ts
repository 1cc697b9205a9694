/** How a figure is measured: CPU time of this process, alternating subjects, medians over rounds.
 *  Invariant: every subject of a comparison runs in every round, each round starts with another one, and no subject pays
 *  for the garbage of the one before it.
 *  Elsewhere: the subjects (wire/), what the figures are compared with (table.ts). */

import { availableParallelism, cpus, loadavg } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/** Microseconds of CPU, including system calls and helper threads: unlike wall-clock time, it does not grow when other
 *  processes want the same core. */
export const cpuMicros = (): number => {
  const { user, system } = process.cpuUsage();
  return user + system;
};

/** CPU of one run of `work`, which does `units` of the thing that is measured. */
export const cpuPerUnit = (units: number, work: () => void): number => {
  const before = cpuMicros();
  work();
  return (cpuMicros() - before) / units;
};

/** Runs V8's garbage collector; its flag can be set at run time, so no special command line is needed. Waits until the
 *  collector's helper threads are idle too, because their CPU counts as ours. */
export const garbageCollector = (): (() => Promise<void>) => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  return async () => {
    collect();
    await sleep(REST_MS);
  };
};

const REST_MS = 5;

export const median = (values: readonly number[]): number => {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
};

/** The size of a run: `--quick` has less of everything. */
export type Extent = {
  readonly rounds: number;
  readonly streams: number;
  readonly collect: () => Promise<void>;
};

export type Subject = { readonly name: string; readonly sample: () => number | Promise<number> };

/** The median sample of each subject. Rounds before the first counted one only warm up. */
export const interleave = async (
  subjects: readonly Subject[],
  { warmUp, rounds }: { readonly warmUp: number; readonly rounds: number },
): Promise<ReadonlyMap<string, number>> => {
  const samples = new Map<string, number[]>(subjects.map(({ name }) => [name, []]));
  for (let round = -warmUp; round < rounds; round += 1) {
    for (const index of subjects.keys()) {
      const subject = subjects[(index + round + warmUp) % subjects.length];
      const sample = await subject?.sample();
      if (subject && sample !== undefined && round >= 0) samples.get(subject.name)?.push(sample);
    }
  }
  return new Map([...samples].map(([name, taken]) => [name, median(taken)]));
};

export type Surroundings = {
  readonly node: string;
  readonly processor: string;
  readonly cores: number;
  /** Processes that wanted a core over the last minute: above `cores`, figures get noisy. */
  readonly load: number;
};

export const surroundings = (): Surroundings => ({
  node: process.version,
  processor: cpus()[0]?.model.trim() ?? "unknown processor",
  cores: availableParallelism(),
  load: loadavg()[0] ?? 0,
});

/** Descriptors that a process needs besides those it is measured with. */
const SPARE = 64;

/** Fails before anything is measured if a process may not open this many files at once. */
export const mustAllowOpenFiles = (count: number): void => {
  const report = process.report.getReport() as {
    readonly userLimits?: { readonly open_files?: { soft: number | string } };
  };
  const limit = Number(report.userLimits?.open_files?.soft ?? Number.POSITIVE_INFINITY); // NaN: unlimited
  if (limit < count + SPARE)
    throw new Error(
      `this process may open ${limit} files, and the run needs ${count + SPARE}: raise it (ulimit -n ${2 * count}) and run again`,
    );
};
