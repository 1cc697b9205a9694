import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { classify, openReadOnlySandbox, openSandbox } from "@prefork/guard";
import { needs } from "@prefork/testing/optional";
import { isRunning, pidsIn, until } from "@prefork/testing/processes";
import { type Bench, bench, textOf } from "./tool-bench.ts";

const onLinux = { skip: process.platform === "linux" ? false : "processes are looked up in /proc" };

const run = (b: Bench, command: string, more: Readonly<Record<string, number | boolean>> = {}) =>
  b.call("Bash", { command, ...more });

test("output is shown in the order of printing, with the exit code; codes other than 0 are results", async () => {
  await using b = await bench();
  assert.deepEqual(await run(b, "echo one; echo two >&2; echo three; exit 3"), {
    content: "one\ntwo\nthree\n[exit code 3]",
  });
  assert.deepEqual(await run(b, "printf 'no end of line'"), { content: "no end of line\n[exit code 0]" });
  assert.deepEqual(await run(b, "true"), { content: "[exit code 0]" });
  assert.deepEqual(await run(b, "kill -TERM $$"), { content: "[exit code 143]" });
  assert.match(textOf(await run(b, "no-such-program-here")), /command not found\n\[exit code 127\]$/);
});

test("a command starts in the working directory, without input, with the given environment and our mark", async () => {
  await using b = await bench();
  assert.deepEqual(await run(b, "pwd; cat; cd /; echo $0"), { content: `${b.work}\nbash\n[exit code 0]` });
  b.put("startup", "echo from BASH_ENV");
  const environment = {
    ...b.context.environment,
    BASH_ENV: b.at("startup"),
    "BASH_FUNC_ls%%": "() { echo shadowed; }",
    MINE: "yes",
  };
  const { content } = await b.call(
    "Bash",
    { command: "env | grep -v -e ^_ -e ^SHLVL -e ^PWD | sort; type -t ls" },
    { environment },
  );
  const { PATH, HOME } = b.context.environment;
  assert.equal(
    String(content).replace(/[0-9a-f]{16}/, "MARK"),
    `HOME=${HOME}\nLANG=C.UTF-8\nMINE=yes\nPATH=${PATH}\nPREFORK_COMMAND=MARK\nfile\n[exit code 0]`,
  );
});

/** Enough time for a command to begin, however busy the machine is. */
const TIME_TO_BEGIN = 3_000;

test("a timeout ends the whole group and keeps what was printed", async () => {
  await using b = await bench();
  const command = "echo $$ >> pids; sleep 300 & echo $! >> pids; echo started; wait";
  assert.deepEqual(await run(b, command, { timeout: TIME_TO_BEGIN }), {
    content: "started\n[ended after 3000 ms: the time was up; above is what it had printed]",
    fault: "timed-out",
  });
  assert.equal(pidsIn(b.at("pids")).length, 2);
  assert.deepEqual(pidsIn(b.at("pids")).filter(isRunning), []);
});

test("a process that ignores SIGTERM is killed", async () => {
  await using b = await bench();
  const command = "trap '' TERM; echo $$ >> pids; echo deaf; while :; do sleep 0.05; done";
  assert.equal((await run(b, command, { timeout: TIME_TO_BEGIN })).fault, "timed-out");
  assert.deepEqual(pidsIn(b.at("pids")).filter(isRunning), []);
});

test("a process can clean up after SIGTERM", async () => {
  await using b = await bench();
  const command = "trap 'echo cleaned; exit 1' TERM; echo ready; sleep 300 & wait";
  assert.deepEqual(await run(b, command, { timeout: TIME_TO_BEGIN }), {
    content: "ready\ncleaned\n[ended after 3000 ms: the time was up; above is what it had printed]",
    fault: "timed-out",
  });
});

test("an abort leaves no process and keeps what was printed", async () => {
  await using b = await bench();
  const ending = new AbortController();
  const command = "echo $$ >> pids; (sleep 300 & echo $! >> pids; wait) & echo begun; wait";
  const running = b.call("Bash", { command }, { signal: ending.signal });
  await until(() => pidsIn(b.at("pids")).length === 2 && b.progressed.includes("begun"));
  ending.abort();
  assert.deepEqual(await running, { content: "begun\n[interrupted; above is what it had printed]", fault: "aborted" });
  assert.deepEqual(pidsIn(b.at("pids")).filter(isRunning), []);
  assert.deepEqual(await b.call("Bash", { command: "touch never" }, { signal: ending.signal }), {
    content: "Interrupted before it began.",
    fault: "aborted",
  });
  assert.equal(existsSync(b.at("never")), false);
});

