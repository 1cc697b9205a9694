/** A process that calls a server which dies, and then calls it again with nothing else to do. */

import { opened, stdioEntry } from "./fixture.ts";
import { described } from "./fixture-tools.ts";

await using open = await opened((folder) => [stdioEntry(folder, "one", [described("echo")])], {
  clock: { now: Date.now },
});
process.stdout.write(`${(await open.call("one", "die", { code: 3 })).text}\n`);
await open.call("one", "echo");
process.stdout.write("the next call was answered\n");
