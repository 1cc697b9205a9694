import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import type { DelegatedCall } from "../../src/ports.ts";
import { keepIn, type ShellFacts, Shells } from "../../src/tools/index.ts";
import { startCommand } from "../../src/tools/run-command.ts";
import { type Bench, bench, textOf } from "./bench-of-tools.ts";
import { isRunning, pidsIn, until } from "./processes.ts";

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

test("a background shell is looked at, each time for what is new, until it has ended", async () => {
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

test("stopping ends the whole group, and the rest of the session goes on", async () => {
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

test("an abort of the call that waits leaves the shell running", async () => {
  await using b = await bench();
  const id = await start(b, "echo $$ >> pids; sleep 300");
  await until(() => pidsIn(b.at("pids")).length === 1);
  const ending = new AbortController();
  const waiting = b.call("TaskOutput", { task_ids: [id], wait: "all" }, { signal: ending.signal });
  ending.abort();
  assert.match(textOf(await waiting), /^shell-1: running /);
  assert.deepEqual(pidsIn(b.at("pids")).map(isRunning), [true]);
});

test("output that nobody looks at is bounded in memory and whole in the file", async () => {
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

test("everything is ended with its owner, and what belongs to another is not seen", async () => {
  await using one = await bench();
  await using other = await bench();
  await start(one, "echo $$ >> pids; sleep 300");
  await start(other, "echo $$ >> pids; sleep 300");
  await until(() => [one, other].every((b) => pidsIn(b.at("pids")).length === 1));
  await one.context.shells.endAll();
  assert.deepEqual(pidsIn(one.at("pids")).map(isRunning), [false]);
  assert.deepEqual(pidsIn(other.at("pids")).map(isRunning), [true]);
  assert.deepEqual(await one.call("Bash", { command: "true", run_in_background: true }), {
    content: "Not run: the session is ending.",
    fault: "failed",
  });
  await start(other, "true");
  assert.equal((await one.call("TaskStop", { task_id: "shell-2" })).fault, "failed");
});

test("the owner is told of shells that end by themselves, and only so many run at once", async () => {
  await using b = await bench();
  const told: ShellFacts[] = [];
  let number = 0;
  await using shells = new Shells({
    ids: { next: () => `s${++number}` },
    keepStream: keepIn(b.base.at("kept")).keepStream,
    ended: (shell) => told.push(shell),
    most: 1,
  });
  const { cwd, environment } = b.context;
  const begin = (command: string) =>
    shells.start({ command, begin: (output) => startCommand({ command, cwd, environment, output }) });
  await begin("exit 7");
  await shells.ended("s1");
  const file = b.base.at("kept", "s1.txt");
  assert.deepEqual(told, [{ id: "s1", command: "exit 7", file, state: { kind: "exited", exitCode: 7 } }]);
  await begin("sleep 300");
  assert.deepEqual(await begin("true"), { ok: false, reason: "1 shells are running already; stop one with TaskStop" });
  await shells.stop("s2");
  assert.deepEqual(told.length, 1);
});

test("tasks that are no shells are asked of the far side, with who asks", async () => {
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

test("of shells and other tasks the first to end is enough", async () => {
  await using b = await bench();
  const id = await start(b, "true");
  const taskOutput: DelegatedCall = (args, { signal }) =>
    args.wait === "none"
      ? Promise.resolve({ text: "task-9: running" })
      : new Promise((_, fail) => signal.addEventListener("abort", () => fail(signal.reason), { once: true }));
  const any = await b.call("TaskOutput", { task_ids: [id, "task-9"], wait: "any" }, { delegation: { taskOutput } });
  assert.deepEqual(any, { content: "shell-1: exit code 0 (true)\n(nothing new)\n\ntask-9: running" });
});

test("without a far side an unknown task is told as such", async () => {
  await using b = await bench();
  assert.deepEqual(await look(b, ["x"]), { content: "There is no task x. There are none.", fault: "failed" });
  await start(b, "true");
  assert.deepEqual(await look(b, ["x"]), { content: "There is no task x. There is shell-1.", fault: "failed" });
  assert.deepEqual(await b.call("TaskStop", { task_id: "x" }), { content: "There is no task x.", fault: "failed" });
});

test("shells do not outlive the process that started them, even when it is killed", async () => {
  await using b = await bench();
  const program = fileURLToPath(new URL("./fixtures/starts-a-shell.ts", import.meta.url));
  const parent = spawn(process.execPath, [...process.execArgv, program, b.work], { stdio: "ignore" });
  await until(() => pidsIn(b.at("pids")).length === 2);
  assert.deepEqual(pidsIn(b.at("pids")).map(isRunning), [true, true]);
  parent.kill("SIGKILL");
  await until(() => !pidsIn(b.at("pids")).some(isRunning));
});