test("processes that a command leaves running are ended, and the result says so", async () => {
  await using b = await bench();
  const said = "[exit code 0; processes it left running were ended, use run_in_background to keep them]";
  assert.deepEqual(await run(b, "sleep 300 & echo $! >> pids; echo on"), { content: `on\n${said}` });
  assert.deepEqual(await run(b, "sleep 300 >/dev/null 2>&1 & echo $! >> pids"), { content: said });
  assert.deepEqual(pidsIn(b.at("pids")).filter(isRunning), []);
  // Processes that end by themselves in a moment are waited for.
  assert.deepEqual(await run(b, "echo late > >(sleep 0.05; cat > out)"), { content: "[exit code 0]" });
  assert.equal(readFileSync(b.at("out"), "utf8"), "late\n");
});

test("a process outside the group that holds the output open does not delay the answer", async () => {
  await using b = await bench();
  const { content } = await run(
    b,
    "setsid sh -c 'echo $$ >> pids; exec sleep 300' & until [ -s pids ]; do sleep 0.02; done; echo done",
  );
  assert.equal(content, "done\n[exit code 0]");
  const [stray] = pidsIn(b.at("pids"));
  assert.ok(stray !== undefined && isRunning(stray), "it is told in run-command.ts that such a process is not found");
  process.kill(stray);
});

test("a long output shows its beginning and end, and a file holds all of it", async () => {
  await using b = await bench();
  const lines = textOf(await run(b, "seq -f 'line %.0f é' 1 20000")).split("\n");
  assert.equal(lines.at(-1), "[exit code 0]");
  assert.equal(lines[0], "line 1 é");
  assert.equal(lines.at(-2), "line 20000 é");
  const note = lines.findIndex((line) => line.startsWith("[…"));
  const [, left, file = ""] =
    /^\[… (\d+) characters left out; all of it is in (\S+) …\]$/.exec(lines[note] ?? "") ?? [];
  const whole = `${Array.from({ length: 20_000 }, (_, at) => `line ${at + 1} é`).join("\n")}\n`;
  assert.equal(readFileSync(file, "utf8"), whole);
  assert.equal(statSync(file).mode & 0o777, 0o600);
  const shown = [lines.slice(0, note).join("\n"), `${lines.slice(note + 1, -1).join("\n")}\n`];
  assert.ok(shown.every((part) => part.length <= 15_000 && part.length > 14_900));
  assert.equal(Number(left), whole.length - shown.join("").length);
  assert.ok(whole.startsWith(shown[0] ?? "?") && whole.endsWith(shown[1] ?? "?"));
});

test("output that just fits needs no file, and characters are not split", async () => {
  await using b = await bench();
  assert.equal(textOf(await run(b, "printf 'x%.0s' $(seq 30000)")), `${"x".repeat(30_000)}\n[exit code 0]`);
  assert.deepEqual(readdirSync(b.base.at("kept")), []);
  const wide = textOf(await run(b, "printf 'a'; printf '😀%.0s' $(seq 20000)"));
  assert.ok(wide.isWellFormed());
  assert.deepEqual(readdirSync(b.base.at("kept")), ["bash-call-1.txt"]);
});

test("a flood of output is stopped, and its file has a size limit", async () => {
  await using b = await bench();
  const { content, fault } = await run(b, "echo $$ >> pids; exec yes 0123456789abcdefghijklmnopqrstuvwxyz");
  assert.equal(fault, "failed");
  assert.match(String(content), /\n\[ended: it printed more than 67108864 bytes\]$/);
  assert.ok(String(content).length < 31_000);
  assert.ok(statSync(b.base.at("kept", "bash-call-1.txt")).size <= 67_108_864);
  assert.deepEqual(pidsIn(b.at("pids")).filter(isRunning), []);
});

