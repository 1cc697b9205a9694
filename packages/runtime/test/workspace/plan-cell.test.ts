/** What a plan can learn beyond its text: names that only turn up when it runs, and the world around its cell. */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, symlinkSync } from "node:fs";
import { test } from "node:test";
import { chanceOf } from "../../fuzz/guard/chance.ts";
import { classify, openCell, type Plan, type PlanCell, type PlanResult, runPlan } from "../../src/index.ts";
import { fedNames } from "../../src/workspace/fed-names.ts";
import { probeSandbox } from "../../src/workspace/sandbox.ts";
import { needs, uses } from "../optional.ts";
import { goneWithin } from "../tools/processes.ts";
import { type Ground, ground } from "./ground.ts";

const probe = await probeSandbox();
const withBwrap = await needs("bwrap");
const withRipgrep = uses("@vscode/ripgrep");

const planOf = (text: string): Plan => {
  const judged = classify(text);
  assert.ok(judged.verdict === "read-only", `${text}: ${judged.reason}`);
  return judged.plan;
};

/** A plan as no text gives it: one pipe of programs with their words. */
const pipe = (...commands: readonly (readonly [string, ...string[]])[]): Plan => ({
  steps: [
    {
      after: "always",
      negated: false,
      run: {
        kind: "pipe",
        commands: commands.map(([program, ...words]) => ({
          program,
          args: words.map((text) => ({ text })),
          redirects: [],
        })),
      },
    },
  ],
  gitFolders: [],
});

const withSecrets = (): Ground => {
  const place = ground();
  place.put("home/.ssh/id_rsa", "the secret\n");
  place.put("home/.netrc", "the secret\n");
  place.put("work/plain.txt", "plain\n");
  symlinkSync(place.at("home", ".ssh", "id_rsa"), place.at("work", "link.txt"));
  return place;
};

const cellFor = async ({ home }: Ground): Promise<PlanCell> => {
  const opened = await openCell({ mode: "required", home, probe });
  assert.ok(opened.kind === "on", opened.kind === "on" ? "" : opened.reason);
  return opened.cell;
};

const told = ({ stdout, exitCode, refused }: PlanResult): readonly unknown[] => [stdout, exitCode, refused];

test("xargs is given the names that were listed, and nothing when one of them leads to keys", async () => {
  using place = withSecrets();
  const { work, home } = place;
  const listed = await runPlan(planOf("ls plain.txt | xargs cat"), { cwd: work, home });
  assert.deepEqual(told(listed), ["plain\n", 0, undefined]);
  const led = await runPlan(planOf("ls plain.txt link.txt | xargs cat"), { cwd: work, home });
  assert.deepEqual([led.stdout, led.exitCode], ["", 127]);
  assert.match(led.refused ?? "", /link\.txt leads to what may not be read/);
});

test("names made up on the way are looked at as xargs would read them", async () => {
  using place = withSecrets();
  const { work, home } = place;
  for (const made of ["/proc/1/environ", "/pr'oc'/1/environ", "\\/proc/1/environ", "a\t/proc/1/environ", "  .env"]) {
    const result = await runPlan(pipe(["printf", "%s\\n", made], ["xargs", "cat"]), { cwd: work, home });
    assert.deepEqual([result.stdout, result.exitCode], ["", 127], made);
    assert.ok(result.refused, made);
  }
  const formed = pipe(["printf", "1/environ"], ["xargs", "-I{}", "cat", "/proc/{}"]);
  assert.match((await runPlan(formed, { cwd: work, home })).refused ?? "", /no plain file/);
  const zeros = pipe(["printf", "a\\0/proc/1/environ\\0"], ["xargs", "-0", "cat"]);
  assert.match((await runPlan(zeros, { cwd: work, home })).refused ?? "", /no plain file/);
});

test("names are read from a text exactly as xargs reads them", () => {
  const chance = chanceOf(12);
  const letters = ["a", "b", "-", " ", " ", "\t", "\n", "\n", "'", '"', "\\", "\r", "é"];
  const forms = [[], [], ["-n2"], ["-L1"], ["-I{}"], ["-d\\n"], ["-0"]];
  for (let round = 0; round < 80; round += 1) {
    const options = forms[round % forms.length] ?? [];
    const text = Array.from({ length: 3 + chance.below(16) }, () => chance.one(letters)).join("");
    const inner = options[0] === "-I{}" ? ["cat", "{}"] : ["cat"];
    const fed = fedNames(
      [...options, ...inner].map((word) => ({ text: word })),
      text,
    );
    if ("problem" in fed || fed.complaint !== undefined) continue;
    const place = options[0] === "-I{}" ? ["{}"] : [];
    const ours = fed.options.map(({ text: option }) => option);
    const zeros = fed.names.map((name) => `${name}\0`).join("");
    const run = (given: readonly string[], input: string): string =>
      spawnSync("xargs", [...given, "sh", "-c", 'printf "%s|" "$@"; echo "/"', "sh", ...place], {
        input,
        encoding: "utf8",
      }).stdout;
    assert.equal(run(ours, zeros), run(options, text), JSON.stringify([options, text]));
  }
});

