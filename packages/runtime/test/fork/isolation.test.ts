/** Siblings and their parent are isolated: each has its own knowledge, files, processes and permissions, and an abort only
 *  goes downwards. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { setTimeout as after } from "node:timers/promises";
import { callTools, type SimAnswer, type Simulator, say, type ToolCall } from "@prefork/simulator";
import type { Answer, Question } from "../../src/index.ts";
import {
  endsOf,
  familyScript,
  gate,
  leftWith,
  openFamily,
  part,
  processesWith,
  prompted,
  type Seen,
  starts,
  unasked,
} from "./family-ground.ts";

const report = ({ directive }: { readonly directive: string }): SimAnswer => say(`Scope: ${directive}\nResult: done`);

const CLOSED = "Not available in a fork: do this part of the work yourself, and report when it is done.";

const textsOf = (results: Seen["results"]): readonly string[] =>
  results.map(({ text, isError }) => `${isError ? "! " : ""}${text}`);

// --- what was read -----------------------------------------------------------------------------------------------------

const read = (file_path: string): ToolCall => ({ name: "Read", input: { file_path } });
const edit = (file_path: string, old_string: string, new_string: string): ToolCall => ({
  name: "Edit",
  input: { file_path, old_string, new_string },
});

test("siblings that read and edit the same files each have their own read state", async () => {
  const [bothRead, firstEnded] = [gate(), gate()];
  let readers = 0;
  const got = new Map<string, readonly string[]>();
  const at = (name: string): string => ground.folder.at("work", `${name}.txt`);
  const calls = (): Readonly<Record<string, readonly (readonly ToolCall[])[]>> => ({
    // It changes what both have seen, then what it alone has.
    first: [
      [read(at("shared")), read(at("own"))],
      [edit(at("shared"), "old", "of the first")],
      [edit(at("own"), "old", "new")],
    ],
    // What it saw is stale, what its sibling saw it has not seen; what its parent saw it knows.
    second: [
      [read(at("shared"))],
      [edit(at("shared"), "old", "mine"), edit(at("own"), "old", "mine"), edit(at("parents"), "old", "of the second")],
      [read(at("shared"))],
      [edit(at("shared"), "of the first", "of both")],
    ],
  });
  await using ground = await openFamily(
    familyScript({
      main: (seen) => {
        if (seen.words.includes("Look first")) return callTools([read(at("parents")), read(at("shared"))]);
        if (seen.words.includes("Change it"))
          return callTools([edit(at("shared"), "of both", "mine"), edit(at("parents"), "of the second", "mine")]);
        if (seen.results.length > 0 && !seen.words.includes("async_launched")) {
          got.set("parent", textsOf(seen.results));
          return say("heard");
        }
        return starts([part("first"), part("second")])(seen);
      },
      fork: async ({ directive, answers, results }) => {
        if (answers > 0) got.set(`${directive} ${answers}`, textsOf(results));
        if (answers === 1) {
          readers += 1;
          if (readers === 2) bothRead.open();
          await bothRead.passed;
        }
        // Until then what it edits is its own to write.
        if (directive === "second" && answers === 1) await firstEnded.passed;
        const next = calls()[directive]?.[answers];
        return next ? callTools(next) : report({ directive });
      },
    }),
  );
  for (const name of ["shared", "own", "parents"]) ground.folder.put(`work/${name}.txt`, `${name}: old\n`);
  await using session = await ground.open();
  await prompted(session, "Look first");
  await prompted(session, "Fork now", ({ type }) => {
    if (type === "task_ended") firstEnded.open();
  });
  assert.deepEqual(endsOf(session), { first: "reported", second: "reported" });
  await prompted(session, "Change it");
  const stale = (name: string): string =>
    `! ${at(name)} was changed since it was read. Read it again, then repeat the change on what it says now. Nothing was changed.`;
  const unread = (name: string): string =>
    `! ${at(name)} exists and was not read in this session. Read it first. Nothing was changed.`;
  const first = (key: string): readonly string[] => (got.get(key) ?? []).map((text) => text.split(":")[0] ?? "");
  assert.deepEqual(
    {
      second: got.get("second 2")?.slice(0, 2),
      parent: got.get("parent"),
      done: [...first("first 2"), ...first("first 3"), ...first("second 2").slice(2), ...first("second 4")],
      files: ["shared", "own", "parents"].map((name) => readFileSync(at(name), "utf8")),
    },
    {
      second: [stale("shared"), unread("own")],
      parent: [stale("shared"), stale("parents")],
      done: ["shared", "own", "parents", "shared"].map((name) => `Edited ${at(name)}`),
      files: ["shared: of both\n", "own: new\n", "parents: of the second\n"],
    },
  );
});

// --- what it keeps for itself ------------------------------------------------------------------------------------------

/** Like no other on this machine. */
const sleepFor = (number: number): string => `sleep ${2_000_000 + process.pid * 10 + number}`;

