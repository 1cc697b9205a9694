import assert from "node:assert/strict";
import { mkdirSync, renameSync, symlinkSync } from "node:fs";
import { after, test } from "node:test";
import { scratch } from "@prefork/testing/scratch";
import type { JsonObject } from "../../src/json.ts";
import type { ToolCall } from "../../src/rules/call.ts";
import {
  allowAll,
  applyFilter,
  both,
  type FilterContext,
  only,
  readOnly,
  type ToolFilter,
} from "../../src/rules/filters.ts";
import { classify, memoryOnly } from "../../src/rules/index.ts";

const place = scratch();
after(() => place[Symbol.dispose]());
const MEMORY = place.at("state/prefork/memory");
mkdirSync(MEMORY, { recursive: true });
const context: FilterContext = { classify };

const call = (tool: string, args: JsonObject = {}): ToolCall => ({ tool, args });
const write = (file_path: string): ToolCall => call("Write", { file_path, content: "x" });

type Row = readonly [ToolCall, true | RegExp];

const check = (name: string, filter: ToolFilter, rows: readonly Row[]): void => {
  for (const [asked, expected] of rows) {
    test(`${name}: ${asked.tool} ${JSON.stringify(asked.args).slice(0, 90)}`, () => {
      const verdict = applyFilter(filter, asked, context);
      if (expected === true) return assert.deepEqual(verdict, { allowed: true });
      assert.equal(verdict.allowed, false);
      assert.match(verdict.allowed ? "" : verdict.reason, expected);
      assert.match(verdict.allowed ? "" : verdict.reason, /\. Here you may /, "says what may be done instead");
    });
  }
};

const reading: readonly Row[] = [
  [call("Read", { file_path: "/work/a.ts" }), true],
  [call("FileRead", { file_path: "/work/a.ts", offset: 10, limit: 20 }), true],
  [call("Read", { file_path: "src/a.ts" }), true],
  [call("Glob", { pattern: "**/*.md" }), true],
  [call("Glob", { pattern: "*", path: "../other" }), true],
  [call("Grep", { pattern: "café", path: "/work" }), true],
  [call("Grep", { pattern: "x", "-n": true, "-A": 2, output_mode: "content", head_limit: 5, multiline: false }), true],
  [call("Grep", { pattern: "--pre=sh" }), true],
  [call("Grep", { pattern: "x", "--pre": "sh" }), /"--pre" is no argument of it/],
  [call("Grep", { pattern: "x", "-A": "2" }), /"-A" must be a number from 0 on/],
  [call("Read", { file_path: "/a", limit: -1 }), /"limit" must be a number from 0 on/],
  [call("Read", { file_path: "/a", offset: 1.5 }), /"offset" must be a number from 0 on/],
  [call("Read", { file_path: "/a", pages: "1" }), /"pages" is no argument of it; it takes file_path, offset and limit/],
  [call("Bash", { command: "ls", description: "look", timeout: 1000, run_in_background: false }), true],
  [call("Bash", { command: "ls", dangerouslyDisableSandbox: true }), /"dangerouslyDisableSandbox" is no argument/],
  [call("Bash", { command: "ls", env: "A=1" }), /"env" is no argument/],
  [call("Bash", { command: "git status --short | head -5" }), true],
  [call("Bash", { command: "cd src && rg -n form" }), true],
  [call("Read"), /Read: "file_path" is missing/],
  [call("Read", { file_path: "" }), /"file_path" is missing/],
  [call("Read", { file_path: 7 }), /"file_path" must be text/],
  [call("Read", { file_path: ["/a"] }), /"file_path" must be text/],
  [call("Read", { file_path: null }), /"file_path" must be text/],
  [call("Read", { file_path: "/a", limit: "all" }), /"limit" must be a number from 0 on/],
  [call("Read", { path: "/a" }), /"path" is given in addition to "file_path"/],
  [call("Read", { arguments: { file_path: "/a" } }), /not wrapped in "arguments"/],
  [call("Read", { input: '{"file_path":"/a"}' }), /not wrapped in "input"/],
  [call("Read", { file_path: "/a", params: {} }), /not wrapped in "params"/],
  [call("Read", { file_path: "/proc/self/environ" }), /is not a regular file/],
  [call("Read", { file_path: "/dev/sda" }), /is not a regular file/],
  [call("Grep", { pattern: "k", path: "../../../proc/self" }), /is not a regular file/],
  [call("Read", { file_path: "/home/me/.ssh/id_ed25519" }), /may contain secrets/],
  [call("Read", { file_path: "/a\n/b" }), /control characters/],
  [call("Read", { file_path: `/proc/${"x".repeat(5_000)}` }), /"file_path" is longer than any path\./],
  [call("Bash"), /"command" is missing/],
  [call("Bash", { command: "" }), /"command" is missing/],
  [call("Bash", { command: ["ls"] }), /"command" must be text/],
  [call("Bash", { command: "ls", cmd: "rm x" }), /"cmd" is given in addition to "command"/],
  [call("Bash", { args: { command: "ls" } }), /not wrapped in "args"/],
  [call("Bash", { command: "rm -rf x" }), /not provably read-only/],
  [call("Bash", { command: "ls > out" }), /not provably read-only/],
  [call("Bash", { command: "echo $(id)" }), /not provably read-only/],
  [call("REPL", { code: "1 + 1" }), /code runs only where each of its calls is judged/],
  [call("Agent", { prompt: "x" }), /Agent is not allowed/],
  [call("SendMessage", { to: "x" }), /SendMessage is not allowed/],
  [call("TaskStop", { id: "x" }), /TaskStop is not allowed/],
  [call("McpCall", { server: "s", tool: "t", args: {} }), /McpCall is not allowed/],
  [call("mcp__files__write", { path: "/a" }), /there is no tool "mcp__files__write"/],
  [call("write"), /there is no tool "write"/],
  [call("constructor"), /there is no tool "constructor"/],
];

