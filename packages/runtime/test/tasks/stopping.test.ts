/** Everything that runs in the background can be stopped by name: by its program and by its model. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { callTools, say } from "@prefork/simulator";
import { createSession, type Task } from "../../src/index.ts";
import { leftWith, processesWith } from "../fork/family-ground.ts";
import { openStage, type Stage, until } from "./fixture.ts";
import { seenIn } from "./model-view.ts";

/** A command that nobody else runs, and that only ends when it is stopped. */
const endless = (name: string): string => `sleep 600.${name}${process.pid}`;

const KINDS = {
  shell: [{ name: "Bash", input: { command: endless("1"), run_in_background: true } }],
  call: [
    { name: "Bash", input: { command: endless("2") } },
    { name: "Agent", input: { description: "helper", prompt: "helper" } },
  ],
} as const;

type Kind = keyof typeof KINDS;

/** The main agent starts it. When told to, it stops the task of that name. It says what it hears last. */
const openStarting = (kind: Kind): Promise<Stage> =>
  openStage((request) => {
    const { directive, calls, news, words } = seenIn(request);
    if (directive !== undefined) return say(`Scope: ${directive}\nResult: done`);
    if (calls.length === 0) return callTools(KINDS[kind]);
    const [, stop] = /^stop (\S+)/.exec(words.at(-1) ?? "") ?? [];
    if (stop !== undefined) return callTools([{ name: "TaskStop", input: { task_id: stop } }]);
    return say(news.length > 0 ? "heard" : "I wait.");
  });

const ofKind = (tasks: readonly Task[], kind: Kind): Task => {
  const task = tasks.find((one) => one.kind === kind);
  assert.ok(task);
  return task;
};

const forking = { otherToolsMs: 20 };

/** The result of the model's own call. */
const stoppedBy = (stage: Stage): string | undefined =>
  stage
    .asked()
    .at(-1)
    ?.seen.calls.find(({ name }) => name === "TaskStop")?.result;

/** Everything that the main agent was told about its tasks. */
const heard = (stage: Stage): readonly string[] =>
  (stage.asked().at(-1)?.seen.notifications ?? [])
    .map(({ label, status }) => `${label.replace(/toolu\w+/, "it")} ${status}`)
    .toSorted();

test("a program stops a background shell at once, and its row says that it was aborted", async () => {
  await using stage = await openStarting("shell");
  await using session = await createSession(stage.options());
  await session.prompt("go").result();
  const { id } = ofKind(session.tasks, "shell");
  assert.equal(processesWith(endless("1")).length > 0, true);
  const { kind, state } = await session.stopTask(id);
  assert.deepEqual([kind, state], ["shell", { kind: "ended", end: "aborted" }]);
  assert.deepEqual(await leftWith(endless("1")), []);
  assert.deepEqual((await session.stopTask(id)).state, state, "a second time it does nothing");
});

test("a program stops a call that was moved to the background at once, and the conversation is told that it was aborted", async () => {
  await using stage = await openStarting("call");
  await using session = await createSession(stage.options({ forking }));
  const exchange = session.prompt("go");
  const stopped: Task[] = [];
  for await (const event of exchange)
    if (event.type === "task_backgrounded") stopped.push(await session.stopTask(event.taskId));
  assert.deepEqual(
    stopped.map(({ kind, state }) => [kind, state]),
    [["call", { kind: "ended", end: "aborted" }]],
  );
  assert.equal((await exchange.result()).end, "done");
  assert.deepEqual(heard(stage), ["Bash (it) aborted", "helper reported"]);
  assert.deepEqual(await leftWith(endless("2")), []);
});

for (const kind of ["shell", "call"] as const)
  test(`the model's TaskStop stops a ${kind} of its session`, async () => {
    await using stage = await openStarting(kind);
    await using session = await createSession(stage.options({ forking }));
    const left = session.prompt("go", { tasks: "leave" }).result();
    if (kind === "call") await until(session, ({ type }) => type === "task_ended");
    await left;
    const { id } = ofKind(session.tasks, kind);
    assert.equal((await session.prompt(`stop ${id}`).result()).end, "done");
    assert.equal(stoppedBy(stage), `${id} was ended.`);
    assert.deepEqual(ofKind(session.tasks, kind).state, { kind: "ended", end: "aborted" });
    assert.deepEqual(await leftWith(endless(kind === "shell" ? "1" : "2")), []);
  });
