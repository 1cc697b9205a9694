/** What does a fresh process pay before its first verdict? It loads the runtime and its parser, and judges once.
 *  Elsewhere: the process (first-verdict.ts). */

import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { type Extent, interleave } from "../measure.ts";
import type { Finding } from "../table.ts";

const SCRIPT = fileURLToPath(new URL("./first-verdict.ts", import.meta.url));

const wallMs = (parameters: readonly string[]) => (): number => {
  const before = performance.now();
  const { status, stderr } = spawnSync(process.execPath, [...process.execArgv, ...parameters], { encoding: "utf8" });
  if (status !== 0) throw new Error(`a fresh process failed: ${stderr}`);
  return performance.now() - before;
};

export const measureStartUp = async (extent: Extent): Promise<readonly Finding[]> => {
  const ms = await interleave(
    [
      { name: "first verdict", sample: wallMs([SCRIPT]) },
      { name: "bare node", sample: wallMs(["-e", "0"]) },
    ],
    { warmUp: 1, rounds: Math.max(5, extent.rounds >> 1) },
  );
  return [
    {
      group: "start-up",
      figure: "a process up to its first verdict",
      ours: { value: ms.get("first verdict") ?? Number.NaN, unit: "ms" },
      against: { name: "bare node", amount: { value: ms.get("bare node") ?? Number.NaN, unit: "ms" } },
    },
  ];
};
