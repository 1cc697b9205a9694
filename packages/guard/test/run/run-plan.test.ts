/** Running a plan keeps its limits, whatever the programs do. What it gives is in plan-as-bash.test.ts. */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { type CommandPlan, classify, type PlanStep, planHazard, runPlan } from "@prefork/guard";
import { needs } from "@prefork/testing/optional";
import { processesLeftAfterWait } from "@prefork/testing/processes";
import { pathJudge } from "../../src/files/index.ts";
import { GitViews } from "../../src/git/index.ts";
import { firstProblem } from "../../src/run/in-turns.ts";
import { expandPattern } from "../../src/run/patterns.ts";
import { renderPipe } from "../../src/run/render-pipe.ts";
import { type Ground, ground } from "./ground.ts";

const planOf = (text: string): CommandPlan => {
  const judged = classify(text);
  assert.ok(judged.verdict === "read-only", `${text}: ${judged.reason}`);
  return judged.plan;
};

const askPlan = async (
  text: string,
  { work, home }: Ground,
): Promise<{ readonly stdout: string; readonly exitCode: number | null }> => {
  const { stdout, exitCode } = await runPlan(planOf(text), { cwd: work, home });
  return { stdout, exitCode };
};

/** A plan of one program, whatever the table says of it: for what no read-only command does. */
const planFor = (program: string, ...words: readonly string[]): CommandPlan => ({
  steps: [
    {
      after: "always",
      negated: false,
      run: { kind: "pipe", commands: [{ program, args: words.map((text) => ({ text })), redirects: [] }] },
    },
  ],
  gitFolders: [],
});

/** Of this run alone: another may look for its own at the same time. */
const own = String(process.pid).padStart(7, "0");

const onLinux = { skip: process.platform === "linux" ? false : "processes are looked up in /proc" };

test("output ends at its limit, and so does what prints it", onLinux, async () => {
  const result = await runPlan(planFor("seq", `1${own}`, "79999999"), { cwd: "/", maxOutputBytes: 1_000 });
  assert.equal(result.stdout.length, 1_000);
  assert.equal(result.truncated, true);
  assert.notEqual(result.exitCode, 0);
  assert.deepEqual(await processesLeftAfterWait(`seq 1${own}`), []);
});

test("commands of one pipe share its memory", async () => {
  const showLimit = { program: "bash", args: [{ text: "-c" }, { text: "ulimit -d; cat" }], redirects: [] };
  const pipeOf = (count: number): CommandPlan => ({
    steps: [{ after: "always", negated: false, run: { kind: "pipe", commands: Array(count).fill(showLimit) } }],
    gitFolders: [],
  });
  const limits = async (count: number) => (await runPlan(pipeOf(count), { cwd: "/" })).stdout.trim().split("\n");
  assert.deepEqual(await limits(1), ["4194304"]);
  assert.deepEqual(await limits(4), Array(4).fill("1048576"));
  assert.deepEqual(await limits(70), Array(70).fill("65536"));
});

test("output of exactly the limit is whole", async () => {
  const result = await runPlan(planFor("printf", "%s", "x".repeat(1_000)), { cwd: "/", maxOutputBytes: 1_000 });
  assert.deepEqual([result.stdout.length, result.truncated, result.exitCode], [1_000, false, 0]);
});

test("a plan that takes too long is ended with all its processes, and what it printed is kept", onLinux, async () => {
  const plan = planFor("bash", "-c", `echo begun; sleep 611.${own} | sleep 611.${own}`);
  const result = await runPlan(plan, { cwd: "/", timeoutMs: 4_000 }); // time enough to begin, however busy the machine is
  assert.deepEqual([result.stdout, result.ended, result.exitCode], ["begun\n", "timed-out", 124]);
  assert.deepEqual(await processesLeftAfterWait(`sleep 611.${own}`), []);
});

test("an aborted plan is ended, and its later steps are not begun", onLinux, async () => {
  const stop = new AbortController();
  const [step] = planFor("sleep", `622.${own}`).steps as [PlanStep];
  const [after] = planFor("echo", "after").steps as [PlanStep];
  const running = runPlan({ steps: [step, after], gitFolders: [] }, { cwd: "/", signal: stop.signal });
  setTimeout(() => stop.abort(), 100);
  const result = await running;
  assert.deepEqual([result.stdout, result.ended, result.exitCode], ["", "aborted", 124]);
  assert.deepEqual(await processesLeftAfterWait(`sleep 622.${own}`), []);
});

