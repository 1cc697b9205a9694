/** The long session in a process of its own, to be killed: says each event in a line of JSON once it was emitted.
 *  Parameters: the place, the simulator's address, and, for a session that was interrupted, where it stood. */

import { writeSync } from "node:fs";
import { createSession, type RuntimeEvent, resumeSession } from "@prefork/runtime";
import { Calendar, converse, openPlace, optionsFor, SESSION_ID, type Standing, watch } from "./long-session.ts";
import { taskDoneIn } from "./scripted-model.ts";
import { GO_ON } from "./tasks.ts";

const [base = "", url = "", stood] = process.argv.slice(2);
const standing: Standing | undefined = stood === undefined ? undefined : JSON.parse(stood);
const place = openPlace(base);
const calendar = new Calendar(standing?.turn);
const options = optionsFor(place, { url, calendar, ...(standing ? { mode: standing.mode } : {}) });

const say = (event: RuntimeEvent): void => {
  if (event.level !== "debug") writeSync(1, `${JSON.stringify(event)}\n`);
};

const session = standing ? await resumeSession(SESSION_ID, options) : await createSession(options);
const watching = watch(session, { calendar, seen: say });
const done = standing ? taskDoneIn((await session.prompt(GO_ON).result()).text) : 0;
await converse(session, place, done);
await session.close();
await watching;