test("progress shows the last lines, rarely when much is printed", async () => {
  await using b = await bench();
  const running = run(
    b,
    "w() { until [ -e $1 ]; do sleep 0.02; done; }; echo one; w a; echo two; w b; seq 10000 200000",
  );
  await until(() => b.progressed.length === 1);
  b.put("a");
  await until(() => b.progressed.length === 2);
  b.put("b");
  await running;
  assert.deepEqual(b.progressed.slice(0, 2), ["one", "one\ntwo"]);
  assert.ok(b.progressed.length < 400, String(b.progressed.length));
  assert.ok(b.progressed.every((text) => text.split("\n").length <= 5));
});

test("a command that cannot be started is reported", async () => {
  await using b = await bench();
  assert.deepEqual(await b.call("Bash", { command: "true" }, { cwd: b.at("gone") }), {
    content: `Not run: the working directory ${b.at("gone")} is not there.`,
    fault: "failed",
  });
  assert.deepEqual(await run(b, `: ${"x".repeat(200_000)}`), {
    content: "Not run: the command is too long; put it into a file.",
    fault: "failed",
  });
});

test("a read-only command runs as its plan, in the read-only sandbox if there is one", async () => {
  await using b = await bench();
  b.put("notes.txt", "b\na\n");
  const readOnlySandbox = await openReadOnlySandbox({ mode: "auto" });
  const planned = (command: string, more: Readonly<Record<string, number | boolean>> = {}) => {
    const verdict = classify(command);
    assert.equal(verdict.verdict, "read-only", command);
    const plan = verdict.verdict === "read-only" ? { plan: verdict.plan } : {};
    return b.call(
      "Bash",
      { command, ...more },
      { ...plan, ...(readOnlySandbox.kind === "on" ? { readOnlySandbox: readOnlySandbox.sandbox } : {}) },
    );
  };
  assert.deepEqual(await planned("sort notes.txt | head -n 1"), { content: "a\n[exit code 0]" });
  assert.deepEqual(await planned("cat notes.txt none.txt"), {
    content: "b\na\n[stderr]\ncat: none.txt: No such file or directory\n[exit code 1]",
  });
  assert.match(
    textOf(await planned("cat notes.txt", { run_in_background: true })),
    /^Running in the background as shell-1\./,
  );
  assert.deepEqual(await b.call("TaskOutput", { task_ids: ["shell-1"], wait: "all" }), {
    content: "shell-1: exit code 0 (cat notes.txt)\nb\na",
  });
});

/** Checks for a fork above it, in a process without the command's parents, session and environment. */
const ORPHAN = `(setsid env -i '${process.execPath}' --input-type=module -e 'import { hasForkAncestor } from "${new URL("../../src/tools/fork-ancestry.ts", import.meta.url)}"; console.log(hasForkAncestor())' >answer 2>&1 &); until [ -s answer ]; do sleep 0.05; done; cat answer; rm answer`;

test(
  "in the sandbox, a process that left its parents and its session is still recognised as a fork's",
  await needs("bwrap"),
  async () => {
    await using b = await bench();
    // The clone may be below /tmp, which is private inside.
    const clone = fileURLToPath(new URL("../../../..", import.meta.url));
    const opened = await openSandbox({ mode: "required", workspace: b.work, visible: [clone] });
    assert.ok(opened.kind === "on");
    await using sandbox = opened.sandbox;
    const ask = async (environment: Readonly<Record<string, string>>): Promise<unknown> => {
      const { content } = await b.call("Bash", { command: ORPHAN }, { sandbox, environment });
      return content;
    };
    const { PATH = "" } = process.env;
    assert.equal(await ask({ PATH }), "false\n[exit code 0]");
    assert.equal(await ask({ PATH, PREFORK_LINEAGE: "fork:task-1" }), "true\n[exit code 0]");
  },
);

/** Does the process above the command name the fork? If not, no process of ours may be killed. */
const NAMED = "grep -q prefork:fork /proc/$PPID/cmdline && ";

/** Prints whether there is a fork above it. */
const ASK = `'${process.execPath}' --input-type=module -e 'import { hasForkAncestor } from "${new URL("../../src/tools/fork-ancestry.ts", import.meta.url)}"; console.log(hasForkAncestor())'`;

