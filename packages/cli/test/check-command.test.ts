/** `prefork check-command` answers as its documentation says; every example there runs here. */

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempDisposableSync, readdirSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { checkCommandCommand } from "../src/commands/check-command.ts";
import { UsageError } from "../src/io.ts";
import { captured } from "./captured.ts";
import { uses } from "./optional.ts";

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

/** The texts inside backticks. */
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
    // The one example that continues on the next line.
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
    "timeout SECONDS": "timeout 5 ls",
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

/** The arguments of an example, as the shell would pass them. */
const askedBy = (line: string): Asked => {
  const shown = /^\$ (?:echo (.*) \| )?prefork check-command ?(.*)$/.exec(line);
  const wordsOf = (text = ""): readonly string[] =>
    execFileSync("/bin/bash", ["-c", `printf '%s\\0' ${text}`], { encoding: "utf8" })
      .split("\0")
      .slice(0, -1);
  const words = shown?.[2] ? wordsOf(shown[2]) : [];
  return shown?.[1] === undefined ? { words } : { words, input: wordsOf(shown[1]) };
};

test("lines are answered in order, empty lines are skipped, and a line may name a folder", uses("bwrap"), async () => {
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
    ["{", "line 2: not valid JSON"],
    ["null", "line 2: not a JSON object"],
    ["{}", 'line 2: "cmd" must be a string'],
    ['{"cmd": ["ls"]}', 'line 2: "cmd" must be a string'],
    ['{"cmd": "ls", "cwd": 1}', 'line 2: "cwd" must be a string'],
    ['{"cmd": "ls", "cwd": null}', 'line 2: "cwd" must be a string'],
    ['{"cmd": "ls", "cmd": "rm x"}', 'line 2: the key "cmd" is given twice'],
    ['{"cmd": "ls", "cwd": "/", "c\\u0077d": "/usr"}', 'line 2: the key "cwd" is given twice'],
  ] as const) {
    const failed = run({ words: [], input: ['{"cmd": "ls"}', line] });
    await assert.rejects(failed, (error: unknown) => {
      assert.ok(error instanceof UsageError);
      assert.equal(error.message, complaint);
      return true;
    });
  }
});

test("a command is judged in any folder, and does not run in a missing one", uses("bwrap"), async () => {
  const cwds = ["/none/\u001b\u202e", "/etc/passwd", "/usr\u0000"];
  const input = cwds.map((cwd) => JSON.stringify({ cmd: "git log", cwd }));
  const judged = (await run({ words: [], input })).map((line) => (JSON.parse(line) as { readOnly: boolean }).readOnly);
  assert.deepEqual(judged, [true, true, true]);
  const ran = (await run({ words: ["--run"], input })).map((line) => {
    const { stdout, exitCode, refused } = JSON.parse(line) as Record<string, unknown>;
    return [stdout, exitCode, refused];
  });
  assert.deepEqual(ran, [
    ["", 127, 'the cwd "/none/\\u001b\\u202e" is not a folder'],
    ["", 127, 'the cwd "/etc/passwd" is not a folder'],
    ["", 127, 'the cwd "/usr\\u0000" is not a folder'],
  ]);
});

test("--cwd is the folder of lines without one, and must exist", uses("bwrap"), async () => {
  const input = ['{"cmd": "pwd"}', '{"cmd": "pwd", "cwd": "bin"}', '{"cmd": "pwd", "cwd": "/"}'];
  const printed = (await run({ words: ["--run", "--cwd", "/usr"], input })).map(
    (line) => (JSON.parse(line) as { stdout: string }).stdout,
  );
  assert.deepEqual(printed, ["/usr\n", "/usr/bin\n", "/\n"]);
  await assert.rejects(run({ words: ["--cwd", "/none", "ls"] }), /option '--cwd': "\/none" is not a folder/);
});

test("unknown keys are reported once each and change nothing", async () => {
  const input = ['{"cmd": "pwd", "why": 1}', '{"cmd": "ls", "why": {"cmd": "rm"}, "cmd ": 1}'];
  const io = captured({ input: () => lineByLine(input) });
  await checkCommandCommand(io).parseAsync([], { from: "user" });
  assert.deepEqual(io.text().match(/"readOnly":\w+/g), ['"readOnly":true', '"readOnly":true']);
  assert.equal(
    io.errors(),
    `prefork: the key "why" is ignored; only "cmd" and "cwd" are used
prefork: the key "cmd " is ignored; only "cmd" and "cwd" are used
`,
  );
});

test("a command that the runner does not start is named next to the exit code", uses("bwrap"), async () => {
  using folder = mkdtempDisposableSync(join(tmpdir(), "prefork-check-command-"));
  execFileSync("mkfifo", [join(folder.path, "pipe")]);
  const [line = ""] = await run({ words: ["--run", "--cwd", folder.path, "cat pipe"] });
  const { readOnly, stdout, exitCode, refused } = JSON.parse(line) as Record<string, unknown>;
  assert.deepEqual([readOnly, stdout, exitCode], [true, "", 127]);
  assert.match(String(refused), /pipe is not a regular file/);
  const [plain = ""] = await run({ words: ["--run", "--cwd", folder.path, "test -f none"] });
  assert.deepEqual(Object.keys(JSON.parse(plain) as object).slice(-2), ["stdout", "exitCode"]);
});

test("an answer is one line under every reading of what ends a line", async () => {
  const [line = "", ...more] = await run({ words: ["echo a\u2028b\u0085c"] });
  assert.deepEqual(more, []);
  assert.match(line, /^[ -~]+$/);
  assert.equal((JSON.parse(line) as { cmd: string }).cmd, "echo a\u2028b\u0085c");
});

const MAIN = fileURLToPath(new URL("../src/main.ts", import.meta.url));

const started = (...words: readonly string[]) =>
  spawn(process.execPath, [...process.execArgv, MAIN, "check-command", ...words], { stdio: "pipe" });

test(
  "an interrupt ends it while it waits for lines, and while a command runs, and leaves nothing running",
  uses("bwrap"),
  async (t) => {
    if (process.platform !== "linux") return t.skip("processes are looked for in /proc");
    using folder = mkdtempDisposableSync(join(tmpdir(), "prefork-check-command-"));
    const sparse = join(folder.path, "sparse");
    writeFileSync(sparse, "");
    truncateSync(sparse, 2 ** 40);
    for (const [signal, code] of [
      ["SIGINT", 130],
      ["SIGTERM", 143],
    ] as const) {
      const child = started("--run", "--cwd", folder.path);
      const ended = once(child, "close");
      child.stdin.write('{"cmd": "pwd"}\n');
      const [first] = (await once(child.stdout, "data")) as [Buffer];
      assert.match(first.toString(), /"exitCode":0/);
      child.kill(signal);
      assert.deepEqual(await ended, [code, null], `waiting, ${signal}`);
    }
    const child = started("--run", `sha256sum ${sparse}`);
    const ended = once(child, "close");
    while (readersOf(sparse).length === 0) await setTimeout(20);
    child.kill("SIGTERM");
    assert.deepEqual(await ended, [143, null], "running");
    while (readersOf(sparse).length > 0) await setTimeout(20);
  },
);

/** The processes that were started with this argument. */
const readersOf = (word: string): readonly string[] =>
  readdirSync("/proc").filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0").slice(0, 2).at(1) === word;
    } catch {
      return false;
    }
  });

test("a line that is none ends it although more could come", async () => {
  const child = started();
  const ended = once(child, "close");
  child.stdin.write("{oops\n");
  assert.deepEqual(await ended, [2, null]);
});
