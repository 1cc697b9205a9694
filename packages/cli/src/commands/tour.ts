/** `prefork tour`: the real agent at work in a sample repository, and the explained bill. Needs no key and no network.
 *  Invariant: whatever ends it, the folder that it worked in is gone, unless it came to its end and is to be kept.
 *  Elsewhere: the run (../tour), what is printed of it (tour-report.ts). */

import { tmpdir } from "node:os";
import { type Command, InvalidArgumentError } from "commander";
import { type Io, isStartedByFork, newCommand, UsageError } from "../io.ts";
import { parseCount } from "../numbers.ts";
import { tourAsJson, tourAsText, tourIntroduction } from "./tour-report.ts";

type TourFlags = {
  readonly seed: number;
  readonly forks: number;
  readonly keep?: boolean;
  readonly json?: boolean;
};

const MOST_FORKS = 5;
const MOST_SEED = 0xffff_ffff;
const DEFAULT_SEED = 27;

const within =
  (least: number, most: number) =>
  (text: string): number => {
    const value = parseCount(text);
    if (value === undefined || value < least || value > most)
      throw new InvalidArgumentError(`Expected a whole number from ${least} to ${most}.`);
    return value;
  };

export const tourCommand = (io: Io): Command =>
  newCommand("tour", io)
    .description("run the agent and five forks in a sample repository, without a key, and explain the bill")
    .option("--seed <n>", "what the sample repository is made from", within(0, MOST_SEED), DEFAULT_SEED)
    .option("--forks <n>", "how many parts the job has, one fork each", within(1, MOST_FORKS), MOST_FORKS)
    .option("--keep", "leave the repository and the journals where they are, and say where that is")
    .option("--json", "print everything as one JSON object")
    .action((flags: TourFlags) => tour(flags, io));

const tour = async ({ seed, forks, keep = false, json = false }: TourFlags, io: Io): Promise<void> => {
  if (await isStartedByFork(io))
    throw new UsageError("this was started by a fork, which does its work itself and starts no agent");
  const { openLive, runTour } = await import("../tour/index.ts");
  const live = openLive(json ? { ...io, out: () => undefined } : io);
  try {
    const result = await runTour({
      ...{ seed, forks, isKept: keep, path: io.env.PATH, signal: io.signal },
      temporary: io.env.TMPDIR || tmpdir(),
      onReady: (start) => (json ? undefined : io.out(tourIntroduction(start, io.colour))),
      onEvent: live.heard,
    });
    live.clear();
    io.out(json ? tourAsJson(result) : tourAsText(result, io.colour));
    if (result.forks.some(({ task }) => task.state.kind !== "ended" || task.state.end !== "reported")) io.exitWith(1);
  } finally {
    live.clear();
  }
};
