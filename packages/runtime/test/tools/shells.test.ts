import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { isRunning, pidsIn, until } from "@prefork/testing/processes";
import type { DelegatedCall } from "../../src/ports.ts";
import {
  createOutputStore,
  type ShellEnded,
  type ShellProcess,
  Shells,
  type ShellsOptions,
} from "../../src/tools/index.ts";
import { startCommand } from "../../src/tools/run-command.ts";
import { type Bench, bench, textOf } from "./tool-bench.ts";

const start = async (b: Bench, command: string): Promise<string> => {
  const said = textOf(await b.call("Bash", { command, run_in_background: true }));
  const [, id = ""] =
    /^Running in the background as (\S+)\. Look with TaskOutput, end with TaskStop\./.exec(said) ?? [];
  return id;
};

const look = (
  b: Bench,
  task_ids: readonly string[],
  how: { readonly wait?: string; readonly timeout_ms?: number } = {},
) => b.call("TaskOutput", { task_ids, wait: "none", ...how });

test("a background shell is read repeatedly, each time for what is new, until it has ended", async () => {
  await using b = await bench();
  const id = await start(b, "echo one; until [ -e go ]; do sleep 0.02; done; echo two >&2; exit 5");
  assert.equal(id, "shell-1");
  await until(() => readFileSync(b.base.at("kept", "shell-1.txt"), "utf8") === "one\n");
  const title = "(echo one; until [ -e go ]; do sleep 0.02; done; echo two >&2; exit 5)";
  assert.deepEqual(await look(b, [id]), { content: `shell-1: running ${title}\none` });
  assert.deepEqual(await look(b, [id], { wait: "all", timeout_ms: 50 }), {
    content: `shell-1: running ${title}\n(nothing new)`,
  });
  b.put("go");
  assert.deepEqual(await look(b, [id], { wait: "all" }), { content: `shell-1: exit code 5 ${title}\ntwo` });
  assert.deepEqual(await look(b, [id]), { content: `shell-1: exit code 5 ${title}\n(nothing new)` });
  assert.equal(readFileSync(b.base.at("kept", "shell-1.txt"), "utf8"), "one\ntwo\n");
  assert.deepEqual(await b.call("TaskStop", { task_id: id }), { content: "shell-1 had ended before." });
});

test("waiting for any ends with the first, waiting for all with the last", async () => {
  await using b = await bench();
  const [quick, slow] = [await start(b, "true"), await start(b, "until [ -e go ]; do sleep 0.02; done")];
  assert.match(
    textOf(await look(b, [quick, slow], { wait: "any" })),
    /^shell-1: exit code 0 .*\n.*\n\nshell-2: running /,
  );
  const both = look(b, [quick, slow], { wait: "all" });
  b.put("go");
  assert.match(textOf(await both), /^shell-1: exit code 0 .*\n.*\n\nshell-2: exit code 0 /);
});

test("stopping ends the whole group, and the rest of the session continues", async () => {
  await using b = await bench();
  const id = await start(b, "echo $$ >> pids; sleep 300 & echo $! >> pids; wait");
  const other = await start(b, "until [ -e go ]; do sleep 0.02; done; echo fine");
  await until(() => pidsIn(b.at("pids")).length === 2);
  assert.deepEqual(await b.call("TaskStop", { task_id: id }), { content: "shell-1 was ended." });
  assert.deepEqual(pidsIn(b.at("pids")).filter(isRunning), []);
  assert.match(textOf(await look(b, [id])), /^shell-1: stopped /);
  b.put("go");
  assert.match(textOf(await look(b, [other], { wait: "all" })), /\nfine$/);
});

test("aborting the call that waits leaves the shell running", async () => {
  await using b = await bench();
  const id = await start(b, "echo $$ >> pids; sleep 300");
  await until(() => pidsIn(b.at("pids")).length === 1);
  const ending = new AbortController();
  const waiting = b.call("TaskOutput", { task_ids: [id], wait: "all" }, { signal: ending.signal });
  ending.abort();
  assert.match(textOf(await waiting), /^shell-1: running /);
  assert.deepEqual(pidsIn(b.at("pids")).map(isRunning), [true]);
});