test("each agent has its own to-do list, background shells and mode, and shells end with their agent", async () => {
  const [shellsRun, modeChanged] = [gate(), gate()];
  const got = new Map<string, readonly string[]>();
  let running = 0;
  await using ground = await openFamily(
    familyScript({
      main: (seen) => {
        if (seen.told.length > 0) return say("told");
        if (seen.results.length === 0)
          return callTools([
            { name: "TodoWrite", input: { todos: [{ content: "of the parent", status: "pending" }] } },
            { name: "Agent", input: part("one") },
            { name: "Agent", input: part("two") },
          ]);
        if (seen.words.includes("async_launched"))
          return callTools([{ name: "TaskOutput", input: { task_ids: ["shell-1", "shell-2"], wait: "none" } }]);
        got.set("parent", textsOf(seen.results));
        return say("I wait.");
      },
      fork: async ({ directive, answers, results }) => {
        const number = directive === "one" ? 1 : 2;
        if (answers > 0) got.set(`${directive} ${answers}`, textsOf(results));
        if (answers === 0)
          return callTools([
            { name: "TodoWrite", input: { todos: [{ content: `of ${directive}`, status: "in_progress" }] } },
            { name: "Bash", input: { command: sleepFor(number), run_in_background: true } },
          ]);
        if (answers === 1) {
          running += 1;
          if (running === 2) shellsRun.open();
          await shellsRun.passed;
          await modeChanged.passed;
          const own = /shell-\d/.exec(results[1]?.text ?? "")?.[0] ?? "";
          const other = own === "shell-1" ? "shell-2" : "shell-1";
          return callTools([
            { name: "TaskOutput", input: { task_ids: [own], wait: "none" } },
            { name: "TaskOutput", input: { task_ids: [other], wait: "none" } },
            { name: "TaskStop", input: { task_id: other } },
            { name: "Write", input: { file_path: ground.folder.at("work", `${directive}.txt`), content: directive } },
          ]);
        }
        return report({ directive });
      },
    }),
  );
  await using session = await ground.open();
  const todos: (readonly [string, string])[] = [];
  const areAsleep = (): readonly boolean[] => [1, 2].map((number) => processesWith(sleepFor(number)).length > 0);
  let sleeping: readonly boolean[] = [];
  void shellsRun.passed.then(() => {
    sleeping = areAsleep();
    session.setMode("plan"); // in which nobody writes
    modeChanged.open();
  });
  await prompted(session, "go", (event) => {
    if (event.type === "todos_changed") todos.push([event.agent, event.todos.map(({ content }) => content).join()]);
  });
  assert.deepEqual(endsOf(session), { one: "reported", two: "reported" });
  assert.deepEqual(
    { todos: todos.sort(), now: session.todos, mode: session.mode, sleeping },
    {
      todos: [
        ["main", "of the parent"],
        ["task-1", "of one"],
        ["task-2", "of two"],
      ],
      now: [{ content: "of the parent", status: "pending" }],
      mode: "plan",
      sleeping: [true, true],
    },
  );
  const fork = (name: string, number: number): readonly string[] => [
    `shell-N: running (${sleepFor(number)})\n(nothing new)`,
    ...[`! ${CLOSED}`, `! ${CLOSED}`],
    `Made ${ground.folder.at("work", `${name}.txt`)} (1 line).`,
  ];
  const named = (texts: readonly string[] = []): readonly string[] =>
    texts.map((text) => text.replace(/^shell-\d/, "shell-N"));
  assert.deepEqual(
    [got.get("parent"), named(got.get("one 2")), named(got.get("two 2"))],
    [["! There is no task shell-1, shell-2."], fork("one", 1), fork("two", 2)],
  );
  assert.deepEqual([await leftWith(sleepFor(1)), await leftWith(sleepFor(2))], [[], []]);
});

