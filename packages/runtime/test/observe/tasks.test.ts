/** Tasks as others see them: while they run, when their process is gone, and when they have ended. */

import assert from "node:assert/strict";
import { cpSync } from "node:fs";
import { test } from "node:test";
import { callTools, say, toolResults } from "@prefork/simulator";
import type { Answer } from "../../src/index.ts";
import { listTasks, resolveSession, showTask, type TaskRow } from "../../src/observe/index.ts";
import { readSession } from "../../src/observe.ts";
import { directiveIn, forking, openForking, openGround, prompted } from "./fixture.ts";

const shown = ({ task, state, isOrphan, turns, owner }: TaskRow) => ({
  label: task.label,
  state,
  isOrphan,
  turns,
  pid: owner?.pid,
});

test("a running task is listed with what it has spent so far and the process that runs it, an ended one only on request", async () => {
  const held = Promise.withResolvers<void>();
  const script = forking(["schema", "service"]);
  await using ground = await openForking(2, {
    script: async (request) => {
      if (directiveIn(request) === "service" && toolResults(request).some(({ text }) => text.includes("content of")))
        await held.promise;
      return script(request);
    },
  });
  await using session = await ground.open();
  const seen = Promise.withResolvers<readonly (readonly TaskRow[])[]>();
  const running = prompted(session, "Look at every part.", (event) => {
    if (event.type !== "task_ended") return;
    Promise.all([listTasks(ground.store), listTasks(ground.store, { ended: true })]).then(seen.resolve, seen.reject);
  });
  const [open, all] = await seen.promise;
  const { pid } = process;
  const runs = { label: "look at service", state: "running", isOrphan: false, turns: 1, pid };
  assert.deepEqual(open?.map(shown), [runs]);
  assert.deepEqual(
    all?.map(shown).toSorted((a, b) => (a.label < b.label ? -1 : 1)),
    [{ label: "look at schema", state: "reported", isOrphan: false, turns: 2, pid }, runs],
  );
  held.resolve();
  await running;
  assert.deepEqual(await listTasks(ground.store), []);
});

test("a task that waits for an answer is waiting, not done", async () => {
  await using ground = await openGround({
    script: (request) => {
      if (directiveIn(request) !== undefined)
        return toolResults(request).some(({ text }) => text.includes("Not allowed"))
          ? say("Scope: x\nResult: not allowed")
          : callTools([{ name: "Bash", input: { command: "touch made" } }]);
      return forking(["x"])(request);
    },
  });
  const seen: (readonly TaskRow[])[] = [];
  const ask = async (): Promise<Answer> => {
    seen.push(await listTasks(ground.store));
    return { kind: "deny" };
  };
  await using session = await ground.open({ permissions: { ask } });
  await prompted(session, "Look at every part.");
  assert.deepEqual(
    seen.map((rows) => rows.map(({ state, task }) => [state, task.state.kind])),
    [[["waiting for permission", "waiting"]]],
  );
});

test("a task whose process is gone is interrupted, whatever its journal says last", async () => {
  const script = forking(["schema"]);
  await using ground = await openForking(1, {
    script: (request) => (directiveIn(request) ? new Promise<never>(() => {}) : script(request)),
  });
  await using session = await ground.open();
  const exchange = session.prompt("Look at every part.");
  const sessions = ground.folder.at(".state", "sessions");
  // What a kill leaves: journals as they are, and nobody who holds their locks.
  for await (const event of exchange)
    if (event.type === "fork_started") {
      cpSync(sessions, ground.folder.at("left", "sessions"), {
        recursive: true,
        filter: (path) => !/lock-/.test(path),
      });
      exchange.abort();
    }
  await exchange.result();
  const store = { ...ground.store, state: ground.folder.at("left") };
  assert.deepEqual((await listTasks(store)).map(shown), [
    { label: "look at schema", state: "interrupted (owner gone)", isOrphan: true, turns: 0, pid: undefined },
  ]);
});

test("one task is shown by its id or the start of it, with its directive, its report and its requests", async () => {
  await using ground = await openForking(2);
  await using session = await ground.open();
  await prompted(session, "Look at every part.");
  const [first, second] = session.tasks;
  const cwd = ground.folder.path;
  assert.ok(first && second);
  const short = first.id.replace(/^task-/, "");
  const { directive, task, rows, state, session: owner, usage } = await showTask(ground.store, short, { cwd });
  assert.deepEqual(
    { directive, state, owner, result: task.result?.text, usage },
    {
      directive: "schema",
      state: "reported",
      owner: session.id,
      result: "Scope: schema\nResult: content of schema",
      usage: first.result?.usage,
    },
  );
  assert.deepEqual(
    rows.map(({ agent, session: journal, turn }) => [agent, journal, turn]),
    [
      [first.id, first.session, 1],
      [first.id, first.session, 2],
    ],
  );
  const { replayed } = await readSession(ground.store, first.session ?? "");
  assert.deepEqual(replayed.usage, usage);
  await assert.rejects(showTask(ground.store, "task-", { cwd }), {
    message: `2 tasks begin with task-: ${first.id}, ${second.id}`,
  });
  await assert.rejects(showTask(ground.store, "nope", { cwd }), { message: "there is no task nope" });
});

test("a session is found by the start of its id, or as the last one of the folder", async () => {
  await using ground = await openGround({ script: () => say("heard") });
  const cwd = ground.folder.path;
  await assert.rejects(resolveSession(ground.store, undefined, cwd), { message: `there is no session of ${cwd}` });
  await using session = await ground.open();
  assert.deepEqual(
    await Promise.all(
      [undefined, "latest", session.id.slice(0, 6)].map((given) => resolveSession(ground.store, given, cwd)),
    ),
    [session.id, session.id, session.id],
  );
});