test("unread output is bounded in memory and complete in the file", async () => {
  await using b = await bench();
  const id = await start(b, "seq 1 100000");
  const said = textOf(await look(b, [id], { wait: "all" })).split("\n");
  const whole = readFileSync(b.base.at("kept", "shell-1.txt"), "utf8");
  assert.equal(whole, `${Array.from({ length: 100_000 }, (_, at) => at + 1).join("\n")}\n`);
  assert.equal(
    said[1],
    `[… ${whole.length - 30_000} characters left out; all of it is in ${b.base.at("kept", "shell-1.txt")} …]`,
  );
  assert.equal(`${said.slice(2).join("\n")}\n`, whole.slice(-30_000));
});

test("all shells end with their owner, and another owner's shells are not visible", async () => {
  await using one = await bench();
  await using other = await bench();
  await start(one, "echo $$ >> pids; sleep 300");
  await start(other, "echo $$ >> pids; sleep 300");
  await until(() => [one, other].every((b) => pidsIn(b.at("pids")).length === 1));
  await one.context.shells.stopAll();
  assert.deepEqual(pidsIn(one.at("pids")).map(isRunning), [false]);
  assert.deepEqual(pidsIn(other.at("pids")).map(isRunning), [true]);
  assert.deepEqual(await one.call("Bash", { command: "true", run_in_background: true }), {
    content: "Not run: the session is ending.",
    fault: "failed",
  });
  await start(other, "true");
  assert.equal((await one.call("TaskStop", { task_id: "shell-2" })).fault, "failed");
});

/** Shells whose owner records every callback. */
const heardOf = (b: Bench, over: Partial<ShellsOptions> = {}) => {
  const told: string[] = [];
  const ends: ShellEnded[] = [];
  let number = 0;
  const shells = new Shells({
    ids: { next: () => `s${++number}` },
    keepStream: createOutputStore(b.base.at("kept")).keepStream,
    onStart: ({ id, command }) => told.push(`${id} started: ${command}`),
    onEnd: (end) => {
      told.push(`${end.id} ended`);
      ends.push(end);
    },
    onEndShown: (id) => told.push(`${id} shown`),
    ...over,
  });
  const { cwd, environment } = b.context;
  const begin = (command: string) =>
    shells.start({ command, launch: (output) => startCommand({ command, cwd, environment, output }) });
  return { shells, told, ends, begin };
};

test("the owner is notified of a start and of an end, once each, with the exit code, the last output and the time", async () => {
  await using b = await bench();
  let now = 1_000;
  const { shells, told, ends, begin } = heardOf(b, { clock: { now: () => now } });
  await begin("echo out; until [ -e go ]; do sleep 0.02; done; echo err >&2; exit 7");
  assert.deepEqual(told, ["s1 started: echo out; until [ -e go ]; do sleep 0.02; done; echo err >&2; exit 7"]);
  await until(() => shells.takeOutput("s1")?.output === "out\n");
  now = 1_250;
  b.put("go");
  await shells.ended("s1");
  const command = "echo out; until [ -e go ]; do sleep 0.02; done; echo err >&2; exit 7";
  const end = { id: "s1", command, exit: 7, by: "itself", output: "out\nerr\n", seen: false, ms: 250 };
  assert.deepEqual(ends, [end]);
  await shells.stopAll();
  assert.deepEqual(told.slice(1), ["s1 ended"]);
});

test("the last output is bounded, and a split character is marked", async () => {
  await using b = await bench();
  const { shells, ends, begin } = heardOf(b);
  await begin("printf '%s' a; for i in $(seq 1000); do printf '😀'; done; printf '%s' z");
  await shells.ended("s1");
  assert.equal(ends[0]?.output, `\ufffd${"😀".repeat(999)}z`);
  assert.equal(ends[0]?.output.length, 2_000);
});

test("an end that nobody waited for is reported as shown at the first read or stop after it, and only then", async () => {
  await using b = await bench();
  const { shells, told, begin } = heardOf(b);
  for (const command of ["true", "false"]) await begin(command);
  for (const id of ["s1", "s2"]) await shells.ended(id);
  // The first may have ended before the second began.
  assert.deepEqual(told.toSorted(), ["s1 ended", "s1 started: true", "s2 ended", "s2 started: false"]);
  for (let times = 0; times < 2; times++) {
    shells.takeOutput("s1");
    assert.equal(await shells.stop("s2"), false);
  }
  assert.deepEqual(told.slice(4), ["s1 shown", "s2 shown"]);
});

