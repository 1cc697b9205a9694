/** The progress of running forks: the lines on a terminal, and those in a file. */

import assert from "node:assert/strict";
import { test } from "node:test";
import type { EventBody, RuntimeEvent } from "@prefork/runtime";
import { noUsage } from "@prefork/wire";
import { openLive } from "../../src/tour/index.ts";
import { captured } from "../captured.ts";

const HOSTILE = "\u001b[2J";

const happened = (agent: string, body: EventBody): RuntimeEvent => ({
  ...{ session: "s", at: 0, ...body },
  ...{ agent, seq: 1, level: "info" },
});

const started = (taskId: string, label: string): RuntimeEvent =>
  happened("main", {
    ...{ type: "fork_started", taskId, label, runId: "r", parent: "main", querySource: "agent:builtin:fork" },
    ...{ mode: "sync", skipTranscript: false, cacheKeyHash: "h" },
  });

const turned = (agent: string, turn: number): RuntimeEvent =>
  happened(agent, { type: "turn_started", turn, prefixHash: "p", bytes: 1, markers: [] });

const called = (agent: string, tool: string, args: Readonly<Record<string, string>>): RuntimeEvent =>
  happened(agent, { type: "call_proposed", callId: "c", tool, args });

const ended = (taskId: string, end: string): RuntimeEvent =>
  happened(taskId, { type: "task_ended", taskId, end, turns: 2, usage: noUsage, usd: 0 });

const EVENTS: readonly RuntimeEvent[] = [
  happened("main", {
    ...{
      type: "session_opened",
      sessionId: "s",
      resumed: false,
      cwd: "/work",
      model: "m",
      engine: "e",
      mode: "default",
    },
  }),
  turned("main", 1),
  started("t1", "Router"),
  started("t2", `Docs${HOSTILE}`),
  turned("t1", 1),
  called("t1", "Read", { file_path: "/work/src/a.ts" }),
  called("main", "Bash", { command: "ls" }),
  turned("t2", 1),
  called("t2", "Grep", { pattern: "x\ny", path: "src" }),
  turned("t1", 2),
  ended("t1", "reported"),
  ended("t2", "over-budget"),
];

/** The lines that a terminal shows after each write. */
const screens = (written: readonly string[]): readonly (readonly string[])[] =>
  written.map((text) =>
    text
      // biome-ignore lint/suspicious/noControlCharactersInRegex: terminals interpret these characters
      .replaceAll(/\u001b\[(?:\d*[AJK]|\?7[lh])|\r/g, "")
      .split("\n")
      .slice(0, -1)
      .map((line) => line.trimEnd()),
  );

test("on a terminal every fork has a line with its present activity, which is removed at the end", () => {
  const written: string[] = [];
  const io = captured({ isTerminal: true, err: (text) => written.push(text) });
  const live = openLive(io);
  for (const event of EVENTS) live.show(event);
  const docs = "  Docs\\u001b[2J";
  assert.deepEqual(screens(written), [
    ["  Router   starting"],
    ["  Router   starting", `${docs} starting`],
    ["  Router   turn 1  asking the engine", `${docs} starting`],
    ["  Router   turn 1  Read src/a.ts", `${docs} starting`],
    ["  Router   turn 1  Read src/a.ts", `${docs} turn 1  asking the engine`],
    ["  Router   turn 1  Read src/a.ts", `${docs} turn 1  Grep x y in src`],
    ["  Router   turn 2  asking the engine", `${docs} turn 1  Grep x y in src`],
    ["  Router   reported after 2 turns: Read", `${docs} turn 1  Grep x y in src`],
    ["  Router   reported after 2 turns: Read", `${docs} over-budget after 1 turn: Grep`],
  ]);
  assert.ok(written.at(-1)?.startsWith("\u001b[2A\r"), "each write begins where the last one did");
  live.clear();
  live.clear();
  assert.equal(written.slice(9).join(""), "\u001b[2A\r\u001b[0J");
  assert.equal(io.text(), "");
});

test("in a file there is one line for each ended fork", () => {
  const io = captured();
  const live = openLive(io);
  for (const event of EVENTS) live.show(event);
  live.clear();
  live.clear();
  assert.deepEqual(
    [io.text(), io.errors()],
    ["  Router   reported after 2 turns: Read\n  Docs\\u001b[2J over-budget after 1 turn: Grep\n\n", ""],
  );
});
