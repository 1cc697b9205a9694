/** The terminal: what fifty streaming forks cost on the screen, whether a long conversation is slower than a short one,
 *  whether memory grows, and how soon a key and a prompt take effect.
 *  Invariant: every figure is compared with a bare program in the same run; each subject has a process of its own.
 *  Elsewhere: the measured screens (packages/cli/test/tui/measured-screen.ts), starting the program (start.ts). */

import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { type Extent, median } from "../measure.ts";
import type { Finding } from "../table.ts";
import { measureStart } from "./start.ts";

const SCREEN = fileURLToPath(new URL("../../packages/cli/test/tui/measured-screen.ts", import.meta.url));
const FLAGS = ["--conditions=prefork-source", "--disable-warning=ExperimentalWarning"];

type Streamed = { readonly cpuMs: number; readonly keyMs: number };

const runScreen = async <T>(what: string, count: number): Promise<T> => {
  const { stdout } = await promisify(execFile)(process.execPath, [...FLAGS, SCREEN, what, String(count)]);
  return JSON.parse(stdout) as T;
};

export const measureTui = async ({ rounds }: Extent, report: (step: string) => void): Promise<readonly Finding[]> => {
  const [times, ms] = [Math.max(1, Math.round(rounds / 8)), rounds < 10 ? 1_000 : 4_000];
  report(`screens: ${times} rounds of fifty streaming forks`);
  const streamed: Record<string, Streamed[]> = { ours: [], bare: [], short: [], long: [] };
  for (let round = 0; round < times; round++)
    for (const [what, list] of Object.entries(streamed)) list.push(await runScreen<Streamed>(what, ms));
  const cpu = (what: string): number => median((streamed[what] ?? []).map(({ cpuMs }) => cpuMs));
  const key = (what: string): number => median((streamed[what] ?? []).map(({ keyMs }) => keyMs));
  const seconds = rounds < 10 ? 120 : 3_600;
  report(`memory: ${seconds} simulated seconds of fifty streaming forks`);
  const { early, late } = await runScreen<{ readonly early: number; readonly late: number }>("hour", seconds);
  const group = "terminal";
  const bare = (value: number): NonNullable<Finding["against"]> => ({
    name: "bare pi-tui program",
    amount: { value, unit: "ms" },
  });
  return [
    {
      ...{
        group,
        figure: `CPU of ${ms / 1_000} s with fifty streaming forks`,
        ours: { value: cpu("ours"), unit: "ms" },
      },
      ...{ against: bare(cpu("bare")), limit: { of: "ratio", is: "at most", value: 3 } },
    },
    {
      ...{ group, figure: "a key until the screen shows it", ours: { value: key("ours"), unit: "ms" } },
      ...{ against: bare(key("bare")), limit: { of: "ratio", is: "at most", value: 3 } },
    },
    {
      ...{ group, figure: "the same CPU after 5,000 messages", ours: { value: cpu("long"), unit: "ms" } },
      against: { name: "after 50 messages", amount: { value: cpu("short"), unit: "ms" } },
      limit: { of: "ratio", is: "at most", value: 1.5 },
    },
    {
      ...{ group, figure: "heap after an hour of streaming", ours: { value: late, unit: "MiB" } },
      against: { name: "after a quarter of it", amount: { value: early, unit: "MiB" } },
      limit: { of: "ratio", is: "at most", value: 1.2 },
    },
    ...(await measureStart({ rounds }, report)),
  ];
};
