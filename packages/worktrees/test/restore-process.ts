/** A process that restores files and is killed at a step of that. Prints the snapshot that it took first.
 *
 *  node restore-process.ts <checkout> <private folder> <snapshot> <step> */

import { writeSync } from "node:fs";
import { FileHistory } from "../src/index.ts";

const [cwd = "", folder = "", commit = "", killedAt = ""] = process.argv.slice(2);

const history = await FileHistory.open({
  ...{ cwd, folder, session: "s1" },
  step: (name) => {
    if (name === killedAt) process.kill(process.pid, "SIGKILL");
  },
});
await history.restore(commit, (saved) => void writeSync(1, `${saved.commit}\n`));
