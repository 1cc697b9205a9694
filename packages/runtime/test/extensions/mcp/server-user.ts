/** A process with an open server. It prints the ids of its processes and waits to be killed. */

import { opened, stdioEntry } from "./fixture.ts";

const open = await opened((folder) => [stdioEntry(folder, "one", [])]);
process.stdout.write(`${(await open.call("one", "family")).text}\n`);
setInterval(() => {}, 1_000);
