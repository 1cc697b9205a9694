import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import {
  linkSync,
  mkdirSync,
  mkdtempDisposableSync,
  readdirSync,
  readFileSync,
  realpathSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { checkPathCommand } from "../src/commands/check-path.ts";
import { captured } from "./captured.ts";

const place = () => {
  const folder = mkdtempDisposableSync(join(realpathSync(tmpdir()), "prefork-check-path-"));
  mkdirSync(join(folder.path, "root"));
  return folder;
};

const checkPath = async (argv: readonly string[], lines: readonly (string | object)[]) => {
  const io = captured({
    input: async function* () {
      for (const line of lines) yield typeof line === "string" ? line : JSON.stringify(line);
    },
  });
  const failure = await checkPathCommand(io)
    .parseAsync([...argv], { from: "user" })
    .then(
      () => undefined,
      (error: Error) => `${error.name}: ${error.message}`,
    );
  const answers = io.text().split("\n").filter(Boolean);
  return { answers: answers.map((line) => JSON.parse(line) as { allowed: boolean; reason: string }), failure };
};

test("one answer a call, in order, and nothing is written", async () => {
  using folder = place();
  const root = join(folder.path, "root");
  symlinkSync(folder.path, join(root, "out"));
  const write = (file_path: string) => ({ tool: "Write", args: { file_path, content: "x" } });
  const { answers, failure } = await checkPath(
    ["--root", root],
    [
      write(join(root, "notes.md")),
      write(join(root, "out/notes.md")),
      write(`${root}-sibling/notes.md`),
      write("notes.md"),
      "",
      { tool: "FileRead", args: { file_path: "/etc/hosts" } },
      { tool: "Bash", args: { command: "ls -l" } },
      { tool: "Bash", args: { command: "rm x" } },
      { tool: "REPL", args: { code: "1" } },
      { tool: "Write", args: { arguments: write(join(root, "x")).args } },
      { tool: "Write", args: "text" },
      `{"tool":"Write","args":{"file_path":"${root}/a","content":"","file_path":"/etc/a"}}`,
    ],
  );
  assert.equal(failure, undefined);
  assert.deepEqual(
    answers.map(({ allowed }) => allowed),
    [true, false, false, false, true, true, false, false, false, false, false],
  );
  assert.deepEqual(Object.keys(answers[0] ?? {}), ["allowed", "reason"]);
  assert.match(answers[1]?.reason ?? "", /^out is a link, and links are not followed$/);
  assert.match(answers[10]?.reason ?? "", /is given twice/);
});

test("--write does what the tools do", async () => {
  using folder = place();
  const root = join(folder.path, "root");
  const { answers } = await checkPath(
    ["--root", root, "--write"],
    [
      { tool: "Write", args: { file_path: join(root, "deep/notes.md"), content: "one two" } },
      { tool: "Edit", args: { file_path: join(root, "deep/notes.md"), old_string: "two", new_string: "three" } },
      { tool: "Write", args: { file_path: join(folder.path, "outside.md"), content: "x" } },
    ],
  );
  assert.deepEqual(
    answers.map(({ allowed }) => allowed),
    [true, true, false],
  );
  assert.equal(readFileSync(join(root, "deep/notes.md"), "utf8"), "one three");
});

test("bad input is one line that names its position, after the earlier answers", async () => {
  using folder = place();
  const root = join(folder.path, "root");
  const good = { tool: "Glob", args: { pattern: "*" } };
  const { answers, failure } = await checkPath(["--root", root], [good, "", "{oops", good]);
  assert.deepEqual([answers.length, failure], [1, "UsageError: line 3: not valid JSON"]);
  assert.equal(
    (await checkPath(["--root", root], [{ args: {} }])).failure,
    'UsageError: line 1: "tool" must be the name of a tool',
  );
  writeFileSync(join(folder.path, "file"), "");
  assert.match(
    (await checkPath(["--root", join(folder.path, "file")], [])).failure ?? "",
    /^UsageError: option '--root': .*not a folder$/,
  );
  assert.match(
    (await checkPath(["--root", join(folder.path, "none")], [])).failure ?? "",
    /^UsageError: option '--root': .*no such file/,
  );
  assert.match(
    (await checkPath(["--root", "/"], [])).failure ?? "",
    /^UsageError: option '--root': \/ cannot be a root/,
  );
  assert.equal((await checkPath(["--root", ""], [])).failure, "UsageError: option '--root': the folder name is empty");
  assert.match((await checkPath([], [])).failure ?? "", /^UsageError: required option '--root <dir>'/);
});

test("hostile calls are refused one by one, and the lines after them are answered", async () => {
  using folder = place();
  const root = join(folder.path, "root");
  const file_path = join(root, "a");
  const good = { tool: "Write", args: { file_path, content: "x" } };
  const deep = `${'{"a":'.repeat(50_000)}1${"}".repeat(50_000)}`;
  const { answers, failure } = await checkPath(
    ["--root", root],
    [
      `{"tool":"Write","args":{"file_path":"${file_path}","content":${deep}}}`,
      { ...good, input: good.args },
      { tool: "Write", args: [good.args] },
      { tool: "Write", args: JSON.stringify(good.args) },
      { tool: "Write", args: { ...good.args, dangerouslyDisableSandbox: true } },
      { tool: "Write", args: { ...good.args, content: "\ud800" } },
      { tool: "Write", args: { file_path: `${file_path}\0.md`, content: "x" } },
      { tool: "Write", args: { file_path: `${root}/${"n".repeat(1_000_000)}`, content: "x" } },
      { tool: "MultiEdit", args: { file_path, edits: [{ file_path: "/etc/x", old_string: "a", new_string: "b" }] } },
      { tool: "NotebookEdit", args: { notebook_path: file_path, new_source: "x" } },
      { tool: "write", args: good.args },
      { tool: "__proto__", args: good.args },
      good,
    ],
  );
  assert.equal(failure, undefined);
  assert.deepEqual(
    answers.map(({ allowed }) => allowed),
    [...Array<boolean>(12).fill(false), true],
  );
});

test("--write touches nothing but a plain file of one name inside the folder", async () => {
  using folder = place();
  const root = join(folder.path, "root");
  const outside = join(folder.path, "outside");
  writeFileSync(outside, "untouched");
  symlinkSync(outside, join(root, "link"));
  symlinkSync(join(folder.path, "none"), join(root, "dangling"));
  symlinkSync("/dev/null", join(root, "device"));
  linkSync(outside, join(root, "hard"));
  mkdirSync(join(root, "folder"));
  execFileSync("mkfifo", [join(root, "pipe")]);
  mkdirSync(join(root, "bare/objects"), { recursive: true });
  mkdirSync(join(root, "bare/refs"));
  const names = ["link", "dangling", "device", "hard", "folder", "pipe", "bare/HEAD", ".npmrc", ".git/config"];
  const { answers } = await checkPath(
    ["--root", root, "--write"],
    names.flatMap((name) => {
      const file_path = join(root, name);
      return [
        { tool: "Write", args: { file_path, content: "x" } },
        { tool: "Edit", args: { file_path, old_string: "untouched", new_string: "x" } },
      ];
    }),
  );
  assert.deepEqual(
    answers.map(({ allowed }) => allowed),
    names.flatMap(() => [false, false]),
  );
  assert.equal(readFileSync(outside, "utf8"), "untouched");
  assert.deepEqual(readdirSync(folder.path).sort(), ["outside", "root"]);
  assert.deepEqual(readdirSync(root).sort(), ["bare", "dangling", "device", "folder", "hard", "link", "pipe"]);
});

test("a root that is a link is pinned to what it leads to, and goes by both names", async () => {
  using folder = place();
  const root = join(folder.path, "root");
  const alias = join(folder.path, "alias");
  symlinkSync(root, alias);
  const { answers } = await checkPath(
    ["--root", alias, "--write"],
    [
      { tool: "Write", args: { file_path: join(alias, "a"), content: "1" } },
      { tool: "Write", args: { file_path: join(root, "b"), content: "2" } },
      { tool: "Write", args: { file_path: alias, content: "3" } },
    ],
  );
  assert.deepEqual(
    answers.map(({ allowed }) => allowed),
    [true, true, false],
  );
  assert.deepEqual(readdirSync(root).sort(), ["a", "b"]);
});
