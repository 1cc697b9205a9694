/** Many reading calls at the same time: memory, processes and file descriptors stay bounded. */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { Slots } from "../../src/tools/slots.ts";
import { bench } from "./tool-bench.ts";

test("a program that cannot start for lack of file descriptors is a failed call, and not the end of the process", () => {
  const source = (path: string): string => new URL(`../../../${path}`, import.meta.url).href;
  const program = `
    import { closeSync, openSync } from "node:fs";
    import { runProgram } from "${source("runtime/src/tools/run-program.ts")}";
    import { runCheck } from "${source("worktrees/src/check.ts")}";
    const { signal } = new AbortController();
    const held = [];
    try { for (;;) held.push(openSync("/dev/null", "r")); } catch {}
    const search = runProgram({ argv: ["/bin/true"], cwd: "/", output: () => true }, { signal });
    const check = runCheck("true", { cwd: "/", environment: {} });
    const ended = await Promise.all([search.catch(({ code }) => code), check]);
    for (const descriptor of held) closeSync(descriptor);
    console.log(JSON.stringify(ended));`;
  const node = [process.execPath, ...process.execArgv.filter((word) => word.startsWith("--conditions"))];
  const argv = ["-c", 'ulimit -n 64; exec "$@"', "bash", ...node, "--input-type=module", "-e", program];
  const { stdout } = spawnSync("/bin/bash", argv, { encoding: "utf8" });
  assert.deepEqual(JSON.parse(stdout), ["EMFILE", { ok: false, output: "spawn /bin/bash EMFILE" }]);
});

test("no more calls run at the same time than there are slots, and an abort ends the wait for one", async () => {
  const slots = new Slots(2);
  const { signal } = new AbortController();
  let [inside, most] = [0, 0];
  const work = async (): Promise<void> => {
    using _ = await slots.enter(signal);
    inside += 1;
    most = Math.max(most, inside);
    await turn();
    inside -= 1;
  };
  await Promise.all(Array.from({ length: 9 }, work));
  assert.deepEqual([most, inside], [2, 0]);
  using first = await slots.enter(signal);
  using _second = await slots.enter(signal);
  const stop = new AbortController();
  const waiting = slots.enter(stop.signal);
  const next = slots.enter(signal);
  stop.abort(new Error("stopped"));
  await assert.rejects(waiting, /stopped/);
  first[Symbol.dispose]();
  first[Symbol.dispose](); // frees one slot only
  using _third = await next;
  const another = new AbortController();
  const late = slots.enter(another.signal);
  another.abort(new Error("still full"));
  await assert.rejects(late, /still full/);
});

test("any number of reads and searches at once are answered", async () => {
  await using place = await bench();
  place.put("a.txt", "one\ntwo\n");
  const calls = Array.from({ length: 40 }, (_, at) =>
    at % 2 === 0
      ? place.call("Read", { file_path: "a.txt" })
      : place.call("Grep", { pattern: "two", path: "a.txt", output_mode: "content" }),
  );
  const texts = (await Promise.all(calls)).map(({ content }) => content);
  assert.deepEqual([...new Set(texts)].length, 2);
  assert.equal(texts.length, 40);
});