test(
  "no command of a fork can get rid of the name above it, whatever it kills and however it continues",
  onLinux,
  async () => {
    await using b = await bench();
    const { PATH = "" } = process.env;
    const ask = async (command: string, lineage: Readonly<Record<string, string>>): Promise<unknown> =>
      (await b.call("Bash", { command }, { environment: { PATH, ...lineage } })).content;
    const fork = { PREFORK_LINEAGE: "fork:task-1" };
    const killAll = `for above in $$ $PPID; do grep -q prefork:fork /proc/$above/cmdline && for pid in $(cat /proc/$above/task/$above/children); do [ $pid = $$ ] || kill -9 $pid; done; done 2>/dev/null`;
    for (const command of [
      `${killAll}; env -u PREFORK_LINEAGE ${ASK}`,
      `${killAll}; exec env -i ${ASK}`,
      `${NAMED}kill $PPID; exec env -i ${ASK}`,
      `${NAMED}kill -STOP $PPID; env -i ${ASK}; ${NAMED}kill -CONT $PPID`,
      `setsid -w env -i ${ASK}`,
    ])
      assert.equal(await ask(command, fork), "true\n[exit code 0]", command);
    assert.equal(await ask(ASK, {}), "false\n[exit code 0]");
  },
);

test("ending the shell above a fork's command ends the command, including what left its session", onLinux, async () => {
  await using b = await bench();
  const { PATH = "" } = process.env;
  const environment = { PATH, PREFORK_LINEAGE: "fork:task-1" };
  const command = `setsid sleep 300 & echo $! >left; ${NAMED}kill -9 $PPID && sleep 300; echo still here`;
  const { content } = await b.call("Bash", { command }, { environment });
  assert.equal(content, "[exit code 137]");
  assert.deepEqual(pidsIn(b.at("left")).filter(isRunning), []);
});

test("a fork's command ends like any other: with its exit code, its own signal, and when asked to", async () => {
  await using b = await bench();
  const environment = { PATH: process.env.PATH ?? "", PREFORK_LINEAGE: "fork:task-1" };
  const ending = new AbortController();
  const { signal } = ending;
  const ask = async (command: string) => b.call("Bash", { command }, { environment, signal });
  assert.deepEqual(await ask("echo out; echo err >&2; exit 3"), { content: "out\nerr\n[exit code 3]" });
  assert.deepEqual(await ask("echo out; kill -9 $$"), { content: "out\n[exit code 137]" });
  const cleaning = ask("trap 'echo cleaned; exit 1' TERM; echo ready; sleep 300 & echo $! >> pids; wait");
  await until(() => pidsIn(b.at("pids")).length === 1);
  ending.abort();
  assert.match(textOf(await cleaning), /^ready\ncleaned\n/);
  assert.deepEqual(pidsIn(b.at("pids")).filter(isRunning), []);
});

test("a command that times out is ended together with what left its session, and nothing else is", async () => {
  await using b = await bench();
  const seconds = 2_000_000 + process.pid; // only of this run
  const stranger = spawn("sleep", [String(seconds)], { stdio: "ignore" });
  const command = `setsid sleep ${seconds} >/dev/null 2>&1 & echo on; wait`;
  assert.equal((await b.call("Bash", { command, timeout: 1_000 })).fault, "timed-out");
  const left = readdirSync("/proc").filter((name) => {
    try {
      return readFileSync(`/proc/${name}/cmdline`, "utf8") === `sleep\u0000${seconds}\u0000`;
    } catch {
      return false;
    }
  });
  stranger.kill();
  assert.deepEqual(left, [String(stranger.pid)]);
});

test("an approved command runs in the sandbox if there is one, and ends with it", await needs("bwrap"), async () => {
  await using b = await bench();
  const opened = await openSandbox({ mode: "required", workspace: b.work });
  assert.ok(opened.kind === "on");
  await using sandbox = opened.sandbox;
  const inside = (command: string, more: Readonly<Record<string, number>> = {}) =>
    b.call("Bash", { command, ...more }, { sandbox });
  assert.deepEqual(await inside("touch made; touch /usr/made 2>/dev/null || echo closed; exit 4"), {
    content: "closed\n[exit code 4]",
  });
  assert.equal(existsSync(b.at("made")), true);
  const seconds = 1_000_000 + process.pid; // only of this run
  assert.equal(
    (await inside(`setsid sleep ${seconds} & echo on; wait`, { timeout: TIME_TO_BEGIN })).fault,
    "timed-out",
  );
  const sleeping = (): boolean =>
    readdirSync("/proc").some((name) => {
      try {
        return readFileSync(`/proc/${name}/cmdline`, "utf8") === `sleep\u0000${seconds}\u0000`;
      } catch {
        return false;
      }
    });
  await until(() => !sleeping());
});
