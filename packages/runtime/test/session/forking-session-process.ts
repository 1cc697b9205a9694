/** The long session with forks in a process of its own, to be killed: says what happens to its main agent, and how far its
 *  forks are, in a line of JSON each.
 *  Parameters: the place, the simulator's address, and, for a session that was interrupted, its id and where it stood. */

import { writeSync } from "node:fs";
import { createSession, type RuntimeEvent, resumeSession } from "@prefork/runtime";
import { forkingOptions } from "./forking-session.ts";
import { Calendar, converse, openPlace, type Standing } from "./long-session.ts";
import { taskDoneIn } from "./scripted-model.ts";
import { GO_ON } from "./tasks.ts";

const [base = "", url = "", id, stood] = process.argv.slice(2);
const standing: Standing | undefined = stood === undefined ? undefined : JSON.parse(stood);
const place = openPlace(base);
const calendar = new Calendar(standing?.turn);
const options = forkingOptions(place, { url, calendar, ...(standing ? { mode: standing.mode } : {}) });

const say = (event: RuntimeEvent): void => {
  if (event.level === "debug") return;
  if (event.agent === "main") calendar.passed(event);
  if (event.agent === "main" || event.type === "turn_ended" || event.type === "task_ended")
    writeSync(1, `${JSON.stringify(event)}\n`);
};

const session = id === undefined ? await createSession(options) : await resumeSession(id, options);
const watching = (async () => {
  for await (const event of session.events()) say(event);
})();
const done = standing ? taskDoneIn((await session.prompt(GO_ON).result()).text) : 0;
await converse(session, place, done);
await session.close();
await watching;
