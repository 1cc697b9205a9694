/** Many reading calls at the same time: memory, processes and file descriptors stay bounded. */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";

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