test("a name with quotes, blanks or a dash in it reaches a program whole or not at all", async () => {
  using place = withSecrets();
  const { work, home } = place;
  place.put("work/names/a' 'b.c", "quoted\n");
  place.put("work/names/c d.c", "blank\n");
  const whole = "find names -type f -print0 | sort -z | xargs -0 cat";
  assert.deepEqual(told(await runPlan(planOf(whole), { cwd: work, home })), ["quoted\nblank\n", 0, undefined]);
  const lines = "ls names | xargs -d '\\n' -I{} cat names/{}";
  assert.deepEqual(told(await runPlan(planOf(lines), { cwd: work, home })), ["quoted\nblank\n", 0, undefined]);
  // Without -0 the quotes go, as they do in bash, and what is left are the names that are looked at.
  const { stdout, refused } = await runPlan(planOf("find names -name 'a*' | xargs cat"), { cwd: work, home });
  assert.deepEqual([stdout, refused], ["", undefined]);
  const dashed = pipe(["printf", "%s\\0", "-i", "plain.txt"], ["xargs", "-0", "sed", "1d"]);
  assert.match((await runPlan(dashed, { cwd: work, home })).refused ?? "", /would take -i for an option/);
  const assigned = pipe(["printf", "%s\\0", "FS=x"], ["xargs", "-0", "awk", "1"]);
  assert.match((await runPlan(assigned, { cwd: work, home })).refused ?? "", /would take FS=x for an option/);
});

test("a limit of time hides nothing from the checks, and ends what it limits", async () => {
  using place = withSecrets();
  const { work, home } = place;
  const counted = await runPlan(planOf("ls plain.txt | timeout 5 xargs wc -c"), { cwd: work, home });
  assert.deepEqual(told(counted), ["6 plain.txt\n", 0, undefined]);
  const led = await runPlan(planOf("ls plain.txt link.txt | timeout 5 xargs cat"), { cwd: work, home });
  assert.match(led.refused ?? "", /link\.txt leads to what may not be read/);
  const walked = await runPlan(planOf("timeout 5 find . -name 'link*' -exec cat {} +"), { cwd: work, home });
  assert.deepEqual(told(walked), ["", 0, undefined]);
  const [step] = planOf("timeout 1 ls").steps;
  assert.ok(step?.run.kind === "pipe");
  const waits = { program: "sleep", args: [{ text: "30" }], redirects: [], limit: "0.1" };
  const late = { ...step, run: { kind: "pipe" as const, commands: [waits] } };
  const ended = await runPlan({ steps: [late], gitFolders: [] }, { cwd: work, home });
  assert.deepEqual([ended.exitCode, ended.ended], [124, "finished"]);
});

test("names go through several xargs, and exit codes are those of the last program", async () => {
  using place = withSecrets();
  const { work, home } = place;
  place.put("work/other.txt", "other\n");
  const text = "ls plain.txt other.txt | xargs grep -l plain | xargs wc -c";
  assert.deepEqual(told(await runPlan(planOf(text), { cwd: work, home })), ["6 plain.txt\n", 0, undefined]);
  const none = await runPlan(planOf("ls plain.txt | xargs grep nowhere"), { cwd: work, home });
  assert.deepEqual(told(none), ["", 123, undefined]);
});

test("grep -R and find -exec read no file through a link", withRipgrep, async () => {
  using place = withSecrets();
  const { work, home } = place;
  symlinkSync(place.at("home"), place.at("work", "folder"));
  for (const text of [
    "grep -Rhs secret .",
    "grep -rhs secret .",
    "find . -name '*.txt' -exec grep -h secret {} +",
    "rg -L secret",
  ]) {
    const { stdout } = await runPlan(planOf(text), { cwd: work, home });
    assert.equal(stdout, "", text);
  }
});

test("all below a folder that is too broad is not read, by whatever name it is reached", withRipgrep, async () => {
  using place = withSecrets();
  symlinkSync("/", place.at("work", "all"));
  for (const text of ["grep -r key all", "grep -r key .", "rg key", "diff -r all all"]) {
    const cwd = text.includes("all") ? place.work : "/";
    const result = await runPlan(planOf(text), { cwd, home: place.home });
    assert.deepEqual([result.stdout, result.exitCode], ["", 127], text);
    assert.match(result.refused ?? "", /below \/ stand keys|leads to what may not be read/, text);
  }
});

