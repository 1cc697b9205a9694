import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { callTools } from "@prefork/simulator";
import { type RuntimeEvent, resumeSession } from "../../src/index.ts";
import { assertGoesOn, endOf, followed, type Ground, openGround, reopened } from "./fault-ground.ts";

const bash = (command: string, more: Readonly<Record<string, boolean>> = {}) =>
  callTools([{ name: "Bash", input: { command, ...more } }]);

test("fifty megabytes of output are entered as a preview, and the whole output is in a file", async () => {
  await using ground = await openGround({ print: bash("yes 'a line of the output' | head -c 50000000") });
  await using session = await ground.open();
  const { events, result } = await followed(session.prompt("print"));
  assert.equal(endOf(events), "done: end");
  assert.match(
    result.text,
    /^saw a line of the output\n.*\[… 499\d{5} characters left out; all of it is in .*\[exit code 0\]$/s,
  );
  assert.ok(result.text.length < 35_000);
  const [, file = ""] = /all of it is in (\S+)/.exec(result.text) ?? [];
  assert.equal(statSync(file).size, 50_000_000);
  assert.ok(statSync(ground.folder.at("state/sessions", session.id, "journal.jsonl")).size < 300_000);
  await assertGoesOn(ground, session);
});

test("a single line of five megabytes is entered as a preview too", async () => {
  await using ground = await openGround({ print: bash("head -c 5000000 /dev/zero | tr '\\0' x") });
  await using session = await ground.open();
  const { events, result } = await followed(session.prompt("print"));
  assert.equal(endOf(events), "done: end");
  assert.ok(result.text.length < 35_000 && result.text.isWellFormed());
  assert.match(result.text, /characters left out; all of it is in \S+ …\]/);
  await assertGoesOn(ground, session);
});

test("the model is told when its folder disappears during the work, and the work continues when the folder is back", async () => {
  await using ground = await openGround({
    "use it": () =>
      callTools([
        { name: "Bash", input: { command: "touch a.txt; ls" } },
        { name: "Write", input: { file_path: `${ground.work}/b.txt`, content: "b" } },
        { name: "Read", input: { file_path: `${ground.work}/a.txt` } },
      ]),
  });
  await using session = await ground.open();
  await session.prompt("hello").result();
  rmSync(ground.work, { recursive: true });
  const gone = await followed(session.prompt("use it"));
  assert.equal(endOf(gone.events), "done: end");
  assert.deepEqual(texts(gone.events), [
    `failed: Not run: the working directory ${ground.work} is not there.`,
    `failed: ${ground.work}/b.txt: there is no such file or folder. Nothing was written.`,
    `failed: ${ground.work}/a.txt: there is no such file.`,
  ]);
  mkdirSync(ground.work);
  const back = await followed(session.prompt("use it"));
  assert.equal(texts(back.events)[0], "undefined: a.txt\n[exit code 0]");
  await assertGoesOn(ground, session);
  await using again = await reopened(ground, session.id);
  const { events } = await followed(again.prompt("use it"));
  assert.deepEqual(
    events.flatMap((event) => (event.type === "call_ended" ? [event.fault] : [])),
    [undefined, undefined, undefined],
  );
});

const texts = (events: readonly RuntimeEvent[]): readonly string[] =>
  events.flatMap((event) => (event.type === "call_ended" ? [`${event.fault}: ${event.text}`] : []));

test("a missing folder is refused before anything is written", async () => {
  await using ground = await openGround();
  const missing = ground.folder.at("nowhere");
  await assert.rejects(ground.open({ cwd: missing }), {
    name: "InputError",
    message: `cannot open a folder of the workspace: ENOENT: no such file or directory, realpath '${missing}'`,
  });
  assert.deepEqual(readdirSync(ground.folder.path), ["home", "work"]);
});

// --- other processes -------------------------------------------------------------------------------------------------

const PROGRAM = fileURLToPath(new URL("session-process.ts", import.meta.url));

type Started = {
  readonly child: ChildProcess;
  readonly said: Promise<Record<string, unknown>>;
  readonly ended: Promise<number | null>;
};

const start = ({ simulator, folder }: Ground, task: "hold" | "leave"): Started => {
  const child = spawn(process.execPath, [...process.execArgv, PROGRAM, task, simulator.url, folder.path], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    child,
    said: lines.next().then(({ value }) => JSON.parse(value ?? "{}") as Record<string, unknown>),
    ended: new Promise((resolve) => child.once("close", resolve)),
  };
};

test("a session that another process has open is refused with that process's id, and is free when the process has ended", async () => {
  await using ground = await openGround();
  const { child, said, ended } = start(ground, "hold");
  const { id, pid, end } = await said;
  assert.deepEqual([pid, end], [child.pid, "done"]);
  await assert.rejects(resumeSession(String(id), ground.options()), {
    name: "JournalError",
    reason: "locked",
    message: `session ${id} is in use by process ${pid}; end it there, or start another session`,
  });
  child.stdin?.write("\n");
  assert.equal(await ended, 0);
  await assertGoesOn(ground, await reopened(ground, String(id)));
});

test("a session is free as soon as its process is killed, and can be resumed", async () => {
  await using ground = await openGround();
  const { child, said, ended } = start(ground, "hold");
  const { id } = await said;
  child.kill("SIGKILL");
  await ended;
  await assertGoesOn(ground, await reopened(ground, String(id)));
});

test("a program that does not close its session still exits, and nothing that it started keeps running", async () => {
  const mark = `37${process.pid}`;
  await using ground = await openGround({ work: bash(`sleep ${mark}`, { run_in_background: true }) });
  const { said, ended } = start(ground, "leave");
  const { text, first } = await said;
  assert.match(String(text), /^saw Running in the background as shell-/);
  assert.equal(first, "session_opened");
  assert.equal(await ended, 0);
  assert.deepEqual(commandsWith(`sleep\0${mark}`), []);
});

const commandsWith = (words: string): readonly string[] =>
  readdirSync("/proc").flatMap((pid) => {
    try {
      const line = /^\d+$/.test(pid) ? readFileSync(`/proc/${pid}/cmdline`, "utf8") : "";
      return line.includes(words) ? [line] : [];
    } catch {
      return []; // it ended meanwhile
    }
  });
