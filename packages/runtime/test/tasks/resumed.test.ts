/** What an earlier run of a session left behind, where it cannot simply be resumed. */

import assert from "node:assert/strict";
import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { readOnly } from "@prefork/guard";
import { callTools, say } from "@prefork/simulator";
import { createSession, resumeSession, type Session, type SessionOptions } from "../../src/index.ts";
import { familyScript, openFamily, part, prompted, starts } from "../fork/family-ground.ts";
import { openStage, type Stage, until } from "./fixture.ts";
import { seenIn } from "./model-view.ts";

/** What a kill would leave now, for another run. */
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

test("a fork whose tools a program had restricted is not resumed without the program: it is reported as interrupted", async () => {
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

test("a slow command that died with the process is reported as one whose effect is unknown", async () => {
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

const PARTS = ["north", "south", "west"];
const agents = PARTS.map((part) => ({ name: "Agent", input: { description: part, prompt: part } }));
/** Long enough that nobody is sent next to a leader that has yet to write it. */
const PLAN = "I have each part looked at by a fork of mine, which reports what it found there. ".repeat(200);

for (const interrupted of ["resume", "report"] as const)
  test(`a family killed before its leader was answered writes its shared prefix once (${interrupted})`, async () => {
    const held = Promise.withResolvers<void>();
    let isHeld = true;
    await using stage = await openStage(async (request) => {
      const { directive, calls } = seenIn(request);
      if (directive === undefined) return calls.length === 0 ? callTools(agents, PLAN) : say("I wait.");
      // Before the first event: nothing of it can be read. In the next run, requests that do not wait come too early.
      await (isHeld ? held.promise : sleep(50));
      return say(`Scope: ${directive}\nResult: done`);
    });
    await using session = await createSession(stage.options());
    const exchange = session.prompt("go");
    const sent = new Set<string>();
    for await (const event of exchange) {
      if (event.type === "fork_started") sent.add(event.taskId);
      if (sent.size === PARTS.length) break;
    }
    const state = cutOff(stage);
    isHeld = false;
    const before = stage.simulator.ledger().filter(({ outcome }) => outcome === "complete");
    await using again = await resumeSession(session.id, stage.options({ state, forking: { interrupted } }));
    await again.prompt("and now?").result();
    if (interrupted === "report")
      await Promise.all(again.tasks.map(({ id }) => again.resumeTask(id, { message: "go on" })));
    const rows = stage.simulator
      .ledger()
      .filter(({ outcome }) => outcome === "complete")
      .slice(before.length);
    const [first, ...others] = rows.slice(0, PARTS.length + 1).map(({ read }) => read);
    assert.deepEqual(before.length, 1);
    assert.ok(first !== undefined && first > 0, "the parent's entry was read");
    assert.deepEqual(new Set(others).size, 1, "all others read the same");
    assert.ok((others[0] ?? 0) - first > PLAN.length / 8, "and what the first one wrote with it");
    held.resolve();
  });

test("a message that resumes a task is delivered once, even if the process dies before the task has a journal", async () => {
  const held = Promise.withResolvers<void>();
  await using stage = await openStage((request) => {
    const { directive, calls, told, notifications } = seenIn(request);
    if (directive === "hold") return { ...say("Scope: hold\nResult: held"), hold: held.promise };
    if (directive !== undefined)
      return say(`Scope: ${directive}\nResult: heard ${told.filter((text) => text.includes("and the tests")).length}`);
    if (calls.length === 0) return callTools([{ name: "Agent", input: { description: "look", prompt: "look" } }]);
    const [first] = notifications;
    if (!first) return say("I wait.");
    if (calls.length === 1) return callTools([{ name: "Agent", input: { description: "hold", prompt: "hold" } }]);
    if (calls.length === 2)
      return callTools([{ name: "SendMessage", input: { to: first.task, message: "and the tests" } }]);
    return say("I wait.");
  });
  await using session = await createSession(stage.options({ mostTasks: 1 }));
  const exchange = session.prompt("go");
  for await (const event of exchange) if (event.type === "call_ended" && event.tool === "SendMessage") break;
  const state = cutOff(stage);
  held.resolve();
  const options = stage.options({ state, mostTasks: 1, forking: { interrupted: "resume" } });
  await using again = await resumeSession(session.id, options);
  const seen: string[] = [];
  const next = again.prompt("and now?");
  for await (const event of next)
    if (event.type === "session_opened" || event.type === "fork_started") seen.push(event.type);
  await next.result();
  const look = again.tasks.find(({ label }) => label === "look");
  assert.equal(look?.result?.text, "Scope: look\nResult: heard 1");
  assert.equal(look?.mail, undefined);
  assert.deepEqual(seen, ["session_opened", "fork_started", "fork_started"], "whoever resumes it hears of its tasks");
});

test("whichever single line of a journal is lost, no task is announced twice", async () => {
  await using ground = await openFamily(
    familyScript({
      main: (seen) => {
        if (seen.words.includes("Go on")) return say("done");
        return starts([part("one"), part("two")])(seen);
      },
      fork: ({ directive }) => say(`Scope: ${directive}\nResult: done`),
    }),
  );
  const session = await ground.open();
  await prompted(session, "Split it");
  await session.close();
  const file = ground.folder.at("state/sessions", session.id, "journal.jsonl");
  const whole = readFileSync(file, "utf8");
  const lines = whole.trimEnd().split("\n");
  const twice: string[] = [];
  for (const [at, line] of lines.entries()) {
    if (at === 0 || !/task-|notice/.test(line)) continue; // nothing resumes without its first entry
    writeFileSync(file, `${lines.toSpliced(at, 1).join("\n")}\n`);
    const again = await ground.resume(session.id);
    await prompted(again, "Go on");
    await again.close();
    const body = JSON.stringify(ground.bodies().at(-1));
    const told = [...body.matchAll(/<task-id>(task-[12])<\/task-id>/g)].map(([, task]) => task);
    if (told.length > new Set(told).size) twice.push(line.slice(0, 120));
  }
  assert.deepEqual(twice, []);
});
