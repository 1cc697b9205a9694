/** `prefork tour`: the real agent at work in a sample repository, and its bill explained. It needs no key and no network.
 *  Invariant: however it ends, the folder it worked in is removed, unless the tour finished and was asked to keep it.
 *  Elsewhere: the run (../tour), what is printed (tour-report.ts). */

import { tmpdir } from "node:os";
import { type Command, InvalidArgumentError } from "commander";
import { type Io, isStartedByFork, newCommand, UsageError } from "../io.ts";
import { parseCount } from "../numbers.ts";
import { progressLine } from "../progress.ts";
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

const parseNumberFrom =
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
    .option("--seed <n>", "seed of the sample repository", parseNumberFrom(0, MOST_SEED), DEFAULT_SEED)
    .option(
      "--forks <n>",
      "how many forks to start, one for each part of the job",
      parseNumberFrom(1, MOST_FORKS),
      MOST_FORKS,
    )
    .option("--keep", "keep the repository and the journals, and print where they are")
    .option("--json", "print everything as one JSON object")
    .action((flags: TourFlags) => tour(flags, io));

const tour = async ({ seed, forks, keep = false, json = false }: TourFlags, io: Io): Promise<void> => {
  if (await isStartedByFork(io))
    throw new UsageError("a fork started this command, and a fork may not start agents: it does its work itself");
  const { openLive, runTour } = await import("../tour/index.ts");
  const live = openLive(json ? { ...io, out: () => undefined } : io);
  const progress = progressLine(io);
  try {
    const result = await runTour({
      ...{ seed, forks, isKept: keep, path: io.env.PATH, signal: io.signal },
      temporary: io.env.TMPDIR || tmpdir(),
      onReady: (start) => (json ? undefined : io.out(tourIntroduction(start, io.colour))),
      onEvent: live.show,
      onComparing: () => {
        live.clear();
        if (!json) progress.show("Running the same work in two other ways, to compare …");
      },
    });
    progress.clear();
    io.out(json ? tourAsJson(result) : tourAsText(result, io.colour));
    if (result.forks.some(({ task }) => task.state.kind !== "ended" || task.state.end !== "reported")) io.exitWith(1);
  } finally {
    progress.clear();
    live.clear();
  }
};
