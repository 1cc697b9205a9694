/** Performs one action on a ground's worktrees once the file `go` exists, in parallel with other processes, and prints
 *  the result.
 *  Arguments: the folder of the ground, what to do, the tasks. */

import { existsSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Worktrees } from "../src/index.ts";

const [folder = "", what = "", ...tasks] = process.argv.slice(2);
const [cwd, state, HOME] = ["repo", "state", "home"].map((name) => join(folder, name)) as [string, string, string];
const worktrees = await Worktrees.open({ cwd, state, environment: { HOME } });
const snapshot = await worktrees.snapshot();
console.log("ready");
while (!existsSync(join(folder, "go"))) await sleep(1);
const kinds =
  what === "create"
    ? await Promise.all(tasks.map(async (task) => (await worktrees.create({ task, label: "", snapshot })).branch))
    : (what === "merge" ? await worktrees.merge(tasks) : await worktrees.prune()).map(({ kind }) => kind);
console.log(JSON.stringify(kinds));