check("readOnly", readOnly, [
  ...reading,
  [call("TodoWrite", { todos: [{ content: "x", status: "pending" }] }), true],
  [call("TaskOutput", { id: "x" }), true],
  [write(`${MEMORY}/a.md`), /Write is not allowed in a read-only run/],
  [call("Edit", { file_path: "/a", old_string: "a", new_string: "b" }), /Edit is not allowed/],
]);

check("memoryOnly", memoryOnly(MEMORY), [
  ...reading,
  [write(`${MEMORY}/a.md`), true],
  [write(`${MEMORY}/new/folder/a.md`), true],
  [call("FileWrite", { file_path: `${MEMORY}/日本.md`, content: "" }), true],
  [call("FileEdit", { file_path: `${MEMORY}/a.md`, old_string: "a", new_string: "b", replace_all: true }), true],
  [call("MultiEdit", { file_path: `${MEMORY}/a.md`, edits: [{ old_string: "a", new_string: "b" }] }), true],
  [
    call("Write", { file_path: `${MEMORY}/a.md`, content: "x", note: "x" }),
    /"note" is no argument of it; it takes file_path and content\./,
  ],
  [call("Write", { file_path: `${MEMORY}/a.md`, content: "x", dangerouslyDisableSandbox: true }), /"dangerouslyDis/],
  [call("Write", JSON.parse(`{"file_path":"${MEMORY}/a","content":"","__proto__":1}`)), /"__proto__" is no argument/],
  [
    call("Write", { file_path: `${MEMORY}/a`, File_Path: "/etc/x", content: "x" }),
    /"File_Path" is given in addition to/,
  ],
  [call("Write", { file_path: `${MEMORY}/a`, content: "\ud800" }), /"content" contains half a character/],
  [call("Edit", { file_path: `${MEMORY}/a`, edits: [{ old_string: "a", new_string: "b" }] }), true],
  [
    call("Edit", { file_path: `${MEMORY}/a`, old_string: "a", edits: [{ old_string: "a", new_string: "b" }] }),
    /"edits" is given in addition to "old_string"/,
  ],
  [
    call("MultiEdit", { file_path: `${MEMORY}/a`, edits: [{ old_string: "a", new_string: "b", file_path: "/etc/x" }] }),
    /"file_path" does not belong in "edits", which take old_string, new_string and replace_all/,
  ],
  [call("MultiEdit", { file_path: `${MEMORY}/a`, edits: { old_string: "a" } }), /"edits" must be a list/],
  [call("MultiEdit", { file_path: `${MEMORY}/a`, edits: ["a"] }), /"edits" must contain objects/],
  [
    call("MultiEdit", { file_path: `${MEMORY}/a`, edits: [{ old_string: 1 }] }),
    /in "edits", "old_string" must be text/,
  ],
  [call("NotebookEdit", { notebook_path: `${MEMORY}/a.ipynb`, new_source: "x" }), /NotebookEdit is not allowed/],
  [call("Write", { content: "x" }), /"file_path" is missing/],
  [call("Write", { file_path: `${MEMORY}/a`, content: { text: "x" } }), /"content" must be text/],
  [
    call("Write", { file_path: `${MEMORY}/a`, content: "x", path: "/etc/x" }),
    /"path" is given in addition to "file_path"/,
  ],
  [call("Write", { file_path: `${MEMORY}/a`, content: "x", filePath: "/etc/x" }), /"filePath" is given in addition to/],
  [
    call("Write", { file_path: `${MEMORY}/a`, content: "x", options: { path: "/etc" } }),
    /"options" contains nested values/,
  ],
  [call("Write", { arguments: { file_path: `${MEMORY}/a`, content: "x" } }), /not wrapped in "arguments"/],
  [call("Write", { tool_input: { file_path: `${MEMORY}/a`, content: "x" } }), /not wrapped in "tool_input"/],
  [write("/etc/passwd"), /the path is outside/],
  [write(`${MEMORY}-other/a`), /the path is outside/],
  [write(`${MEMORY}/../x`), /the path is outside/],
  [write(`${MEMORY}/sub/../../x`), /the path is outside/],
  [write(`${MEMORY}/sub/../x.md`), true],
  [write(`${MEMORY}/sub/..`), /names a folder/],
  [write(`${MEMORY}/cost in $USD.md`), true],
  [write("memory/a.md"), /the path is relative/],
  [write("~/memory/a.md"), /~ is not expanded/],
  [write(`file://${MEMORY}/a`), /a URL/],
  [write(`${MEMORY}/a\u0000.md`), /NUL/],
  [write(MEMORY), /names a folder/],
  [write(`${MEMORY}/sub/`), /names a folder/],
  [write(`${MEMORY}/.git/hooks/pre-commit`), /\.git is protected/],
  [write(`${MEMORY}/.prefork/settings.json`), /\.prefork is protected/],
  [call("TodoWrite", { todos: [] }), /TodoWrite is not allowed/],
]);

check("only", only(["Grep", "FileRead", "mcp__docs__search"]), [
  [call("Grep", { pattern: "x" }), true],
  [call("Read", { file_path: "/a" }), true],
  [call("FileRead", { file_path: "/a" }), true],
  [call("McpCall", { server: "docs", tool: "search", args: { query: "x" } }), true],
  [call("mcp__docs__search", { query: { nested: true } }), true],
  [call("Read", { input: {} }), /not wrapped in "input"/],
  [call("McpCall", { server: "docs", tool: "delete", args: {} }), /McpCall is not allowed/],
  [call("McpCall", { server: "docs__search", tool: "x", args: {} }), /McpCall is not allowed/],
  [call("McpCall", { server: ["docs"], tool: "search" }), /McpCall is not allowed/],
  [call("Bash", { command: "ls" }), /Bash is not allowed/],
  [call("Glob", { pattern: "*" }), /Here you may use: Grep, FileRead, mcp__docs__search$/],
]);

test("allowAll allows what it does not know", () => {
  assert.deepEqual(allowAll(call("anything", { arguments: {} }), context), { allowed: true });
});

test("a memory folder is looked up when the filter is made: a link works, a missing one is an error", () => {
  symlinkSync(MEMORY, place.at("linked"));
  const filter = memoryOnly(place.at("linked"));
  assert.deepEqual(filter(write(place.at("linked", "a")), context), { allowed: true });
  assert.deepEqual(filter(write(`${MEMORY}/a`), context), { allowed: true });
  assert.equal(filter(write(place.at("a")), context).allowed, false);
  assert.deepEqual(filter.memory?.names, [MEMORY, place.at("linked")]);
  assert.equal(both(readOnly, filter).memory, filter.memory);
  place.put("a file", "");
  for (const [folder, why] of [
    ...["memory", "~/memory", "/", "/a/..", ""].map((name) => [name, /not an absolute folder/] as const),
    [place.at("missing"), /there is no such folder/],
    [place.at("a file"), /it is not a folder/],
  ] as const)
    assert.throws(() => memoryOnly(folder), why, folder);
  assert.throws(() => memoryOnly([MEMORY, place.path]), /it is not .*memory$/);
  assert.throws(() => memoryOnly([]), /needs a name/);
});

test("a memory folder that replaced another one is not written to, and the refusal says so", () => {
  mkdirSync(place.at("first"));
  const filter = memoryOnly(place.at("first"));
  const asked = write(place.at("first", "a"));
  assert.deepEqual(filter(asked, context), { allowed: true });
  renameSync(place.at("first"), place.at("moved"));
  assert.match(JSON.stringify(filter(asked, context)), /the memory folder .*first is gone/);
  mkdirSync(place.at("first"));
  assert.match(JSON.stringify(filter(asked, context)), /the memory folder .*first was replaced since/);
});

test("code may run only if every call it makes passes the same filter", () => {
  const filter = memoryOnly(MEMORY);
  const judge = (...inner: readonly ToolCall[]) => filter(call("REPL", { code: "…" }), { classify, inner });
  assert.deepEqual(judge(), { allowed: true });
  assert.deepEqual(judge(write(`${MEMORY}/a`), call("Bash", { command: "ls" })), { allowed: true });
  assert.match(
    JSON.stringify(judge(call("Glob", { pattern: "*" }), write("/etc/x"))),
    /the code calls Write: the path is outside/,
  );
  assert.match(JSON.stringify(judge(call("REPL", { code: "…" }))), /the code calls REPL: code runs only where/);
});

test("if changes cannot be watched, a memory run only reads", () => {
  const unwatched = { classify, unwatched: "over 50000 files" };
  const filter = memoryOnly(MEMORY);
  assert.deepEqual(filter(call("Read", { file_path: "/a" }), unwatched), { allowed: true });
  for (const asked of [write(`${MEMORY}/a`), call("Bash", { command: "ls" }), call("REPL")])
    assert.match(JSON.stringify(filter(asked, unwatched)), /changes cannot be watched: over 50000 files/);
});

test("composed filters allow what both allow, and report the first denial", () => {
  const filter = both(only(["Bash", "Read"]), readOnly);
  assert.deepEqual(filter(call("Bash", { command: "ls" }), context), { allowed: true });
  assert.match(JSON.stringify(filter(call("Bash", { command: "rm x" }), context)), /not provably read-only/);
  assert.match(JSON.stringify(filter(call("Grep", { pattern: "x" }), context)), /Here you may use: Bash, Read/);
});

test("a filter or a classifier that throws denies", () => {
  const broken = (): never => {
    throw new Error("bug");
  };
  const denied = { allowed: false, reason: "Read could not be judged. Go on without it" };
  assert.deepEqual(applyFilter(broken, call("Read", { file_path: "/a" }), context), denied);
  assert.deepEqual(both(allowAll, broken)(call("Read"), context), denied);
  assert.equal(applyFilter(readOnly, call("Bash", { command: "ls" }), { classify: broken }).allowed, false);
});

test("arguments that are not an object are refused", () => {
  for (const args of [null, "x", [1], 5, undefined])
    assert.match(
      JSON.stringify(applyFilter(readOnly, { tool: "Glob", args } as unknown as ToolCall, context)),
      /one flat object/,
    );
});
