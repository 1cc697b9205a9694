/** `npm run bench -- <name>`: does this machine meet the promised figures now?
 *  Invariant: exit code 0 if every limit is met, 1 if one is missed or could not be measured, 2 for a usage error.
 *  Elsewhere: how to read the table (README.md), the benchmarks (one folder each).
 *
 *  npm run bench -- wire guard fork proxy loop files worktree tui [--quick] [--json] */

import { parseArgs } from "node:util";
import { measureFiles } from "./files/index.ts";
import { measureFork } from "./fork/index.ts";
import { measureGuard } from "./guard/index.ts";
import { measureLoop } from "./loop/index.ts";
import { type Extent, garbageCollector, surroundings } from "./measure.ts";
import { measureProxy } from "./proxy/index.ts";
import { type Finding, figureText, judge, renderFindings } from "./table.ts";
import { measureTui } from "./tui/index.ts";
import { measureWire } from "./wire/index.ts";
import { measureWorktree } from "./worktree/index.ts";

type Benchmark = {
  readonly about: string;
  readonly measure: (extent: Extent, report: (step: string) => void) => Promise<readonly Finding[]>;
};

const benchmarks: Readonly<Record<string, Benchmark>> = {
  wire: { about: "building, sending and holding open the forks of a long parent", measure: measureWire },
  guard: { about: "judging bash commands: verdicts per second, the slowest one, start-up", measure: measureGuard },
  fork: { about: "forks through a whole session: CPU, time to the wire, memory, disk", measure: measureFork },
  proxy: { about: "forwarding between an agent and its provider: time, CPU, memory", measure: measureProxy },
  loop: { about: "a turn of a long session compared with two other libraries: CPU, memory", measure: measureLoop },
  files: { about: "how many of our files one prompt executes", measure: measureFiles },
  worktree: { about: "worktrees compared with plain git and clones: time, CPU, disk", measure: measureWorktree },
  tui: { about: "the terminal with fifty forks, after 5,000 messages, and from its start", measure: measureTui },
};

const usage = (): string =>
  [
    "npm run bench -- <name>… [--quick] [--json]",
    ...Object.entries(benchmarks).map(([name, { about }]) => `  ${name.padEnd(10)}${about}`),
    "  --quick   small counts, to see that it runs: a missed limit then does not count",
    "  --json    for machines",
  ].join("\n");

const run = async (names: readonly string[], options: { readonly quick: boolean; readonly json: boolean }) => {
  const { quick, json } = options;
  const extent = { rounds: quick ? 5 : 40, streams: quick ? 100 : 1_000, collect: garbageCollector() };
  setTimeout(giveUp, MAX_MS).unref();
  const report = (step: string): void => void process.stderr.write(`… ${step}\n`);
  const [before, started] = [surroundings(), performance.now()];
  const findings: Finding[] = [];
  for (const name of names) findings.push(...((await benchmarks[name]?.measure(extent, report)) ?? []));
  const rows = findings.map(judge);
  const missed = rows.filter(({ ok }) => ok === false).length;
  const [after, seconds] = [surroundings(), (performance.now() - started) / 1_000];
  if (json) {
    console.log(JSON.stringify({ benchmarks: names, quick, ...before, loadAfter: after.load, seconds, missed, rows }));
  } else {
    const { node, processor, cores } = before;
    console.log(renderFindings(rows, process.stdout.isTTY === true));
    console.log(`\nNode ${node}, ${cores} × ${processor}; ${seconds.toFixed(0)} s`);
    console.log(`load ${figureText(before.load)} before, ${figureText(after.load)} after`);
    console.log(missed === 0 ? "every limit is met" : `${missed} limit${missed === 1 ? "" : "s"} missed`);
    if (quick) console.log("a quick run: its counts are too small, so missed limits do not count");
  }
  return missed === 0 || quick ? 0 : 1;
};

const MAX_MS = 900_000;

/** Child processes exit with their parent. */
const giveUp = (): never => {
  console.error(`the benchmark failed: no result within ${MAX_MS / 1_000} s`);
  process.exit(1);
};

const main = async (): Promise<number> => {
  const options = { quick: { type: "boolean", default: false }, json: { type: "boolean", default: false } } as const;
  try {
    const { values, positionals } = parseArgs({ options, allowPositionals: true });
    const unknown = positionals.filter((name) => benchmarks[name] === undefined);
    if (unknown.length > 0) throw new TypeError(`no such benchmark: ${unknown.join(", ")}`);
    const names = positionals.length > 0 ? positionals : Object.keys(benchmarks);
    return await run(names, values).catch((error: Error) => {
      console.error(`the benchmark failed: ${error.message}`);
      return 1;
    });
  } catch (error) {
    console.error(`${(error as Error).message}\n${usage()}`);
    return 2;
  }
};

process.exitCode = await main();
