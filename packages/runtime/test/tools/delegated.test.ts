import assert from "node:assert/strict";
import { test } from "node:test";
import type { JsonObject } from "@prefork/wire";
import type { DelegatedCall } from "../../src/ports.ts";
import { bench } from "./tool-bench.ts";

const CALLS: readonly (readonly [string, "agent" | "sendMessage" | "mcpCall", JsonObject, string])[] = [
  [
    "Agent",
    "agent",
    { description: "a", prompt: "b", isolation: "worktree" },
    "Agents are not available in this session.",
  ],
  ["SendMessage", "sendMessage", { to: "a", message: "b" }, "Messages to agents are not available in this session."],
  [
    "McpCall",
    "mcpCall",
    { server: "a", tool: "b", args: { c: [1] } },
    "Tool servers are not available in this session.",
  ],
];

test("a delegated tool passes its call on, and says so if nobody can take it", async () => {
  await using b = await bench();
  for (const [tool, port, args, absent] of CALLS) {
    assert.deepEqual(await b.call(tool, args), { content: absent, fault: "failed" });
    const seen: unknown[] = [];
    const call: DelegatedCall = async (given, { callId, agent }) => {
      seen.push(given, callId, agent);
      return { text: "done", facts: { x: 1 } };
    };
    assert.deepEqual(await b.call(tool, args, { delegation: { [port]: call } }), { content: "done" });
    assert.deepEqual(seen, [args, "call-1", "main"]);
    const failing: DelegatedCall = async () => ({ text: "not so", isError: true });
    assert.deepEqual(await b.call(tool, args, { delegation: { [port]: failing } }), {
      content: "not so",
      fault: "failed",
    });
  }
});

test("TodoWrite replaces the session's list", async () => {
  await using b = await bench();
  const todos = [
    { content: "find it", status: "completed" },
    { content: "fix it", status: "in_progress" },
    { content: "test it", status: "pending" },
  ];
  assert.deepEqual(await b.call("TodoWrite", { todos }), { content: "1 completed, 1 in progress, 1 pending." });
  assert.deepEqual(b.todos(), todos);
  assert.deepEqual(await b.call("TodoWrite", { todos: [] }), { content: "The list is empty." });
  assert.deepEqual(b.todos(), []);
});