test(
  "links are not followed behind another program either, and a walk without a start begins where it is",
  withRipgrep,
  async () => {
    using place = withSecrets();
    const { work, home } = place;
    symlinkSync(place.at("home", ".ssh"), place.at("work", "keys"));
    for (const text of [
      "timeout 5 grep -Rhs secret .",
      "timeout 5 rg -L secret",
      "find . -maxdepth 1 -type d -exec grep -Rhs secret {} +",
      "ls -d src | xargs grep -Rhs secret",
      "cd keys && grep -rh secret",
      "cd keys && rg secret",
      "cd keys && find . -type f -exec cat {} +",
    ]) {
      const { stdout } = await runPlan(planOf(text), { cwd: work, home });
      assert.equal(stdout, "", text);
    }
  },
);

test("a walk leaves out the project's own keys, also where a pattern aims at them", withRipgrep, async () => {
  using place = withSecrets();
  const { work, home } = place;
  for (const name of [".env", "id_rsa", "server.pem", "sub/.env.local"]) place.put(`work/${name}`, "the secret\n");
  place.put("work/.env.example", "a secret goes here\n");
  for (const text of [
    "grep -rh 'the secret' .",
    "grep -rh --include='.e*' 'the secret' .",
    "rg -uu -g '.env*' 'the secret' .",
    "find . -name 'id_*' -exec head {} +",
    "timeout 5 grep -rh 'the secret' .",
    "diff -r src .",
  ]) {
    const { stdout } = await runPlan(planOf(text), { cwd: work, home });
    assert.doesNotMatch(stdout, /the secret/, text);
  }
  const example = await runPlan(planOf("grep -rh 'secret goes' ."), { cwd: work, home });
  assert.equal(example.stdout, "a secret goes here\n");
});

test("a pipe leaves the cell only where nothing in it reads a file", withBwrap, async () => {
  using place = withSecrets();
  const { work, home } = place;
  const cell = await cellFor(place);
  const read = pipe(["ls", "-d", "."], ["cat", `${home}/.ssh/id_rsa`]);
  assert.equal((await runPlan(read, { cwd: work, home, cell })).stdout, "");
  const told = await runPlan(planOf("ps aux | grep -c node"), { cwd: work, home, cell });
  assert.notEqual(told.stdout, "0\n");
});

test(
  "in the cell nothing can be written, nobody reached, no other program seen, and keys are not there",
  withBwrap,
  async () => {
    using place = withSecrets();
    const { work, home } = place;
    const cell = await cellFor(place);
    const inCell = async (script: string): Promise<string> => {
      const { stdout, stderr } = await runPlan(pipe(["bash", "-c", script]), { cwd: work, home, cell });
      return stdout + stderr;
    };
    assert.match(await inCell(`: > ${work}/made`), /Read-only file system/);
    assert.equal(existsSync(place.at("work", "made")), false);
    assert.equal(await inCell("cd /proc && echo [0-9]*"), "1 2\n");
    assert.doesNotMatch(await inCell(`cat ${home}/.netrc ${home}/.ssh/*`), /secret/);
    assert.equal(await inCell("tail -n +2 /proc/net/route"), ""); // no way leads out
    assert.equal(await inCell("cd /proc; grep -h CapEff self/status"), "CapEff:\t0000000000000000\n");
  },
);

test("a plan in the cell gives what it gives without", withBwrap, async () => {
  using place = withSecrets();
  const { work, home } = place;
  const cell = await cellFor(place);
  for (const text of [
    "cat plain.txt | wc -l",
    "git log --oneline | head -2",
    "ls -l plain.txt",
    "find . -name '*.txt' | sort | xargs head -1",
    "grep -c plain plain.txt; echo $?",
    "sort plain.txt",
  ]) {
    const outside = await runPlan(planOf(text), { cwd: work, home });
    assert.deepEqual(await runPlan(planOf(text), { cwd: work, home, cell }), outside, text);
  }
});

test("what runs in the cell ends with the program that started it", withBwrap, async () => {
  using place = ground();
  const seconds = `61.${process.pid}`;
  const script = `
    import { openCell, runPlan } from ${JSON.stringify(new URL("../../src/index.ts", import.meta.url).href)};
    const opened = await openCell({ mode: "required" });
    const plan = ${JSON.stringify(pipe(["sleep", seconds]))};
    setTimeout(() => process.kill(process.pid, "SIGKILL"), 700);
    await runPlan(plan, { cwd: "/", cell: opened.cell });`;
  const args = [...process.execArgv, "--input-type=module", "-e", script];
  const { signal } = spawnSync(process.execPath, args, { cwd: place.work });
  assert.equal(signal, "SIGKILL");
  assert.deepEqual(await goneWithin(`sleep ${seconds}`), []);
});

test("a cell that is required and not to be had refuses, and one that is switched off says so", async () => {
  const missing = { ok: false, reason: "bubblewrap (bwrap) is not installed" } as const;
  assert.deepEqual(await openCell({ mode: "required", probe: missing }), { kind: "refused", reason: missing.reason });
  assert.deepEqual(await openCell({ mode: "auto", probe: missing }), { kind: "off", reason: missing.reason });
  assert.deepEqual(await openCell({ mode: "off" }), { kind: "off", reason: "switched off by the settings" });
});
