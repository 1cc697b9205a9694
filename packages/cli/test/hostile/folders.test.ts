import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { checkAndRun, git, type Place, place, repository } from "./place.ts";

/** Names that careless code would treat as options, commands or shell syntax. */
const names = (trap: string): readonly string[] => [
  ...[
    "-o",
    "-i",
    "-n",
    "-exec",
    "-delete",
    "-print0",
    "--output=out",
    "--help",
    "--version",
    "-rf",
    "-x",
    "-X",
    "-C",
    "-z",
  ],
  ...[
    "--pre=sh",
    `--pre=${trap.replaceAll("/", "\\")}`,
    "--checkpoint=1",
    "--checkpoint-action=exec=sh trap.sh",
    "--compress-program=sh",
  ],
  ...[
    ";id",
    "$(id)",
    "`id`",
    "|id",
    "&id",
    ">out",
    "<in",
    "a b",
    "'",
    '"',
    "\\",
    "*",
    "?",
    "[a]",
    "{a,b}",
    "~",
    "!",
    "!!",
    "#x",
    "%s%n",
  ],
  ...[
    "(",
    ")",
    ",",
    "x=1",
    "a\nrm b",
    "a\ttab",
    "e\u0301",
    "-",
    "--",
    "---",
    "@file",
    ":(top)",
    ":!x",
    "HEAD",
    "-c",
    "ls",
    "cat",
    "git",
  ],
];

const hostileFolder = (at: Place): string => {
  mkdirSync(at.at("files"));
  for (const name of names(at.trap)) writeFileSync(at.at("files", name), "text\n");
  writeFileSync(at.at("files/trap.sh"), `#!/bin/sh\n${at.trap}\n`);
  chmodSync(at.at("files/trap.sh"), 0o755);
  symlinkSync(at.trap, at.at("files/link"));
  return at.at("files");
};

const COMMANDS: readonly string[] = [
  ...[
    "ls *",
    "ls -la *",
    "cat ./-o",
    "wc -l [-]*",
    "sort *.sh",
    "head -n1 [a-z]*",
    "file *",
    "stat -c %n *",
    "du -a *",
    "echo *",
  ],
  ...[
    "grep -l text [!p]*",
    "rg -l text *",
    "rg --files | sort",
    "find * -maxdepth 0",
    "find . -name '*' -type f -exec wc -c {} +",
  ],
  ...[
    "find . -type f -exec sort {} +",
    "find . -type f -exec sed -n 1p {} +",
    "find . -type f -exec awk '{print}' {} +",
    "find . -type f | sort | head",
  ],
  ...[
    "ls | xargs -n1 echo",
    "ls | xargs ls -d",
    "find . -type f -print0 | xargs -0 wc -c",
    "find . -type f -print0 | xargs -0 sort",
  ],
  ...[
    "find . -type f -print0 | xargs -0 sed -n 1p",
    "find . -type f -print0 | xargs -0 rg text",
    "ls | xargs rg text",
    "ls | xargs sort",
    "ls | xargs file",
  ],
  ...[
    "ls | xargs -I{} echo {}",
    "ls -1 | xargs -d '\\n' stat -c %n",
    "find . -name *",
    "printf '%s\\n' *",
    "sha256sum [!p]*",
    "tail -n1 [!p]*",
  ],
  ...[
    "git status -s",
    "git add *",
    "git log -- *",
    "git diff *",
    "git grep text -- *",
    "git ls-files *",
    "git check-ignore *",
    "git diff --no-index ./-o ./-i",
  ],
  ...[
    "tree",
    "fd text",
    "cut -c1 ./-*",
    "diff ./-o ./-i",
    "comm ./-o ./-i",
    "uniq ./-o",
    "xxd ./-o",
    "awk 1 ./x=1",
    "sed -n p ./-*",
    "jq -R . ./-*",
  ],
];