test("reading a running shell does not count as seeing its end", async () => {
  await using b = await bench();
  const { shells, told, begin } = heardOf(b);
  await begin("until [ -e go ]; do sleep 0.02; done");
  shells.takeOutput("s1");
  b.put("go");
  await shells.ended("s1");
  assert.deepEqual(told.slice(1), ["s1 ended"]);
  shells.takeOutput("s1");
  assert.deepEqual(told.slice(1), ["s1 ended", "s1 shown"]);
});

test("whoever stops a shell sees its end; the end is reported as a signal, or as the exit code it chose", async () => {
  await using b = await bench();
  const { shells, told, ends, begin } = heardOf(b);
  await begin("echo $$ >> pids; exec sleep 300");
  await begin("trap 'exit 9' TERM; echo $$ >> pids; while :; do sleep 0.02; done");
  await until(() => pidsIn(b.at("pids")).length === 2);
  assert.deepEqual(await Promise.all([shells.stop("s1"), shells.stop("s2"), shells.stop("s2")]), [true, true, true]);
  shells.takeOutput("s1");
  const facts = ends.toSorted((one, other) => one.id.localeCompare(other.id));
  assert.deepEqual(
    facts.map(({ id, exit, by, seen }) => [id, exit, by, seen]),
    [
      ["s1", "SIGTERM", "stop", true],
      ["s2", 9, "stop", true],
    ],
  );
  assert.deepEqual(told.slice(2).sort(), ["s1 ended", "s2 ended"]);
});

test("a command that is ended by a signal of its own is reported with that signal", async () => {
  await using b = await bench();
  const { shells, ends, begin } = heardOf(b);
  await begin("kill -KILL $$");
  await shells.ended("s1");
  assert.deepEqual(ends, [
    { id: "s1", command: "kill -KILL $$", exit: "SIGKILL", by: "itself", output: "", seen: false, ms: 0 },
  ]);
});

test("when the owner is closed, all ends are reported before that resolves, and nothing after it", async () => {
  await using b = await bench();
  const { shells, told, ends, begin } = heardOf(b);
  await begin("echo half; echo $$ >> pids; exec sleep 300");
  await until(() => pidsIn(b.at("pids")).length === 1);
  const late = begin("exec sleep 300");
  await shells.stopAll();
  const heard = [...told];
  await late;
  await shells.stopAll();
  assert.deepEqual(told, heard);
  assert.deepEqual(
    ends.filter(({ id }) => id === "s1"),
    [
      {
        ...{ id: "s1", command: "echo half; echo $$ >> pids; exec sleep 300", exit: "SIGTERM", by: "owner" },
        ...{ output: "half\n", seen: false, ms: 0 },
      },
    ],
  );
  const count = (word: string): number => told.filter((line) => line.includes(word)).length;
  assert.equal(count("started"), count("ended"));
  assert.deepEqual(pidsIn(b.at("pids")).filter(isRunning), []);
});

test("a shell that starts while its owner is closed is reported as started and ended, and does not outlive it", async () => {
  await using b = await bench();
  const { shells, told } = heardOf(b);
  const gate = Promise.withResolvers<void>();
  const { cwd, environment } = b.context;
  const command = "echo $$ >> pids; exec sleep 300";
  const starting = shells.start({
    command,
    launch: async (output) => {
      const begun = await startCommand({ command, cwd, environment, output });
      await until(() => pidsIn(b.at("pids")).length === 1);
      gate.resolve();
      return begun;
    },
  });
  await gate.promise;
  await shells.stopAll();
  assert.deepEqual(told, [`s1 started: ${command}`, "s1 ended"]);
  assert.deepEqual(pidsIn(b.at("pids")).filter(isRunning), []);
  assert.equal((await starting).ok, true);
});

test("a shell whose start cannot be recorded is stopped, and the start fails", async () => {
  await using b = await bench();
  const { shells, told, begin } = heardOf(b, {
    onStart: () => {
      throw new Error("the disk is full");
    },
  });
  await assert.rejects(begin("echo $$ >> pids; exec sleep 300"), /the disk is full/);
  assert.deepEqual(pidsIn(b.at("pids")).filter(isRunning), []);
  assert.deepEqual([shells.list(), told], [[], []]);
});

