/** Forks one after another: a process uses no more memory after many of them than after a few. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { callTools, say, startSimulator } from "@prefork/simulator";
import { scratch } from "@prefork/testing/scratch";
import { seenIn } from "./family-ground.ts";
import type { Held } from "./forks-process.ts";

export type ForkKind = "kept" | "unkept" | "mixed";

export type ForksResult = {
  readonly kind: ForkKind;
  readonly forks: number;
  readonly ends: Readonly<Record<string, number>>;
  /** Over the second half: in the first one code is still compiled, and caches of the runtime fill. */
  readonly heapBytesPerFork: number;
  readonly handles: number;
  readonly children: number;
  readonly broken: readonly string[];
};

/** What `npm test` runs; the full counts are for the soak. */
export const FORKS_IN_TESTS = 100;
const FORKS = 1_000;

const WARM_UP = 20;

/** A fork that is kept leaves its row: what it was told, what it reported, what it took. One that leaves nothing still
 *  leaves some noise, and the more of it the fewer there are. */
const mostBytes = (kind: ForkKind, forks: number): number => (kind === "unkept" ? 1_000 : 4_000) + 2_000_000 / forks;

const PROCESS = fileURLToPath(new URL("forks-process.ts", import.meta.url));

export const forksSoak = async (kind: ForkKind, forks: number): Promise<ForksResult> => {
  using place = scratch();
  await using simulator = await startSimulator({
    script: (request) => {
      const { directive, results } = seenIn(request);
      if (directive === undefined) return say("heard");
      // Of some, a file is read, and a process is started and ends.
      const calls = [
        { name: "Read", input: { file_path: "some.txt" } },
        { name: "Bash", input: { command: "echo made > some.txt; cat some.txt" } },
      ];
      const works = results.length === 0 && directive.endsWith("0");
      return works ? callTools(calls) : say(`Scope: ${directive}\nResult: done`);
    },
  });
  place.put("work/some.txt", "made\n");
  const flags = [...process.execArgv, "--expose-gc"];
  const words = [simulator.url, place.path, kind, String(WARM_UP), String(forks)];
  const child = spawn(process.execPath, [...flags, PROCESS, ...words], { stdio: ["ignore", "pipe", "inherit"] });
  const [printed, [code]] = await Promise.all([text(child.stdout), once(child, "exit")]);
  if (code !== 0) throw new Error(`the process that forks ended with ${code}`);
  const { measured, ends } = JSON.parse(printed) as {
    readonly measured: readonly Held[];
    readonly ends: Readonly<Record<string, number>>;
  };
  return { kind, forks, ends, ...grown(measured, { kind, forks }) };
};

const grown = (
  measured: readonly Held[],
  { kind, forks }: Pick<ForksResult, "kind" | "forks">,
): Pick<ForksResult, "heapBytesPerFork" | "handles" | "children" | "broken"> => {
  const [first, , middle, , last] = measured;
  if (!first || !middle || !last) throw new Error("it was not measured to its end");
  const heapBytesPerFork = Math.round((last.heapBytes - middle.heapBytes) / (forks / 2));
  const [handles, children] = [last.handles - first.handles, last.children - first.children];
  const most = mostBytes(kind, forks);
  return {
    ...{ heapBytesPerFork, handles, children },
    broken: [
      ...(heapBytesPerFork > most ? [`each fork leaves ${heapBytesPerFork} bytes, and ${most} are allowed`] : []),
      ...(handles > 0 ? [`${handles} handles are left open`] : []),
      ...(children > 0 ? [`${children} processes are left`] : []),
    ],
  };
};

/** What `npm run soak -- forks` runs. */
export const allForksSoak = async (): Promise<readonly ForksResult[]> => [
  await forksSoak("kept", FORKS),
  await forksSoak("unkept", FORKS),
];