test("names of files are names, whatever they look like", async () => {
  using at = place();
  repository(at.at("files-of-git"));
  const folder = hostileFolder(at);
  git(folder, "init", "-q");
  git(folder, "add", "--", "trap.sh");
  git(folder, "commit", "-q", "-m", "one");
  const tree = (): string =>
    spawnSync(
      "sh",
      ["-c", "find . -print0 | sort -z | tr '\\0' '\\n'; find . -type f -print0 | sort -z | xargs -0 sha256sum"],
      { cwd: folder, encoding: "utf8" },
    ).stdout;
  const before = tree();
  const answers = await checkAndRun(COMMANDS, { cwd: folder });
  assert.ok(!at.sprung());
  assert.equal(tree(), before);
  const answered = answers.filter(({ readOnly }) => readOnly).map(({ cmd }) => cmd);
  for (const cmd of ["ls *", "wc -l [-]*", "find . -type f -exec sort {} +", "git status -s"])
    assert.ok(answered.includes(cmd), cmd);
  assert.ok(!answered.includes("git add *"));
  const listed = answers.find(({ cmd }) => cmd === "printf '%s\\n' *")?.stdout ?? "";
  assert.ok(
    listed.includes("./-exec\n") && listed.includes("$(id)\n") && !/^-/m.test(listed),
    "a name became an option",
  );
});

test("a folder too full for one command is a plain error", async () => {
  using at = place();
  mkdirSync(at.at("many"));
  for (let number = 0; number < 9_000; number += 1) writeFileSync(at.at("many", `${"n".repeat(240)}${number}`), "");
  const [listed, all] = await checkAndRun(["ls -U * | wc -l", "ls | wc -l"], { cwd: at.at("many") });
  assert.equal(all?.stdout?.trim(), "9000");
  assert.ok(listed?.exitCode !== undefined);
});

test("a pattern that would take for ever is answered at once", { timeout: 120_000 }, async () => {
  using at = place();
  writeFileSync(at.at("a".repeat(250)), "");
  const commands = [
    `ls ${"*a".repeat(60)}*b`,
    `ls ${"*".repeat(3_000)}b`,
    `ls ${"?*".repeat(100)}b`,
    "ls [z-a]*",
    "ls [!a-]*",
    `ls ${"[a-z]*".repeat(80)}b`,
  ];
  const answers = await checkAndRun(commands, { cwd: at.path });
  assert.deepEqual(
    answers.map(({ readOnly }) => readOnly),
    commands.map(() => true),
  );
});

test("a command that never ends is ended, what it left running too, and a pipe is not waited for", {
  timeout: 90_000,
}, async () => {
  using at = place();
  spawnSync("mkfifo", [at.at("pipe")]);
  const { classify, runPlan } = await import("@prefork/guard");
  const run = async (text: string, limit: { readonly timeoutMs?: number } = {}) => {
    const judged = classify(text);
    assert.ok(judged.verdict === "read-only", `${text}: ${judged.reason}`);
    return runPlan(judged.plan, { cwd: at.path, ...limit });
  };
  // A sparse file: takes no disk space, and longer to read than anyone waits. Another run may search for its own at the same time.
  const endless = `endless-zeros-${process.pid}`;
  spawnSync("truncate", ["-s", "500G", at.at(endless)]);
  for (const text of [`sha256sum ${endless}`, `sha256sum ${endless} | head -1`]) {
    assert.equal((await run(text, { timeoutMs: 700 })).ended, "timed-out", text);
  }
  for (const text of ["cat pipe", "sort pipe | head -1", "sed -n 1p < pipe"]) {
    const { ended, exitCode } = await run(text);
    assert.deepEqual([ended, exitCode], ["finished", 127], text);
  }
  const running = `ps -eo args | grep -c '^sha256sum ${endless}'`;
  assert.equal(spawnSync("sh", ["-c", running], { encoding: "utf8" }).stdout.trim(), "0");
});