test("a refused start is not reported, and an end that cannot be observed is reported as a failure", async () => {
  await using b = await bench();
  const { shells, told, ends } = heardOf(b);
  const no = { ok: false, reason: "no bash" } as const;
  assert.deepEqual(await shells.start({ command: "x", launch: async () => no }), no);
  assert.deepEqual(told, []);
  const broken = (): ShellProcess => ({ ok: true, ended: Promise.reject(new Error("the pipe broke")), stop: () => {} });
  await shells.start({ command: "y", launch: async () => broken() });
  await shells.ended("s2");
  const output = "[it could not be followed to its end: the pipe broke]\n";
  assert.deepEqual(ends, [{ id: "s2", command: "y", exit: 1, by: "itself", output, seen: false, ms: 0 }]);
});

test("the number of running shells is limited, including those that are being started", async () => {
  await using b = await bench();
  const { shells, begin } = heardOf(b, { maxRunning: 1 });
  const full = { ok: false, reason: "1 shells are running already; stop one with TaskStop" };
  const first = begin("exec sleep 300");
  assert.deepEqual(await begin("true"), full);
  await first;
  assert.deepEqual(await begin("true"), full);
  await shells.stop("s1");
  assert.equal((await begin("true")).ok, true);
  await shells.stopAll();
});

test("tasks that are not shells are asked of the delegation, with who asks", async () => {
  await using b = await bench();
  const asked: unknown[] = [];
  const answer =
    (name: string): DelegatedCall =>
    async (args, { callId, agent }) => {
      asked.push([name, args, callId, agent]);
      return name === "stop" ? { text: "no such task", isError: true } : { text: "task-9: reported" };
    };
  const over = { delegation: { taskOutput: answer("output"), taskStop: answer("stop") } };
  assert.deepEqual(await b.call("TaskOutput", { task_ids: ["task-9"], wait: "all", timeout_ms: 5 }, over), {
    content: "task-9: reported",
  });
  assert.deepEqual(await b.call("TaskStop", { task_id: "task-9" }, over), { content: "no such task", fault: "failed" });
  assert.deepEqual(asked, [
    ["output", { task_ids: ["task-9"], wait: "all", timeout_ms: 5 }, "call-1", "main"],
    ["stop", { task_id: "task-9" }, "call-1", "main"],
  ]);
  const id = await start(b, "true");
  const both = await b.call("TaskOutput", { task_ids: ["task-9", id], wait: "all" }, over);
  assert.deepEqual(both, { content: "shell-1: exit code 0 (true)\n(nothing new)\n\ntask-9: reported" });
});

test("of shells and other tasks, the first to end is enough", async () => {
  await using b = await bench();
  const id = await start(b, "true");
  const taskOutput: DelegatedCall = (args, { signal }) =>
    args.wait === "none"
      ? Promise.resolve({ text: "task-9: running" })
      : new Promise((_, fail) => signal.addEventListener("abort", () => fail(signal.reason), { once: true }));
  const any = await b.call("TaskOutput", { task_ids: [id, "task-9"], wait: "any" }, { delegation: { taskOutput } });
  assert.deepEqual(any, { content: "shell-1: exit code 0 (true)\n(nothing new)\n\ntask-9: running" });
});

test("without a delegation, an unknown task is reported as such", async () => {
  await using b = await bench();
  assert.deepEqual(await look(b, ["x"]), { content: "There is no task x. There are none.", fault: "failed" });
  await start(b, "true");
  assert.deepEqual(await look(b, ["x"]), { content: "There is no task x. There is shell-1.", fault: "failed" });
  assert.deepEqual(await b.call("TaskStop", { task_id: "x" }), { content: "There is no task x.", fault: "failed" });
});

test("shells do not outlive the process that started them, even if it is killed", async () => {
  await using b = await bench();
  const program = fileURLToPath(new URL("./fixtures/starts-a-shell.ts", import.meta.url));
  const parent = spawn(process.execPath, [...process.execArgv, program, b.work], { stdio: "ignore" });
  await until(() => pidsIn(b.at("pids")).length === 2);
  assert.deepEqual(pidsIn(b.at("pids")).map(isRunning), [true, true]);
  parent.kill("SIGKILL");
  await until(() => !pidsIn(b.at("pids")).some(isRunning));
});
