/** What a plan can learn beyond its text: names that only turn up when it runs, and what is outside its sandbox. */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, symlinkSync } from "node:fs";
import { test } from "node:test";
import {
  type CommandPlan,
  classify,
  openReadOnlySandbox,
  type PlanResult,
  type ReadOnlySandbox,
  runPlan,
} from "@prefork/guard";
import { seededRandom } from "@prefork/testing/chance";
import { needs, uses } from "@prefork/testing/optional";
import { processesLeftAfterWait } from "@prefork/testing/processes";
import { scratch } from "@prefork/testing/scratch";
import { probeSandbox } from "../../src/run/sandbox.ts";
import { withoutKeys } from "../../src/run/walk-limits.ts";
import { readXargsNames } from "../../src/run/xargs-names.ts";
import { type Ground, ground } from "./ground.ts";

const probe = await probeSandbox();
const withBwrap = await needs("bwrap");
const withRipgrep = uses("@vscode/ripgrep");

const planOf = (text: string): CommandPlan => {
  const judged = classify(text);
  assert.ok(judged.verdict === "read-only", `${text}: ${judged.reason}`);
  return judged.plan;
};

/** A plan as no text gives it: one pipe of programs with their words. */
const pipe = (...commands: readonly (readonly [string, ...string[]])[]): CommandPlan => ({
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

const sandboxFor = async ({ home }: Ground): Promise<ReadOnlySandbox> => {
  const opened = await openReadOnlySandbox({ mode: "required", home, probe });
  assert.ok(opened.kind === "on", opened.kind === "on" ? "" : opened.reason);
  return opened.sandbox;
};

const told = ({ stdout, exitCode, refused }: PlanResult): readonly unknown[] => [stdout, exitCode, refused];

test("xargs gets the listed names, and nothing if one of them leads to a secret", async () => {
  using place = withSecrets();
  const { work, home } = place;
  const listed = await runPlan(planOf("ls plain.txt | xargs cat"), { cwd: work, home });
  assert.deepEqual(told(listed), ["plain\n", 0, undefined]);
  const led = await runPlan(planOf("ls plain.txt link.txt | xargs cat"), { cwd: work, home });
  assert.deepEqual([led.stdout, led.exitCode], ["", 127]);
  assert.match(led.refused ?? "", /link\.txt leads to what may not be read/);
});

test("names produced in the pipe are checked as xargs would read them", async () => {
  using place = withSecrets();
  const { work, home } = place;
  for (const made of ["/proc/1/environ", "/pr'oc'/1/environ", "\\/proc/1/environ", "a\t/proc/1/environ", "  .env"]) {
    const result = await runPlan(pipe(["printf", "%s\\n", made], ["xargs", "cat"]), { cwd: work, home });
    assert.deepEqual([result.stdout, result.exitCode], ["", 127], made);
    assert.ok(result.refused, made);
  }
  const formed = pipe(["printf", "1/environ"], ["xargs", "-I{}", "cat", "/proc/{}"]);
  assert.match((await runPlan(formed, { cwd: work, home })).refused ?? "", /not a regular file/);
  const zeros = pipe(["printf", "a\\0/proc/1/environ\\0"], ["xargs", "-0", "cat"]);
  assert.match((await runPlan(zeros, { cwd: work, home })).refused ?? "", /not a regular file/);
});

test("names are read from a text exactly as xargs reads them", () => {
  const chance = seededRandom(12);
  const letters = ["a", "b", "-", " ", " ", "\t", "\n", "\n", "'", '"', "\\", "\r", "é"];
  const forms = [[], [], ["-n2"], ["-L1"], ["-I{}"], ["-d\\n"], ["-0"]];
  for (let round = 0; round < 80; round += 1) {
    const options = forms[round % forms.length] ?? [];
    const text = Array.from({ length: 3 + chance.below(16) }, () => chance.one(letters)).join("");
    const inner = options[0] === "-I{}" ? ["cat", "{}"] : ["cat"];
    const fed = readXargsNames(
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
  assert.match((await runPlan(dashed, { cwd: work, home })).refused ?? "", /would mistake -i for an option/);
  const assigned = pipe(["printf", "%s\\0", "FS=x"], ["xargs", "-0", "awk", "1"]);
  assert.match((await runPlan(assigned, { cwd: work, home })).refused ?? "", /would mistake FS=x for an option/);
});

test("timeout hides nothing from the checks, and ends its command", async () => {
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

test("a folder that is too broad is not searched, whatever name leads to it", withRipgrep, async () => {
  using place = withSecrets();
  symlinkSync("/", place.at("work", "all"));
  for (const text of ["grep -r key all", "grep -r key .", "rg key", "diff -r all all"]) {
    const cwd = text.includes("all") ? place.work : "/";
    const result = await runPlan(planOf(text), { cwd, home: place.home });
    assert.deepEqual([result.stdout, result.exitCode], ["", 127], text);
    assert.match(result.refused ?? "", /\/ contains secrets|leads to what may not be read/, text);
  }
});

test(
  "links are not followed through another program either, and a walk without a start begins in the working directory",
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

/** A repository with keys under many names, links to keys that lie elsewhere, and files that only show which there are. */
const withKeys = (): Ground => {
  const place = withSecrets();
  const { work } = place;
  const keys = [".env", ".env~", ".env.local.old", "id_rsa.bak", "tls/server.pem.old", "sub/.ENV.local", "src/.env"];
  for (const name of keys) place.put(`work/${name}`, "the secret\n");
  place.put("work/.env.example", "an example\n");
  place.put("outside/.env", "the secret\n");
  place.put("work/3", "three\n");
  place.put("work/a/notes.txt", "notes\n");
  place.put("work/b/other.txt", "other\n");
  symlinkSync(place.at("outside", ".env"), place.at("work", "b/notes.txt"));
  symlinkSync(place.at("outside"), place.at("work", "elsewhere"));
  const git = (...words: readonly string[]): void => {
    const who = ["-c", "user.name=a", "-c", "user.email=a@b.c"];
    assert.equal(spawnSync("git", [...who, ...words], { cwd: work }).status, 0, words.join(" "));
  };
  git("add", "-f", ".env", "sub", ".env.example");
  git("commit", "-q", "-m", "Add keys");
  place.put("work/.env", "the secret, changed\n");
  place.put("work/.env.example", "an example, changed\n");
  git("stash", "-q");
  place.put("work/.env", "the secret, changed again\n");
  place.put("work/.env.example", "an example, changed again\n");
  return place;
};

/** Each shows something of its own, so that it is known to have run. */
const WALKS: readonly (readonly [command: string, shows: RegExp])[] = [
  ["grep -r -e secret -e example .", /an example/],
  ["grep -Rhi -e THE.SECRET -e example . elsewhere", /an example/],
  ["grep -m 3 -rh -e secret -e example", /an example/],
  ["grep -rh --include='.e*' -e secret -e example .", /an example/],
  ["grep -rh -e secret -e ' ' b elsewhere/", /^$/],
  ["timeout 5 grep -rh -e secret -e example .", /an example/],
  ["find . -type f -exec cat {} +", /an example/],
  ["find . -name 'id_*' -exec head {} +", /^$/],
  ["find . -maxdepth 0 -exec grep -rh -e secret -e example {} +", /an example/],
  ["find elsewhere/ -exec cat {} ';'", /^$/],
  ["find . -name notes.txt -exec cat {} +", /^notes$/m],
  ["diff -r a b", /Only in b: other/],
  ["diff a b", /Only in b: other/],
  ["diff -r src .", /Only in \.: a\.txt/],
  ["diff -r elsewhere src", /Only in src: index/],
  ["git diff", /an example, changed again/],
  ["git diff --text", /an example, changed again/],
  ["git diff --binary HEAD", /an example, changed again/],
  ["git log -pa -1", /an example/],
  ["git show HEAD", /an example/],
  ["git stash show -p", /an example, changed/],
  ["git grep -ah -e secret -e example", /an example, changed again/],
  ["git grep -a -e secret -e example HEAD", /an example/],
  ["git diff-tree -p --text HEAD", /an example/],
];

const showsNoKeys = async (within: "with a sandbox" | "without"): Promise<void> => {
  using place = withKeys();
  const { work, home } = place;
  const around = within === "with a sandbox" ? { readOnlySandbox: await sandboxFor(place) } : {};
  for (const [text, shows] of WALKS) {
    const { stdout, refused } = await runPlan(planOf(text), { cwd: work, home, ...around });
    assert.equal(refused, undefined, text);
    assert.doesNotMatch(stdout, /the secret/, text);
    assert.match(stdout, shows, text);
  }
};

test("no walk shows a file that may contain secrets, nor what a link to one leads to", () => showsNoKeys("without"));

test("no walk in the read-only sandbox shows a file that may contain secrets", withBwrap, () =>
  showsNoKeys("with a sandbox"),
);

test("ripgrep searches no file that may contain secrets, whatever its arguments", withRipgrep, async () => {
  using place = withKeys();
  const { work, home } = place;
  for (const text of [
    ...[
      "rg -uuu -e secret -e example",
      "rg -uu -g '.env*' -e secret -e example .",
      "rg --hidden -m 3 -e secret -e example",
    ],
    ...[
      "rg --no-ignore --hidden --iglob '.E*' -e secret -e example",
      "rg -uu --type-add 'x:.env*' -tx -e secret -e example",
    ],
    ...["rg -uu --glob-case-insensitive -g '.ENV*' -e secret -e example", "timeout 5 rg -uu -e secret -e example"],
  ]) {
    const { stdout, refused } = await runPlan(planOf(text), { cwd: work, home });
    if (/^rg: not found/.test(refused ?? "")) return;
    assert.doesNotMatch(stdout, /the secret/, text);
    assert.match(stdout, /an example, changed again/, text);
  }
});

test("names are judged by where they lead, also in options and next to folders", async () => {
  using place = withKeys();
  const { work, home } = place;
  for (const text of [
    ...["cat b/notes.txt", "head -1 < b/notes.txt", "cat b/n*", "cd b && wc notes.txt", "diff a/notes.txt b"],
    ...["grep -f b/notes.txt a.txt", "grep --file=b/notes.txt a.txt", "grep -fb/notes.txt a.txt"],
    ...["git blame --ignore-revs-file=b/notes.txt a.txt", "git diff --no-index a/notes.txt b/notes.txt"],
  ]) {
    const result = await runPlan(planOf(text), { cwd: work, home });
    assert.deepEqual([result.stdout, result.exitCode], ["", 127], text);
    assert.match(result.refused ?? "", /notes\.txt leads to what may not be read/, text);
  }
  for (const text of ["git diff --no-index a src", "cd .. && git diff work/a outside", "git -C .. diff outside work"]) {
    const result = await runPlan(planOf(text), { cwd: work, home });
    assert.match(result.refused ?? "", /outside a repository git diff would read whole folders/, text);
  }
});

test("`..` after a link is resolved from its target, and a repository cannot make git show secrets", async () => {
  using place = withKeys();
  const { work, home } = place;
  place.put("far/inner/x", "");
  place.put("far/.env", "the secret\n");
  symlinkSync(place.at("far", ".env"), place.at("far", "plain"));
  symlinkSync(place.at("far", "inner"), place.at("work", "in"));
  const shown = async (text: string): Promise<string> => (await runPlan(planOf(text), { cwd: work, home })).stdout;
  for (const text of [
    ...["cat in/../plain", "cd in && cat ../plain", "grep -rh secret in/..", "find in/../ -exec cat {} +"],
    ...["diff -r in/.. docs", "git grep -h --untracked secret"],
  ])
    assert.doesNotMatch(await shown(text), /the secret/, text);
  for (const line of [".env* diff", "* diff", "[attr]open diff\n.env open", "sub/.ENV.local diff"]) {
    place.put("work/.gitattributes", `${line}\n`);
    const text = await shown("git diff HEAD");
    assert.doesNotMatch(text, /the secret/, line);
    assert.match(text, /Binary files a\/\.env and b\/\.env differ/, line);
  }
  place.put("work/.gitattributes", "*.md diff=markdown\n* text=auto\n");
  assert.match(await shown("git diff HEAD"), /an example, changed again/);
});

test("exclusions of a walk come last, also if the folder is too large to search beforehand", () => {
  using place = withKeys();
  const { work } = place;
  const here = { word: ".", path: work };
  const found = [{ path: place.at("work", ".env"), kind: "file" as const }];
  const few = withoutKeys("rg", ["-uu", "--iglob", ".env", "text", "."], {
    here,
    starts: [here],
    found,
    isWhole: true,
  });
  assert.deepEqual(few, ["-uu", "--iglob", ".env", "text", ".", "--no-ignore-messages", "--iglob=!.env"]);
  for (const [program, words] of [
    ["grep", ["-rh", "the secret", "."]],
    ["find", [".", "-type", "f", "-exec", "cat", "{}", "+"]],
    ["diff", ["-r", "src", "."]],
  ] as const) {
    const limited = withoutKeys(program, words, { here, starts: [here], found: [], isWhole: false });
    const { stdout, stderr } = spawnSync(program, limited, { cwd: work, encoding: "utf8" });
    assert.equal(stderr, "", program);
    assert.doesNotMatch(stdout, /the secret/, program);
  }
});

test(
  "in the read-only sandbox, files that may contain secrets are empty at any depth, and the rest is unchanged",
  withBwrap,
  async () => {
    using place = withKeys();
    const { work, home } = place;
    place.put("work/one/two/three/four/.env.production", "the secret\n");
    place.put("home/.local/share/opencode/auth.json", "the secret\n");
    place.put("home/.codex/auth.json", "the secret\n");
    place.put("home/dotfiles/gh/hosts.yml", "the secret\n");
    mkdirSync(place.at("home", ".config"), { recursive: true });
    symlinkSync(place.at("home", "dotfiles", "gh"), place.at("home", ".config", "gh"));
    const readOnlySandbox = await sandboxFor(place);
    const inSandbox = async (script: string, ...words: readonly string[]): Promise<string> => {
      const { stdout, stderr } = await runPlan(pipe(["bash", "-c", script, ...words]), {
        cwd: work,
        home,
        readOnlySandbox,
      });
      return stdout + stderr;
    };
    const script =
      "cat $(find . .. -name '*env*' -o -name '*rsa*' -o -name '*pem*' -o -name '*.json' -o -name hosts.yml)";
    const shown = await inSandbox(script, "bash", "..");
    assert.doesNotMatch(shown, /the secret/);
    assert.match(shown, /an example, changed again/);
    assert.equal(await inSandbox("find . -name .env.production -type f"), "./one/two/three/four/.env.production\n");
    assert.equal(await inSandbox("cat b/notes.txt"), "");
    assert.match(
      (await runPlan(planOf("git status --short"), { cwd: work, home, readOnlySandbox })).stdout,
      /^ M \.env$/m,
    );
  },
);

test("a pipe runs outside the read-only sandbox only if nothing in it reads a file", withBwrap, async () => {
  using place = withSecrets();
  const { work, home } = place;
  const readOnlySandbox = await sandboxFor(place);
  const read = pipe(["ls", "-d", "."], ["cat", `${home}/.ssh/id_rsa`]);
  assert.equal((await runPlan(read, { cwd: work, home, readOnlySandbox })).stdout, "");
  const told = await runPlan(planOf("ps aux | grep -c node"), { cwd: work, home, readOnlySandbox });
  assert.notEqual(told.stdout, "0\n");
});

test(
  "in the read-only sandbox nothing can be written, no host reached, no other process seen, and secrets are missing",
  withBwrap,
  async () => {
    using place = withSecrets();
    const { work, home } = place;
    const readOnlySandbox = await sandboxFor(place);
    const inSandbox = async (script: string): Promise<string> => {
      const { stdout, stderr } = await runPlan(pipe(["bash", "-c", script]), { cwd: work, home, readOnlySandbox });
      return stdout + stderr;
    };
    assert.match(await inSandbox(`: > ${work}/made`), /Read-only file system/);
    assert.equal(existsSync(place.at("work", "made")), false);
    assert.equal(await inSandbox("cd /proc && echo [0-9]*"), "1 2\n");
    assert.doesNotMatch(await inSandbox(`cat ${home}/.netrc ${home}/.ssh/*`), /secret/);
    assert.equal(await inSandbox("tail -n +2 /proc/net/route"), ""); // no way leads out
    assert.equal(await inSandbox("cd /proc; grep -h CapEff self/status"), "CapEff:\t0000000000000000\n");
  },
);

test("a plan gives the same output in the read-only sandbox as without it", withBwrap, async () => {
  using place = withSecrets();
  const { work, home } = place;
  const readOnlySandbox = await sandboxFor(place);
  for (const text of [
    "cat plain.txt | wc -l",
    "git log --oneline | head -2",
    "ls -l plain.txt",
    "find . -name '*.txt' | sort | xargs head -1",
    "grep -c plain plain.txt; echo $?",
    "sort plain.txt",
  ]) {
    const outside = await runPlan(planOf(text), { cwd: work, home });
    assert.deepEqual(await runPlan(planOf(text), { cwd: work, home, readOnlySandbox }), outside, text);
  }
});

test("programs in the read-only sandbox end with the program that started them", withBwrap, async () => {
  using place = ground();
  const seconds = `61.${process.pid}`;
  const script = `
    import { openReadOnlySandbox, runPlan } from ${JSON.stringify(new URL("../../src/index.ts", import.meta.url).href)};
    const opened = await openReadOnlySandbox({ mode: "required" });
    const plan = ${JSON.stringify(pipe(["sleep", seconds]))};
    setTimeout(() => process.kill(process.pid, "SIGKILL"), 700);
    await runPlan(plan, { cwd: "/", readOnlySandbox: opened.sandbox });`;
  const args = [...process.execArgv, "--input-type=module", "-e", script];
  const { signal } = spawnSync(process.execPath, args, { cwd: place.work });
  assert.equal(signal, "SIGKILL");
  assert.deepEqual(await processesLeftAfterWait(`sleep ${seconds}`), []);
});

test("a required but unavailable read-only sandbox refuses, and one that is switched off says so", async () => {
  const missing = { ok: false, reason: "bubblewrap (bwrap) is not installed" } as const;
  assert.deepEqual(await openReadOnlySandbox({ mode: "required", probe: missing }), {
    kind: "refused",
    reason: missing.reason,
  });
  assert.deepEqual(await openReadOnlySandbox({ mode: "auto", probe: missing }), {
    kind: "off",
    reason: missing.reason,
  });
  assert.deepEqual(await openReadOnlySandbox({ mode: "off" }), { kind: "off", reason: "switched off by the settings" });
});

test(
  "everyday walks run in a project below a home folder, in hidden folders of it too",
  await needs("@vscode/ripgrep"),
  async () => {
    using place = scratch();
    const home = place.at("home", "ann");
    for (const work of ["home/ann/project", "home/ann/code/.tools"]) {
      for (const name of ["src/a.ts", ".github/b.ts"]) place.put(`${work}/${name}`, "x\n");
      for (const [text, shows] of [
        ["grep -rn x src", "src/a.ts:1:x\n"],
        ["grep -rn x .github", ".github/b.ts:1:x\n"],
        ["rg x", "src/a.ts:x\n"],
        ["find . -name 'a*.ts' -exec grep -l x {} +", "./src/a.ts\n"],
        ["cd .github && grep -rh x", "x\n"],
      ] as const)
        assert.deepEqual(told(await runPlan(planOf(text), { cwd: place.at(work), home })), [shows, 0, undefined], text);
    }
  },
);