test("a signal that is already aborted starts nothing", async () => {
  const result = await runPlan(planOf("echo a"), { cwd: "/", signal: AbortSignal.abort() });
  assert.deepEqual([result.stdout, result.ended, result.exitCode], ["", "aborted", 124]);
});

test("a child that keeps the pipe open does not keep the plan open, and does not outlive it", onLinux, async () => {
  const result = await runPlan(planFor("bash", "-c", `sleep 633.${own} & echo started`), { cwd: "/" });
  assert.deepEqual([result.stdout, result.exitCode, result.ended], ["started\n", 0, "finished"]);
  assert.deepEqual(await processesLeftAfterWait(`sleep 633.${own}`), []);
});

test("not even a child that has left the process group keeps the plan open", onLinux, async () => {
  const result = await runPlan(planFor("bash", "-c", "setsid sleep 13.7 & sleep 0.2; echo started"), {
    cwd: "/",
    timeoutMs: 12_000,
  });
  assert.deepEqual([result.stdout, result.exitCode, result.ended], ["started\n", 0, "finished"]);
});

test("a program that is not installed gives 127 and a line that says so; the next step still runs", async () => {
  const [missing] = planFor("no-such-program").steps as [PlanStep];
  const [after] = planFor("echo", "after").steps as [PlanStep];
  const plan: CommandPlan = { steps: [missing, { ...after, after: "failure" }], gitFolders: [] };
  assert.deepEqual(await runPlan(plan, { cwd: "/" }), {
    stdout: "after\n",
    stderr: "no-such-program: not found in system folders\n",
    exitCode: 0,
    ended: "finished",
    truncated: false,
    refused: "no-such-program: not found in system folders",
  });
  assert.equal((await runPlan(planFor("no-such-program"), { cwd: "/" })).exitCode, 127);
});

test("a program in the working directory is never used", async () => {
  using place = ground();
  place.put("work/ls", "#!/bin/sh\necho mine\n");
  spawnSync("chmod", ["+x", place.at("work", "ls")]);
  assert.doesNotMatch((await askPlan("ls README.md", place)).stdout, /mine/);
});

test("nothing of our own environment reaches a program", async () => {
  process.env.PREFORK_TEST_SECRET = "hidden";
  try {
    const { stdout } = await runPlan(planFor("env"), { cwd: "/" });
    assert.doesNotMatch(stdout, /PREFORK_TEST_SECRET|hidden/);
    assert.match(stdout, /^HOME=\/dev\/null$/m);
  } finally {
    delete process.env.PREFORK_TEST_SECRET;
  }
});

test("npm is told to keep no log, cache or timing, whatever the .npmrc of a project says", async () => {
  const { stdout } = await runPlan(planFor("env"), { cwd: "/" });
  assert.deepEqual(
    stdout
      .split("\n")
      .filter((line) => line.startsWith("npm_"))
      .sort(),
    [
      "npm_config_cache=/dev/null/npm",
      "npm_config_globalconfig=/dev/null/npmrc",
      "npm_config_logs_dir=/dev/null/npm",
      "npm_config_logs_max=0",
      "npm_config_timing=false",
      "npm_config_update_notifier=false",
      "npm_config_userconfig=/dev/null",
    ],
  );
});

test("a pattern that matches too many names is refused with a message", async () => {
  using place = ground();
  for (let index = 0; index < 101; index += 1) place.put(`work/many/${index}/x`);
  const result = await runPlan(planOf(`ls ${"many/*/../../".repeat(2)}many/*`), { cwd: place.work });
  assert.equal(result.exitCode, 127);
  assert.match(result.stderr, /^ls: the pattern matches more than 10000 names; use find\n$/);
});

test("links to their own folder do not multiply the names that patterns are compared with", async () => {
  using place = ground();
  mkdirSync(join(place.work, "round"));
  for (let index = 0; index < 350; index += 1) symlinkSync(".", join(place.work, "round", `a${index}`));
  const result = await runPlan(planOf("cat round/a*/b* round/a*/c*"), { cwd: place.work });
  assert.equal(result.exitCode, 127);
  assert.equal(result.stderr, "cat: the patterns are compared with more than 200000 names; use find\n");
});

