/** Text from a model, a provider or a file cannot control the terminal. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { noUsage } from "@prefork/wire";
import { createPrinter } from "../../src/print/index.ts";
import { visible } from "../../src/visible.ts";
import { captured } from "../captured.ts";

test("controls and turned directions are shown as letters; lines, tabs and all other text stay", () => {
  assert.equal(
    visible("a\u001b[2Jb\u0007\r\nc\td\u202ee\u009bf\u0000"),
    "a\\u001b[2Jb\\u0007\nc\td\\u202ee\\u009bf\\u0000",
  );
  assert.equal(visible("größer 👩‍💻 → ok\n"), "größer 👩‍💻 → ok\n");
});

test("an answer, the reason of a stop, a denied command and a fork's label are shown so", () => {
  const io = captured({ isTerminal: true });
  const printer = createPrinter("text", io);
  const about = { seq: 1, at: 0, session: "s", level: "info", agent: "main" } as const;
  const denied = {
    type: "call_ended",
    callId: "1",
    tool: "Bash",
    text: "Not allowed: \u001b]0;x\u0007",
    fault: "denied",
    ms: 0,
  } as const;
  printer.event({ ...about, ...denied });
  printer.event({
    ...about,
    type: "fork_started",
    taskId: "t",
    runId: "r",
    parent: "main",
    querySource: "agent:builtin:fork",
    mode: "sync",
    skipTranscript: false,
    label: "one\u001b[1m\ntwo",
    session: "s",
    cacheKeyHash: "",
  });
  const result = {
    end: "provider-failed",
    reason: "bad\u001b[31m",
    text: "hi\u001b[2J",
    turns: 1,
    usage: noUsage,
    usd: 0,
  } as const;
  printer.finished({ sessionId: "abc", model: "m", engine: "e", result, ms: 1 });
  assert.equal(io.text(), "hi\\u001b[2J\n");
  assert.equal(
    io.errors(),
    "prefork: Bash: Not allowed: \\u001b]0;x\\u0007\n· fork: one\\u001b[1m\nprefork: stopped: bad\\u001b[31m (to resume: --resume abc)\n",
  );
});
