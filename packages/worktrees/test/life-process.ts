/** Runs the life of life.ts in a repository, and kills itself at one of its steps.
 *  Arguments: the folder of the ground, the step to stop at (0: none). Prints the number of steps. */

import { join } from "node:path";
import { Worktrees } from "../src/index.ts";
import { filesIn } from "./ground.ts";
import { begin, goOn, note } from "./life.ts";

const [folder = "", last = "0"] = process.argv.slice(2);
const [cwd, state, home] = ["repo", "state", "home"].map((name) => join(folder, name)) as [string, string, string];
const names: string[] = [];
const step = (name: string): void => {
  names.push(name);
  if (names.length === Number(last)) process.kill(process.pid, "SIGKILL");
};
const done = note(join(folder, "notes"));
const worktrees = await Worktrees.open({ cwd, state, step, environment: { HOME: home } });
done("opened");
const life = { worktrees, checkout: filesIn(cwd, home), home, done };
await begin(life);
await goOn(life);
console.log(JSON.stringify(names));
