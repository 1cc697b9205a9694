/** `prefork check-command` answers as its document says; every example there is run here. */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { checkCommandCommand } from "../src/commands/check-command.ts";
import { UsageError } from "../src/io.ts";
import { captured } from "./captured.ts";

const lines = readFileSync(new URL("../../../docs/permissions.md", import.meta.url), "utf8").split("\n");

type Asked = { readonly words: readonly string[]; readonly input?: readonly string[] };

const run = async ({ words, input = [] }: Asked): Promise<readonly string[]> => {
  const io = captured({ input: () => lineByLine(input) });
  await checkCommandCommand(io).parseAsync([...words], { from: "user" });
  return io.text().split("\n").slice(0, -1);
};

async function* lineByLine(given: readonly string[]): AsyncGenerator<string> {
  yield* given;
}

const verdictOf = async (cmd: string): Promise<{ verdict: string; reason: string; readOnly: boolean }> => {
  const [line = ""] = await run({ words: [cmd] });
  return JSON.parse(line) as { verdict: string; reason: string; readOnly: boolean };
};

/** The rows below the heading row with exactly these cells. */
const rowsUnder = (...heading: readonly string[]): readonly (readonly string[])[] => {
  const cellsOf = (line: string): readonly string[] =>
    line
      .split(/(?<!\\)\|/)
      .slice(1, -1)
      .map((cell) => cell.trim().replaceAll("\\|", "|"));
  const at = lines.findIndex((line) => cellsOf(line).join("|") === heading.join("|"));
  assert.notEqual(at, -1, `the document has no table ${heading.join(", ")}`);
  const end = lines.findIndex((line, index) => index > at && !line.startsWith("|"));
  return lines.slice(at + 2, end).map(cellsOf);
};

/** All that stands in code marks, without them. */
const codesIn = (cell = ""): readonly string[] => [...cell.matchAll(/`([^`]+)`/g)].map(([, code = ""]) => code);

test("each refused command of the document gets its verdict and its reason", async () => {
  const rows = rowsUnder("command", "verdict", "reason");
  assert.ok(rows.length >= 10);
  for (const [command, verdict, reason] of rows) {
    const answer = await verdictOf(codesIn(command)[0] ?? "");
    assert.deepEqual([answer.verdict, answer.reason], [verdict, reason], command);
  }
});

test("each form of the document is read", async () => {
  for (const [form, example] of rowsUnder("form", "example")) {
    const [command = ""] = codesIn(example);
    // The one example that goes on in the next line.
    const text = command.endsWith("\\") ? `${command}\n -l # all\npwd` : command;
    assert.equal((await verdictOf(text)).verdict, "read-only", form);
  }
});

test("each program of the document is known, by name or by what it may be asked", async () => {
  const given: Readonly<Record<string, string>> = {
    "[": "[ -f a ]",
    awk: "awk '{print $1}' a",
    basename: "basename a",
    cmp: "cmp a b",
    comm: "comm a b",
    diff: "diff a b",
    dirname: "dirname a",
    egrep: "egrep a b",
    expr: "expr 1 + 1",
    fgrep: "fgrep a b",
    find: "find . -exec wc -l {} +",
    grep: "grep a b",
    gzip: "gzip -l a.gz",
    iconv: "iconv -f latin1 -t utf-8 a",
    join: "join a b",
    jq: "jq . a.json",
    "command -v": "command -v git",
    printf: "printf a",
    readlink: "readlink a",
    realpath: "realpath a",
    sed: "sed -n 1p a",
    seq: "seq 3",
    stat: "stat a",
    tar: "tar -tf a.tar",
    test: "test -f a",
    timeout: "timeout 5 ls",
    tr: "tr a b",
    type: "type git",
    unzip: "unzip -l a.zip",
    which: "which git",
    xargs: "xargs wc -l",
    zcat: "zcat a.gz",
  };
  for (const [what, programs] of rowsUnder("what", "programs")) {
    for (const name of codesIn(programs)) {
      if (name.startsWith("-")) continue;
      const command = what === "git" ? gitForm(name) : (given[name] ?? name);
      const { verdict, reason } = await verdictOf(command);
      assert.equal(verdict, "read-only", `${command}: ${reason}`);
    }
  }
});

const GIT_FORMS: Readonly<Record<string, string>> = {
  grep: "grep a",
  stash: "stash list",
  worktree: "worktree list",
  config: "config --get user.name",
};

const gitForm = (name: string): string => `git ${GIT_FORMS[name] ?? name}`;

test("the lines of the document are what the command prints", async () => {
  const examples = lines.flatMap((line, at) =>
    line.startsWith("$ ") && line.includes("prefork check-command") ? [{ line, printed: lines[at + 1] }] : [],
  );
  assert.ok(examples.length >= 3);
  for (const { line, printed } of examples) assert.deepEqual(await run(askedBy(line)), [printed], line);
});

/** The words of an example as the shell that it is shown in would give them. */
const askedBy = (line: string): Asked => {
  const shown = /^\$ (?:echo (.*) \| )?prefork check-command ?(.*)$/.exec(line);
  const wordsOf = (text = ""): readonly string[] =>
    execFileSync("/bin/bash", ["-c", `printf '%s\\0' ${text}`], { encoding: "utf8" })
      .split("\0")
      .slice(0, -1);
  const words = shown?.[2] ? wordsOf(shown[2]) : [];
  return shown?.[1] === undefined ? { words } : { words, input: wordsOf(shown[1]) };
};

test("lines are answered in order, empty ones are passed over, and a folder may be named", async () => {
  const input = ['{"cmd": "pwd", "cwd": "/usr"}', "", '{"cmd": "rm x"}', '{"cmd": "pwd", "cwd": "/"}'];
  const answers = (await run({ words: ["--run"], input })).map((line) => JSON.parse(line) as Record<string, unknown>);
  assert.deepEqual(
    answers.map(({ cmd, readOnly, stdout, exitCode }) => [cmd, readOnly, stdout, exitCode]),
    [
      ["pwd", true, "/usr\n", 0],
      ["rm x", false, undefined, undefined],
      ["pwd", true, "/\n", 0],
    ],
  );
});

test("nothing runs without --run", async () => {
  const [line = ""] = await run({ words: ["pwd"] });
  assert.deepEqual(Object.keys(JSON.parse(line) as object), ["cmd", "readOnly", "verdict", "reason", "plan"]);
});

test("a line that is none ends with its number", async () => {
  for (const [line, complaint] of [
    ["{", /^line 2: not valid JSON$/],
    ["{}", /^line 2: "cmd" must be a string$/],
    ["null", /^line 2: "cmd" must be a string$/],
    ['{"cmd": "ls", "cwd": 1}', /^line 2: "cwd" must be a string$/],
  ] as const) {
    const failed = run({ words: [], input: ['{"cmd": "ls"}', line] });
    await assert.rejects(failed, (error: unknown) => error instanceof UsageError && complaint.test(error.message));
  }
});
