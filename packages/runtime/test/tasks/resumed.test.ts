/** What an earlier life of a session left running, where nobody can simply go on with it. */

import assert from "node:assert/strict";
import { cpSync } from "node:fs";
import { test } from "node:test";
import { callTools, say } from "@prefork/wire/simulator";
import { createSession, readOnly, resumeSession, type Session, type SessionOptions } from "../../src/index.ts";
import { seenIn } from "./seen.ts";
import { openStage, type Stage, until } from "./stage.ts";

/** What a kill would leave now, for another life. */
const cutOff = ({ folder }: Stage): string => {
  const state = folder.at("cut-off");
  cpSync(folder.at("state"), state, { recursive: true, filter: (path) => !/\/lock-\d+$/.test(path) });
  return state;
};

const toldBy = async (stage: Stage, session: Session, options: SessionOptions): Promise<readonly string[]> => {
  await using again = await resumeSession(session.id, options);
  await again.prompt("and now?").result();
  const { notifications = [] } = stage.asked().at(-1)?.seen ?? {};
  return notifications.map(({ status, result }) => `${status}: ${result}`);
};

test("a fork whose tools a program had narrowed is not resumed without it: it is told as interrupted", async () => {
  await using stage = await openStage((request) => {
    const { directive, calls } = seenIn(request);
    if (directive === undefined) return say("hello");
    return calls.length === 0
      ? callTools([{ name: "Bash", input: { command: "pwd" } }], "I look where I am.")
      : { ...say("Scope: look"), hold: new Promise(() => {}) };
  });
  await using session = await createSession(stage.options());
  await session.prompt("hello").result();
  await using _fork = session.fork({ prompt: "look", filter: readOnly });
  await until(session, ({ type, agent }) => type === "call_ended" && agent !== "main");
  const options = stage.options({ state: cutOff(stage), forking: { interrupted: "resume" } });
  const told = await toldBy(stage, session, options);
  assert.equal(told.length, 1);
  assert.match(
    told[0] ?? "",
    /^interrupted: Interrupted: the session ended while this task was running\. It had made 1 turn; .*What it had said:\nI look where I am\.$/s,
  );
});

test("a slow command that the process took with it is told as one whose effect is unknown", async () => {
  await using stage = await openStage((request) => {
    const { directive, calls } = seenIn(request);
    if (directive !== undefined) return say(`Scope: ${directive}\nResult: done`);
    const slow = { name: "Bash", input: { command: "until [ -e go ]; do sleep 0.02; done" } };
    return calls.length === 0
      ? callTools([slow, { name: "Agent", input: { description: "helper", prompt: "helper" } }])
      : say("I wait.");
  });
  await using session = await createSession(stage.options({ forking: { otherToolsMs: 20 } }));
  const exchange = session.prompt("go");
  let state = "";
  for await (const event of exchange)
    if (event.type === "task_ended" && state === "") {
      state = cutOff(stage);
      stage.folder.put("work/go");
    }
  await exchange.result();
  const told = await toldBy(stage, session, stage.options({ state }));
  assert.deepEqual(told.toSorted(), [
    "interrupted: Interrupted: the session ended while this task was running. What it has done until then is unknown; look at the present state before you go on.",
    "reported: Scope: helper\nResult: done",
  ]);
});
