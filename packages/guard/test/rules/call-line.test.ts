import assert from "node:assert/strict";
import { test } from "node:test";
import { readCallLine } from "../../src/rules/call-line.ts";

test("a line is a call, a refusal, or malformed", () => {
  assert.deepEqual(readCallLine('{"tool":"Write","args":{"file_path":"/a"},"id":7}'), {
    kind: "call",
    call: { tool: "Write", args: { file_path: "/a" } },
  });
  assert.deepEqual(readCallLine('{"tool":"Write","args":{"file_path":"/in","x":{"file_path":1},"file_path":"/out"}}'), {
    kind: "refused",
    reason: 'the key "file_path" is given twice',
  });
  assert.deepEqual(readCallLine('{"tool":"Write","args":{"file_path":"/in","file\\u005fpath":"/out"}}'), {
    kind: "refused",
    reason: 'the key "file_path" is given twice',
  });
  assert.deepEqual(readCallLine('{"tool":"Read","args":{"file_path":"/in"},"args":{}}').kind, "refused");
  assert.deepEqual(readCallLine('{"tool":"Read","args":{"file_path":"/in"},"input":{"file_path":"/out"}}'), {
    kind: "refused",
    reason: '"input" is given in addition to "args"; give only that',
  });
  const deep = `${'{"a":'.repeat(100_000)}1${"}".repeat(100_000)}`;
  assert.deepEqual(readCallLine(`{"tool":"Read","args":${deep}}`), {
    kind: "refused",
    reason: "it is nested too deeply",
  });
  for (const [line, reason] of [
    ["", "not valid JSON"],
    ["{", "not valid JSON"],
    ['{"tool":"Read",}', "not valid JSON"],
    ['// x\n{"tool":"Read"}', "not valid JSON"],
    [`${"[".repeat(200_000)}`, "not valid JSON"],
    ["[]", "not a JSON object"],
    ["null", "not a JSON object"],
    ["{}", '"tool" must be the name of a tool'],
    ['{"tool":7}', '"tool" must be the name of a tool'],
  ])
    assert.deepEqual(readCallLine(line ?? ""), { kind: "malformed", reason });
});

test("what a refusal quotes can neither hide nor reach a terminal", () => {
  const key = `\u001b[31m\u202e\u0085\u{e0041}${"k".repeat(100)}`;
  assert.deepEqual(readCallLine(`{"tool":"Read",${JSON.stringify(key)}:1,${JSON.stringify(key)}:2}`), {
    kind: "refused",
    reason: `the key "\\u001b[31m\\u202e\\u0085\\udb40\\udc41${"k".repeat(51)}…" is given twice`,
  });
});
