/** A process with a session whose fork works in a worktree; it is killed while that does.
 *
 *  node isolated-process.ts <url> <folder> */

import { mergeLayers } from "@prefork/guard";
import { anthropicEngine, createSession } from "../../src/index.ts";

const [baseUrl = "", folder = ""] = process.argv.slice(2);

await using session = await createSession({
  engine: anthropicEngine({ baseUrl, credential: { kind: "api-key", value: "any" } }),
  cwd: `${folder}/work`,
  home: `${folder}/home`,
  state: `${folder}/state`,
  environment: { PATH: "/usr/bin:/bin" },
  permissions: { policy: { ...mergeLayers([]), sandbox: "off" }, mode: "bypass" },
});
process.stdout.write(`${session.id}\n`);
await session.prompt("Split it").result();
