/** How many commands are judged per second on one core, and how long does the slowest take?
 *  Invariant: every counted verdict is correct; a fast wrong answer fails the run. */

import { classify } from "@prefork/guard";
import { cpuPerUnit, type Extent, interleave } from "../measure.ts";
import type { Finding } from "../table.ts";
import type { Corpora } from "./corpora.ts";

const GROUP = "bash verdicts";
const MIN_PER_SECOND = 20_000;
const LONGEST_MS = 50;

const countReadOnly = (commands: readonly string[]): number =>
  commands.reduce((sum, command) => sum + Number(classify(command).verdict === "read-only"), 0);

const sampleOf = (commands: readonly string[], wanted: number) => (): number =>
  cpuPerUnit(commands.length, () => {
    const found = countReadOnly(commands);
    if (found !== wanted) throw new Error(`${found} of ${commands.length} were judged read-only, not ${wanted}`);
  });

/** The best of three, so that a garbage collection pause does not count as judging. */
const shortestMs = (command: string): number =>
  Math.min(
    ...[1, 2, 3].map(() => {
      const before = performance.now();
      classify(command);
      return performance.now() - before;
    }),
  );

const worst = (commands: readonly string[]): Finding => {
  const [slowest] = commands
    .map((command) => ({ ms: shortestMs(command), length: command.length }))
    .sort((one, other) => other.ms - one.ms);
  return {
    group: GROUP,
    figure: `the slowest verdict (${(slowest?.length ?? 0).toLocaleString("en-US")} characters)`,
    ours: { value: slowest?.ms ?? Number.NaN, unit: "ms" },
    limit: { of: "ours", is: "at most", value: LONGEST_MS },
  };
};

export const measureVerdicts = async ({ everyday, hostile }: Corpora, extent: Extent): Promise<readonly Finding[]> => {
  const both = [...everyday, ...hostile];
  const micros = await interleave(
    [
      { name: "both", sample: sampleOf(both, everyday.length) },
      { name: "everyday", sample: sampleOf(everyday, everyday.length) },
      { name: "hostile", sample: sampleOf(hostile, 0) },
    ],
    { warmUp: 5, rounds: extent.rounds },
  );
  const perSecond = (name: string): Finding["ours"] => ({
    value: 1_000_000 / (micros.get(name) ?? Number.NaN),
    unit: "verdicts/s",
  });
  const count = (commands: readonly string[]): string => commands.length.toLocaleString("en-US");
  return [
    {
      group: GROUP,
      figure: `both corpora (${count(both)} commands)`,
      ours: perSecond("both"),
      limit: { of: "ours", is: "at least", value: MIN_PER_SECOND },
    },
    { group: GROUP, figure: `everyday (${count(everyday)})`, ours: perSecond("everyday") },
    { group: GROUP, figure: `hostile (${count(hostile)})`, ours: perSecond("hostile") },
    worst(both),
  ];
};