test("a pattern of many stars is matched in no time", async () => {
  using place = ground();
  place.put(`work/${"a".repeat(200)}`);
  const { stdout } = await runPlan(planOf(`echo ${"*a".repeat(40)}*b`), { cwd: place.work, timeoutMs: 20_000 });
  assert.equal(stdout, `${"*a".repeat(40)}*b\n`);
});

test("files that may contain secrets are listed by a pattern, but not read through one", async () => {
  using place = ground();
  place.put("work/keys/server.pem", "secret\n");
  place.put("work/keys/server.txt", "plain\n");
  assert.equal((await askPlan("ls keys/*", place)).stdout, "keys/server.pem\nkeys/server.txt\n");
  const read = await runPlan(planOf("cat keys/*"), { cwd: place.work });
  assert.deepEqual([read.stdout, read.exitCode], ["", 127]);
  assert.match(read.stderr, /server\.pem/);
});

// --- repositories that would start programs -------------------------------------------------------------------------

test("a repository that configures a filter needs approval, however git gets there", () => {
  using place = ground();
  spawnSync("git", ["config", "filter.x.clean", "touch ran"], { cwd: place.work });
  for (const text of [
    "git status",
    "timeout 5 git status",
    "cd src && git status",
    "(cd src && git log); ls",
    "git -C src diff",
  ]) {
    const hazard = planHazard(planOf(text), { cwd: place.work, home: place.home });
    assert.match(hazard ?? "", /filter\.x\.clean/, text);
  }
  // Whether a `cd` succeeds is only known later, so both folders count.
  for (const [text, cwd] of [
    ["ls", place.work],
    ["(cd src) && ls", place.work],
    ["git status", place.home],
    ["git -C .. status", place.work],
  ] as const) {
    assert.equal(planHazard(planOf(text), { cwd, home: place.home }), undefined, text);
  }
});

