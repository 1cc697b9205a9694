/** A session that forks again and again, in a process of its own that is told when to collect its garbage.
 *  node --expose-gc forks-process.ts <url> <folder> <kept|unkept|mixed> <warm-up> <forks>: prints what it holds after the
 *  warm-up and after each quarter of the forks, as JSON. The simulator is elsewhere: what it remembers is not counted. */

import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as after } from "node:timers/promises";
import { anthropicEngine, createSession } from "../../src/index.ts";
import { unasked } from "./family-ground.ts";

export type Held = { readonly heapBytes: number; readonly handles: number; readonly children: number };

const collect: unknown = Reflect.get(globalThis, "gc");

/** What is weakly held goes with one of several rounds, since callbacks run between them. */
const held = async (): Promise<Held> => {
  for (let round = 0; round < 4; round += 1) {
    if (typeof collect === "function") collect();
    await after(20);
  }
  return {
    heapBytes: process.memoryUsage().heapUsed,
    handles: readdirSync("/proc/self/fd").length,
    children: process.getActiveResourcesInfo().filter((name) => name === "ProcessWrap").length,
  };
};

const [url = "", folder = "", kind = "", warmUp = "0", forks = "0"] = process.argv.slice(2);
const work = join(folder, "work");
mkdirSync(work, { recursive: true });
await using session = await createSession({
  engine: anthropicEngine({ baseUrl: url, credential: { kind: "api-key", value: "any" } }),
  ...{ cwd: work, home: folder, state: join(folder, "state"), permissions: unasked },
  environment: { PATH: "/usr/bin:/bin" },
  forking: { mostPerSession: 1_000_000 },
});
await session.prompt("hello").result();

const ends = new Map<string, number>();
const fork = async (count: number): Promise<void> => {
  for (let at = 0; at < count; at += 1) {
    const skipTranscript = kind === "unkept" || (kind === "mixed" && at % 2 === 1);
    const outcome = await session.fork({ prompt: `part ${at}`, skipTranscript }).result();
    const end = outcome.status === "ended" ? outcome.end : outcome.status;
    ends.set(end, (ends.get(end) ?? 0) + 1);
  }
};

await fork(Number(warmUp));
const measured = [await held()];
for (let quarter = 0; quarter < 4; quarter += 1) {
  await fork(Number(forks) / 4);
  measured.push(await held());
}
console.log(JSON.stringify({ measured, ends: Object.fromEntries(ends) }));
