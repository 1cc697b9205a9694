/** Several clients of one session: which events each gets, which may prompt, and whose answer counts. */

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { test } from "node:test";
import { callTools, say } from "@prefork/simulator";
import type { RuntimeEvent, SessionControl } from "../../src/index.ts";
import { gate, openGround, unasked } from "./fault-ground.ts";

const ASKING = { ...unasked, mode: "default" as const };

test("the first answer to a question counts, whichever client gives it, and all clients get the event", async () => {
  await using ground = await openGround({ run: callTools([{ name: "Bash", input: { command: "touch made" } }]) });
  await using session = await ground.open({ permissions: { ...ASKING, ask: "attached" } });
  const [one, other] = [session.control(), session.control()];
  const answers: (readonly [string, boolean])[] = [];
  const heard = async (control: SessionControl, name: string): Promise<readonly string[]> => {
    const types: string[] = [];
    for await (const event of control.subscribe()) {
      if (event.type === "question_opened") {
        types.push(`${event.tool} ${event.reason}`);
        if (name === "other") answers.push([name, await control.answer(event.questionId, { kind: "allow" })]);
      }
      if (event.type === "question_closed") {
        types.push("closed");
        answers.push([`${name} later`, await control.answer(event.questionId, { kind: "deny" })]);
      }
      if (event.type === "exchange_ended") break;
    }
    return types;
  };
  const hearing = [heard(one, "one"), heard(other, "other")];
  const { text } = await one.prompt("run");
  const types = ["Bash not provably read-only: touch changes files or processes", "closed"];
  assert.deepEqual(await Promise.all(hearing), [types, types]);
  assert.deepEqual(Object.fromEntries(answers), { other: true, "one later": false, "other later": false });
  assert.match(text, /^saw /);
  assert.equal(existsSync(`${ground.work}/made`), true);
});

test("a question to a person can be answered by any client, and is then withdrawn from the person", async () => {
  await using ground = await openGround({ run: callTools([{ name: "Bash", input: { command: "touch made" } }]) });
  const takenBack = gate();
  await using session = await ground.open({
    permissions: {
      ...ASKING,
      ask: (_question, signal) =>
        new Promise((resolve) =>
          signal.addEventListener("abort", () => {
            takenBack.open();
            resolve({ kind: "deny" });
          }),
        ),
    },
  });
  const control = session.control();
  for await (const event of session.prompt("run"))
    if (event.type === "question_opened") {
      assert.deepEqual(
        control.questions().map(({ id, tool }) => [id, tool]),
        [[event.questionId, "Bash"]],
      );
      assert.equal(control.answer(event.questionId, { kind: "allow" }), true);
    }
  await takenBack.passed;
  assert.deepEqual(control.questions(), []);
  assert.equal(existsSync(`${ground.work}/made`), true);
});

test("only one client prompts at a time; others may steer and stop the running exchange", async () => {
  const [first, second] = [gate(), gate()];
  await using ground = await openGround({
    work: () => first.passed.then(() => callTools([{ name: "Glob", input: { pattern: "*" } }])),
    "Message of the user": () => second.passed.then(() => say("never said")),
  });
  await using session = await ground.open();
  const [one, other] = [session.control(), session.control()];
  await assert.rejects(other.steer("hello"), {
    name: "InputError",
    message: /^nothing is running that could be steered/,
  });
  const prompted = one.prompt("work");
  await assert.rejects(other.prompt("mine"), { name: "InputError", message: /^an exchange is running/ });
  await other.steer("look at <note>that</note> too");
  first.open();
  const told = Promise.withResolvers<void>();
  using reader = other.subscribe(1);
  for await (const event of reader)
    if (event.type === "notification_entered") {
      told.resolve();
      break;
    }
  await told.promise;
  while (ground.simulator.requests().length < 2) await new Promise((resolve) => setImmediate(resolve));
  await other.stop();
  second.open();
  assert.deepEqual(
    { ...(await prompted), usage: 0, usd: 0 },
    {
      ...{ end: "aborted", reason: "interrupted", text: "", turns: 2, usage: 0, usd: 0 },
    },
  );
  const body = ground.simulator.requests()[1]?.body.toString("utf8") ?? "";
  assert.match(body, /Message of the user, sent while you work:\\nlook at &lt;note>that&lt;\/note> too/);
  assert.equal((await other.prompt("next")).text, "heard next");
});

test("a client that attaches later gets the kept events from a seq on, then live ones", async () => {
  await using ground = await openGround();
  await using session = await ground.open();
  const control = session.control();
  const all = control.subscribe(0);
  assert.equal(all.keptFrom, 1);
  await control.prompt("one");
  const seen: RuntimeEvent[] = [];
  for await (const event of all) {
    if (event.level !== "debug") seen.push(event);
    if (event.type === "exchange_ended") break;
  }
  const middle = seen[3]?.seq ?? 0;
  using late = session.control().subscribe(middle);
  await control.prompt("two");
  const replayed: RuntimeEvent[] = [];
  for await (const event of late) {
    replayed.push(event);
    if (event.type === "exchange_ended" && event.seq > (seen.at(-1)?.seq ?? 0)) break;
  }
  assert.deepEqual(replayed.slice(0, seen.length - 3), seen.slice(3));
  assert.deepEqual(
    replayed.map(({ seq }) => seq),
    replayed.map(({ seq }) => seq).toSorted((a, b) => a - b),
  );
  using live = control.subscribe();
  await session.close();
  assert.deepEqual(await live.next(), { value: undefined, done: true });
});

test("any client can steer a task, move it to the background and stop it", async () => {
  const held = gate();
  await using ground = await openGround((request) =>
    JSON.stringify(request.body.messages).includes("fork-directive")
      ? held.passed.then(() => say("late"))
      : say("begun"),
  );
  await using session = await ground.open();
  const control = session.control();
  await control.prompt("begin");
  const fork = session.fork({ prompt: "part" });
  while (ground.simulator.requests().length < 2) await new Promise((resolve) => setImmediate(resolve));
  await control.steer("and this", fork.id);
  control.background(fork.id);
  await control.stop(fork.id);
  held.open();
  const [task] = session.tasks;
  assert.equal(task?.state.kind === "ended" && task.state.end, "aborted");
  await assert.rejects(control.steer("hello", "task-none"), {
    name: "InputError",
    message: "There is no task task-none.",
  });
});