test("a link to secrets or to another program's environment is not followed, and a pipe is not waited for", async () => {
  const folder = mkdtempSync(join(tmpdir(), "prefork-links-"));
  try {
    mkdirSync(join(folder, ".ssh"));
    writeFileSync(join(folder, ".ssh/id_rsa"), "secret");
    symlinkSync(join(folder, ".ssh/id_rsa"), join(folder, "notes"));
    symlinkSync("/proc/self/environ", join(folder, "README.md"));
    spawnSync("mkfifo", [join(folder, "pipe")]);
    mkdirSync(join(folder, "sub"));
    spawnSync("mkfifo", [join(folder, "sub/.ignore")]);
    for (const command of [
      "cat notes",
      "cat README.md",
      "head -1 < notes",
      "cat pipe",
      "grep x < pipe",
      "cat READM?.md",
      "rg x",
      "rg --files sub",
    ]) {
      const judged = classify(command);
      assert.equal(judged.verdict, "read-only", command);
      if (judged.verdict !== "read-only") continue;
      const { stdout, stderr, exitCode } = await runPlan(judged.plan, { cwd: folder });
      assert.deepEqual([stdout, exitCode], ["", 127], command);
      assert.match(stderr, /not a regular file|leads to what may not be read/);
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test(
  "rg prints no line of an ignore file, which may be a link to a secret",
  await needs("@vscode/ripgrep"),
  async () => {
    using place = ground();
    writeFileSync(join(place.work, ".env"), "the secret{\n[the secret\n");
    for (const name of [".ignore", ".rgignore", "src/.ignore"]) {
      symlinkSync(join(place.work, ".env"), join(place.work, name));
      for (const text of ["rg foo", "rg --files", "find . -name '*.txt' -exec rg foo {} +"]) {
        const { stdout, stderr, refused } = await runPlan(planOf(text), { cwd: place.work, home: place.home });
        assert.doesNotMatch(stdout + stderr + refused, /the secret/, `${name}: ${text}`);
        assert.match(refused ?? "", /ignore/, `${name}: ${text}`);
      }
      rmSync(join(place.work, name));
    }
  },
);

test("a command whose tests would be repeated without end is refused, not started", async () => {
  using place = ground();
  const text = `find . ${Array.from({ length: 90 }, () => "-exec grep foo {} +").join(" ")}`;
  for (let at = 0; at < 100; at += 1) writeFileSync(join(place.work, "src", `.env.${at}`), "");
  const { refused } = await runPlan(planOf(text), { cwd: place.work, home: place.home });
  assert.match(refused ?? "", /find: too many names to exclude/);
});

test("git reports by itself that its folder does not exist", async () => {
  using place = ground();
  symlinkSync("loop", join(place.work, "loop"));
  for (const name of ["a.txt", "a.txt/x", "loop", "missing", "x".repeat(300)]) {
    const plan = planOf(`git -C ${name} diff`);
    assert.equal(planHazard(plan, { cwd: place.work, home: place.home }), undefined, name);
    const { exitCode, stderr } = await runPlan(plan, { cwd: place.work, home: place.home });
    assert.equal(exitCode, 128, name);
    assert.match(stderr, /^fatal: cannot change to /, name);
  }
});

test("the processes of a pipe share memory by their number, and no file that one writes grows without bound", async () => {
  using place = ground();
  using views = new GitViews();
  const scriptOf = async (text: string, otherPipes = 0): Promise<string> => {
    const [step] = planOf(text).steps;
    assert.ok(step?.run.kind === "pipe");
    const judge = pathJudge({ cwd: place.work, home: place.home });
    const around = { cwd: place.work, cwdName: place.work, home: place.home, exitCode: 0, judge, views, otherPipes };
    const rendered = await renderPipe(step.run.commands, around);
    assert.ok("script" in rendered, JSON.stringify(rendered));
    return rendered.script;
  };
  const limitsOf = async (text: string, otherPipes = 0): Promise<string> =>
    /^ulimit -c 0 (.*) -t 600;/.exec(await scriptOf(text, otherPipes))?.[1] ?? "";
  const nowhere = /TMPDIR='\/dev\/null\/none' exec -a '(?:sort|find|xargs)'/;
  for (const text of ["sort a.txt", "find . -name a.txt -exec sort {} +"]) assert.match(await scriptOf(text), nowhere);
  assert.doesNotMatch(await scriptOf("tac a.txt"), /TMPDIR/);
  assert.equal(await limitsOf("cat a.txt"), "-d 4194304 -f 262144");
  assert.equal(await limitsOf("cat a.txt", 3), "-d 1048576 -f 262144");
  assert.equal(await limitsOf("ls | xargs -P 7 -n1 cat"), "-d 466033 -f 262144");
  const sorted = await askPlan("sort a.txt | sort -r | tac", place);
  assert.deepEqual([sorted.exitCode, sorted.stdout !== ""], [0, true]);
});

test("patterns that take too many steps for the names that are there are refused", async () => {
  using place = ground();
  mkdirSync(join(place.work, "long"));
  for (let at = 0; at < 600; at += 1) writeFileSync(join(place.work, "long", `${"a".repeat(249)}${at}`), "");
  const lookedAt = { names: 0, steps: 0 };
  await assert.rejects(async () => {
    for (let more = 0; more < 10; more += 1) await expandPattern(`long/*${"a".repeat(125)}z`, place.work, lookedAt);
  }, RangeError);
  const sets = `long/*${"[b-zc-zd-za]".repeat(20)}1*`;
  assert.ok((await expandPattern(sets, place.work)).length > 100);
  const counted = { names: 0, steps: 0 };
  const tooLong = `long/*${"a".repeat(9_000)}`;
  assert.deepEqual(await expandPattern(tooLong, place.work, counted), [tooLong]);
  assert.deepEqual(counted, { names: 600, steps: 600 });
});

test("other work continues while many names are checked, and the signal ends it", async () => {
  const ended = new AbortController();
  const asked: number[] = [];
  setImmediate(() => ended.abort());
  const names = Array.from({ length: 500 }, (_, at) => at);
  const ask = (at: number): undefined => {
    for (const start = performance.now(); performance.now() - start < 1; );
    asked.push(at);
  };
  assert.deepEqual([await firstProblem(names, ask, ended.signal), asked.length < 500], [undefined, true]);
  assert.equal(await firstProblem(names, (at) => (at === 499 ? "the last" : undefined)), "the last");
});
