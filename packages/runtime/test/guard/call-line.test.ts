import assert from "node:assert/strict";
import { test } from "node:test";
import { readCallLine } from "../../src/guard/call-line.ts";

test("a line is a call, a refusal, or malformed", () => {
  assert.deepEqual(readCallLine('{"tool":"Write","args":{"file_path":"/a"},"id":7}'), {
    kind: "call",
    call: { tool: "Write", args: { file_path: "/a" } },
  });
  assert.deepEqual(readCallLine('{"tool":"Write","args":{"file_path":"/in","x":{"file_path":1},"file_path":"/out"}}'), {
    kind: "refused",
    reason: 'the key "file_path" stands twice',
  });
  assert.deepEqual(readCallLine('{"tool":"Write","args":{"file_path":"/in","file\\u005fpath":"/out"}}'), {
    kind: "refused",
    reason: 'the key "file_path" stands twice',
  });
  assert.deepEqual(readCallLine('{"tool":"Read","args":{"file_path":"/in"},"args":{}}').kind, "refused");
  for (const [line, reason] of [
    ["", "not JSON"],
    ["{", "not JSON"],
    ['{"tool":"Read",}', "not JSON"],
    ['// x\n{"tool":"Read"}', "not JSON"],
    [`${"[".repeat(200_000)}`, "not JSON"],
    ["[]", "not a JSON object"],
    ["null", "not a JSON object"],
    ["{}", '"tool" must be the name of a tool'],
    ['{"tool":7}', '"tool" must be the name of a tool'],
  ])
    assert.deepEqual(readCallLine(line ?? ""), { kind: "malformed", reason });
});