// --- who is ended ------------------------------------------------------------------------------------------------------

const bash = (command: string): SimAnswer => callTools([{ name: "Bash", input: { command } }]);

/** Rows that the simulator still works on, once it has heard of clients that have gone. */
const openRows = async (simulator: Simulator): Promise<number> => {
  const count = (): number => simulator.ledger().filter(({ outcome }) => outcome === "open").length;
  for (let waited = 0; count() > 0 && waited < 20_000; waited += 10) await after(10);
  return count();
};

test("aborting a fork inside a command ends no other fork, and leaves no process", async () => {
  await using ground = await openFamily(
    familyScript({
      main: () => say("heard"),
      fork: ({ directive, results }) => {
        if (results.length > 0) return say(`Scope: ${directive}\nResult: ${results[0]?.text}`);
        return bash(
          directive === "stays" ? "until [ -e go ]; do sleep 0.02; done; echo woke" : `echo begun; ${sleepFor(3)}`,
        );
      },
    }),
  );
  await using session = await ground.open();
  await prompted(session, "hello");
  const caller = new AbortController();
  const [ends, stays] = session.forkAll([{ prompt: "ends" }, { prompt: "stays", signal: caller.signal }]);
  assert.ok(ends && stays);
  const [stayed, ended] = [stays.result(), ends.result()];
  for await (const event of ends.events) if (event.type === "call_progressed") ends.abort();
  const outcome = await ended;
  assert.ok(outcome.status === "ended");
  assert.deepEqual([outcome.end, outcome.toolUses, outcome.turns], ["aborted", 1, 1]);
  assert.deepEqual(await leftWith(sleepFor(3)), []);
  assert.deepEqual(endsOf(session), { ends: "aborted", stays: "running" });
  ground.folder.put("work/go");
  const other = await stayed;
  assert.ok(other.status === "ended");
  assert.match(other.text, /^Scope: stays\nResult: woke/);
  assert.equal(caller.signal.aborted, false);
});

test("aborting the exchange ends everything it started: in a command, in a question, in an answer, in the queue", async () => {
  const never = new Promise<never>(() => {});
  const [working, asking, speaking] = [gate(), gate(), gate()];
  await using ground = await openFamily(
    familyScript({
      main: (seen) =>
        seen.words.includes("And now?")
          ? say(
              seen.told
                .map(({ label, status }) => `${label}: ${status}`)
                .sort()
                .join(", "),
            )
          : starts(["works", "asks", "speaks", "queued"].map(part))(seen),
      fork: ({ directive }) => {
        if (directive === "works") return bash(`${sleepFor(4)} & ${sleepFor(4)}`);
        // Questions are put one at a time, and this one is never answered.
        if (directive === "asks") return working.passed.then(() => bash("rm -r things"));
        speaking.open();
        return never;
      },
    }),
  );
  const parked: Question[] = [];
  const ask = async (question: Question): Promise<Answer> => {
    if (JSON.stringify(question.args).includes("sleep")) return { kind: "allow" };
    parked.push(question);
    asking.open();
    return never;
  };
  await using session = await ground.open({ permissions: { ...unasked, mode: "default", ask }, mostTasks: 3 });
  const exchange = session.prompt("go");
  const waiting = gate();
  // `question_asked` is announced before the question is put, so the one who is asked says when it has arrived.
  void Promise.all([working, asking, speaking, waiting].map(({ passed }) => passed)).then(() => exchange.abort());
  for await (const event of exchange) {
    if (event.agent === "task-1" && event.type === "call_started") working.open();
    if (event.agent === "main" && event.type === "text_entered") waiting.open();
  }
  assert.equal((await exchange.result()).end, "aborted");
  assert.deepEqual(
    parked.map(({ agent }) => agent),
    ["task-2"],
  );
  assert.deepEqual(endsOf(session), { works: "aborted", asks: "aborted", speaks: "aborted", queued: "aborted" });
  assert.deepEqual([await leftWith(sleepFor(4)), await openRows(ground.simulator)], [[], 0]);
  const { text } = await session.prompt("And now?").result();
  assert.equal(text, "asks: aborted, queued: aborted, speaks: aborted, works: aborted");
  assert.equal((await session.prompt("And now?").result()).text, "");
});

