/** Records the conversation: `node --conditions=prefork-source record.ts <folder>`. The recording in fixtures/ was made once,
 *  so that every later version is held against what an earlier one sent; it is not to be made anew.
 *  Elsewhere: what is said (conversation.ts). */

import { mkdirSync, mkdtempDisposableSync, writeFileSync } from "node:fs";
import { cp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startSimulator } from "@prefork/simulator";
import { FORK_BOILERPLATE_TAG } from "@prefork/wire";
import { createSession } from "../../../src/index.ts";
import { type Sent, sentTo } from "../as-sent.ts";
import { lineOf, optionsIn, PROMPT, script } from "./conversation.ts";

const [target = ""] = process.argv.slice(2);
using folder = mkdtempDisposableSync(join(tmpdir(), "prefork-recorded-"));
for (const name of ["work", "home"]) mkdirSync(join(folder.path, name));
writeFileSync(join(folder.path, "work/greeting.txt"), "hello\n");
await using simulator = await startSimulator({ keepBodies: true, script });
const session = await createSession(optionsIn(folder.path, simulator));
const { end } = await session.prompt(PROMPT, { tasks: "wait" }).result();
const tasks = session.tasks.map(({ id, session: own, state }) => ({ id, session: own, state: state.kind }));
await session.close();
const sent = sentTo(simulator);
const isFork = ({ body }: Sent): boolean => JSON.stringify(body.messages).includes(FORK_BOILERPLATE_TAG);
const main = sent.filter((request) => !isFork(request)).slice(-1);
// Each of the two forks sends two requests; the later ones hold what they read.
const forks = sent.filter(isFork).slice(-2);
const lines = { main: main.map(lineOf), forks: forks.map(lineOf) };
const isNoLock = (path: string): boolean => !path.includes("/lock-");
await cp(join(folder.path, "state"), join(target, "state"), { recursive: true, filter: isNoLock });
writeFileSync(
  join(target, "sent.json"),
  `${JSON.stringify({ session: session.id, end, tasks, lines }, undefined, 2)}\n`,
);
