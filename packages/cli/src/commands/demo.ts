/** `prefork demo`: a parent and its forks against the simulator, with the bill. It needs no key and no network.
 *  Elsewhere: the run (../demo/run.ts), what it prints (../demo/report.ts). */

import { DEFAULT_MODEL, type InFlight, modelFacts } from "@prefork/wire";
import { type Command, InvalidArgumentError, Option } from "commander";
import { type Io, newCommand, UsageError } from "../io.ts";
import { parseCount } from "../numbers.ts";
import { progressLine } from "../progress.ts";

type DemoFlags = {
  readonly forks: number;
  readonly cold?: boolean;
  readonly inFlight: InFlight;
  readonly lookback: "runs" | "singly";
  readonly model: string;
  readonly json?: boolean;
};

const MOST_FORKS = 1_000;

const parseForkCount = (text: string): number => {
  const value = parseCount(text);
  if (value === undefined || value < 1 || value > MOST_FORKS) {
    throw new InvalidArgumentError(`Expected a whole number from 1 to ${MOST_FORKS}.`);
  }
  return value;
};

export const demoCommand = (io: Io): Command =>
  newCommand("demo", io)
    .description("run a parent and its forks against the simulator, and show what each request read, wrote and cost")
    .option("--forks <n>", "number of forks", parseForkCount, 5)
    .option("--cold", "let the parent's cache entries expire first")
    .addOption(
      new Option("--in-flight <way>", "what forks see of the parent's unfinished turn")
        .choices(["keep", "trim"])
        .default("keep"),
    )
    .addOption(
      new Option("--lookback <way>", "how the provider's look-back counts tool blocks")
        .choices(["runs", "singly"])
        .default("runs"),
    )
    .option("--model <id>", "model whose rules and prices apply", DEFAULT_MODEL)
    .option("--json", "print one JSON object")
    .action(async ({ forks, cold = false, inFlight, lookback, model, json = false }: DemoFlags) => {
      if (!modelFacts(model)) throw new UsageError(`option '--model': the prices of "${model}" are unknown`);
      const { demoAsJson, demoAsText, runDemo } = await import("../demo/index.ts");
      const progress = progressLine(io);
      try {
        const result = await runDemo({
          ...{ forks, cold, inFlight, lookback, model },
          signal: io.signal,
          onProgress: progress.show,
        });
        progress.clear();
        io.out(json ? demoAsJson(result) : demoAsText(result, io.colour));
      } finally {
        progress.clear();
      }
    });