test("aborting the exchange ends followers that wait for the leader, and their requests are never sent", async () => {
  const led = gate();
  await using ground = await openFamily(
    familyScript({
      main: (seen) => (seen.words.includes("hello") ? say("heard") : starts(["one", "two", "three"].map(part))(seen)),
      fork: () => {
        led.open();
        return new Promise<never>(() => {});
      },
    }),
    { conventions: 8_000 },
  );
  await using session = await ground.open();
  const exchange = session.prompt("go");
  const begun = new Set<string>();
  const order: string[] = [];
  for await (const event of exchange) {
    if (event.type === "family_launched") order.push(event.reason.split(":")[0] ?? "");
    if (event.type === "turn_started") begun.add(`${event.agent} ${event.turn}`);
    // Three forks, the parent's first turn and its second.
    if (begun.size === 5) void led.passed.then(() => exchange.abort());
  }
  assert.equal((await exchange.result()).end, "aborted");
  assert.deepEqual(
    { order, ends: endsOf(session), sent: ground.simulator.ledger().length, open: await openRows(ground.simulator) },
    { order: ["leader first"], ends: { one: "aborted", two: "aborted", three: "aborted" }, sent: 2, open: 0 },
  );
});

test("a follower that is stopped while it waits sends nothing; a leader that is stopped hands over, and all others finish", async () => {
  const led = gate();
  const asked: string[] = [];
  await using ground = await openFamily(
    familyScript({
      main: starts(["leads", "waits", "follows"].map(part)),
      fork: ({ directive }) => {
        asked.push(directive);
        led.open();
        return directive === "leads" ? new Promise<never>(() => {}) : report({ directive });
      },
    }),
    { conventions: 8_000 },
  );
  await using session = await ground.open();
  void led.passed.then(() => session.stopTask("task-2")).then(() => session.stopTask("task-1"));
  const { result } = await prompted(session, "go");
  assert.equal(result.end, "done");
  assert.deepEqual(endsOf(session), { leads: "aborted", waits: "aborted", follows: "reported" });
  assert.deepEqual(asked, ["leads", "follows"]);
  assert.equal(await openRows(ground.simulator), 0);
});

test("TaskStop ends a fork inside its command and returns when the command has ended; its sibling continues", async () => {
  const [inCommand, stopped] = [gate(), gate()];
  let left: readonly string[] = ["not looked"];
  await using ground = await openFamily(
    familyScript({
      main: async (seen) => {
        if (seen.results[0]?.text === "task-1 was ended.") {
          left = await leftWith(sleepFor(5));
          stopped.open();
          return say("I wait.");
        }
        if (seen.told.length > 0) return say(seen.told.map(({ label, status }) => `${label}: ${status}`).join(" "));
        if (!seen.words.includes("async_launched")) return starts(["ends", "stays"].map(part))(seen);
        await inCommand.passed;
        return callTools([{ name: "TaskStop", input: { task_id: "task-1" } }]);
      },
      fork: ({ directive, answers }) => {
        if (directive === "ends") return bash(`echo begun; ${sleepFor(5)}`);
        return answers > 0 ? report({ directive }) : stopped.passed.then(() => bash("true"));
      },
    }),
  );
  await using session = await ground.open();
  const { result } = await prompted(session, "go", (event) => {
    if (event.agent === "task-1" && event.type === "call_progressed") inCommand.open();
  });
  assert.deepEqual(
    [result.text, left, endsOf(session)],
    ["stays: reported", [], { ends: "aborted", stays: "reported" }],
  );
});

test("closing the session ends its forks whatever they are doing, and the journal says so", async () => {
  await using ground = await openFamily(
    familyScript({
      main: starts(["works", "asks"].map(part)),
      fork: ({ directive }) =>
        directive === "works" ? bash(`echo begun; ${sleepFor(6)}`) : new Promise<never>(() => {}),
    }),
  );
  const session = await ground.open();
  let closing: Promise<void> | undefined;
  await prompted(session, "go", (event) => {
    if (event.type === "call_progressed") closing ??= session.close();
  });
  await closing;
  assert.deepEqual([await leftWith(sleepFor(6)), await openRows(ground.simulator)], [[], 0]);
  await using again = await ground.resume(session.id);
  assert.deepEqual(endsOf(again), { works: "aborted", asks: "aborted" });
});
