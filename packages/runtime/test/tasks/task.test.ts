import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { ephemeralJournal } from "../../src/journal/index.ts";
import type { TaskResult } from "../../src/ports.ts";
import {
  applyStep,
  describeState,
  Inbox,
  isEnded,
  parseTask,
  TASK_ENDS,
  type Task,
  type TaskStep,
  TaskTable,
  tasksIn,
} from "../../src/tasks/index.ts";

const queued: Task = {
  id: "task-1",
  kind: "fork",
  label: "write the tests",
  agentType: "fork",
  querySource: "agent:builtin:fork",
  family: "family-1",
  state: { kind: "queued" },
  startedAt: 1_000,
};

const result: TaskResult = {
  summary: "done",
  text: "Scope: tests",
  usage: { plain: 1, read: 2, written: {}, output: 3 },
  usd: 0.01,
  turns: 2,
  toolUses: 4,
  ms: 50,
};

const ended = (end: (typeof TASK_ENDS)[number]): TaskStep => ({ type: "ended", end, result, at: 2_000 });

const after = (...steps: readonly TaskStep[]): Task | undefined =>
  steps.reduce<Task | undefined>((task, step) => task && applyStep(task, step), queued);

test("a task is queued, runs, waits, runs again and ends once", () => {
  const waiting = after({ type: "started" }, { type: "waits", reason: "permission" });
  assert.deepEqual(waiting?.state, { kind: "waiting", reason: "permission" });
  assert.equal(waiting && isEnded(waiting), false);
  assert.equal(waiting && describeState(waiting), "waiting for permission");
  const done = after({ type: "started" }, { type: "waits", reason: "join" }, { type: "resumed" }, ended("reported"));
  const spent = { usage: result.usage, usd: result.usd };
  assert.deepEqual(done, { ...queued, state: { kind: "ended", end: "reported" }, endedAt: 2_000, result, spent });
});

test("only resuming can follow an end, and a resumed task forgets its result but not what it cost", () => {
  const done = after({ type: "started" }, ended("failed"));
  assert.ok(done);
  for (const step of [
    { type: "started" },
    { type: "resumed" },
    { type: "waits", reason: "join" },
    ended("aborted"),
  ] as const)
    assert.equal(applyStep(done, step), undefined, step.type);
  const spent = { usage: result.usage, usd: result.usd };
  assert.deepEqual(applyStep(done, { type: "woken" }), { ...queued, spent });
  const again = after({ type: "started" }, ended("failed"), { type: "woken" }, { type: "started" }, ended("reported"));
  assert.deepEqual(again?.spent, { usage: { plain: 2, read: 4, written: {}, output: 6 }, usd: 0.02 });
});

test("messages for a task wait with it until it starts; an ended task accepts none", () => {
  const mail = { id: "mail-1", message: "also the edges" };
  assert.deepEqual(after({ type: "mailed", mail }), { ...queued, mail: [mail] });
  assert.equal(after({ type: "mailed", mail }, { type: "started" })?.mail, undefined);
  assert.deepEqual(after({ type: "started" }, { type: "mailed", mail })?.mail, [mail]);
  assert.equal(after({ type: "started" }, ended("reported"), { type: "mailed", mail }), undefined);
  assert.deepEqual(after({ type: "started" }, ended("reported"), { type: "woken", mail })?.mail, [mail]);
});

test("whatever steps are tried, an end is final until the task is resumed, and every state survives JSON", () => {
  const step: fc.Arbitrary<TaskStep> = fc.oneof(
    fc.constant<TaskStep>({ type: "started" }),
    fc.constant<TaskStep>({ type: "resumed" }),
    fc.constant<TaskStep>({ type: "woken" }),
    fc.constantFrom("permission" as const, "join" as const).map((reason): TaskStep => ({ type: "waits", reason })),
    fc.constantFrom(...TASK_ENDS).map(ended),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
      let task = queued;
      for (const one of steps) {
        const next = applyStep(task, one);
        if (next === undefined) continue;
        if (isEnded(task)) assert.equal(one.type, "woken");
        assert.equal(next.state.kind === "ended", next.result !== undefined);
        assert.deepEqual(parseTask(JSON.parse(JSON.stringify(next))), next);
        task = next;
      }
    }),
  );
});

test("a value that is not a task is not parsed as one", () => {
  for (const value of [undefined, null, 1, "task", [], {}, { id: "x" }]) assert.equal(parseTask(value), undefined);
});

test("a task in an unknown state is not parsed as one", () => {
  const { state: _state, ...stateless } = queued;
  const states = [null, "running", {}, { kind: "asleep" }, { kind: "waiting", reason: "tea" }, { kind: "ended" }];
  for (const state of states) assert.equal(parseTask({ ...stateless, state }), undefined, JSON.stringify(state));
});

test("ends keep their names, because journals of earlier versions contain them", () => {
  const names = ["reported", "failed", "aborted", "timed-out", "out-of-turns", "over-budget", "interrupted"];
  assert.deepEqual(TASK_ENDS, names);
});

test("tasks are read from their own slots of a journal's state, and from no others", () => {
  const value = JSON.parse(JSON.stringify(queued));
  const state = new Map([
    ["task:task-1", value],
    ["note:task-1", value],
    ["task:task-2", null],
  ]);
  assert.deepEqual(tasksIn(state), [queued]);
});

test("a table shows each state in words", () => {
  const words = (...steps: readonly TaskStep[]) => describeState(after(...steps) ?? queued);
  const shown = [
    words(),
    words({ type: "started" }),
    words({ type: "started" }, { type: "waits", reason: "permission" }),
    words({ type: "started" }, { type: "waits", reason: "join" }),
    words({ type: "started" }, ended("timed-out")),
  ];
  assert.deepEqual(shown, ["queued", "running", "waiting for permission", "waiting for others", "timed-out"]);
});

test("a family has ended once each of its tasks has, and no longer when one of them is resumed", async () => {
  await using journal = await ephemeralJournal("session-1");
  const table = new TaskTable({ journal, inbox: new Inbox(journal), newNoticeId: () => "notice-1", state: new Map() });
  const isOver: boolean[] = [];
  const step = (id: string, taken: TaskStep): void => {
    assert.equal(table.step(id, taken, { notify: false }), true);
    isOver.push(table.hasFamilyEnded("family-1"));
  };
  table.add(queued);
  table.add({ ...queued, id: "task-2" });
  step("task-1", { type: "started" });
  step("task-2", { type: "started" });
  step("task-1", ended("reported"));
  step("task-2", ended("failed"));
  step("task-2", { type: "woken" });
  step("task-2", ended("reported"));
  assert.deepEqual(isOver, [false, false, false, true, false, true]);
  assert.equal(table.hasFamilyEnded("nobody's"), true);
});
