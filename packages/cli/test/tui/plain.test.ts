/** The terminal as plain lines: for screen readers, and where the cursor cannot be moved. */

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import type { RuntimeEvent } from "@prefork/runtime";
import { callTools, type SimScript, say, toolResults } from "@prefork/simulator";
import fc from "fast-check";
import { chooseView } from "../../src/tui/choose-view.ts";
import { PlainLines } from "../../src/tui/plain.ts";
import { newsIn, nothingTold } from "../../src/tui/plain-text.ts";
import { type Action, initialState, reduce } from "../../src/tui/state/index.ts";
import { captured } from "../captured.ts";
import { openGround } from "../print/ground.ts";
import { TerminalScreen } from "./pty.ts";
import { anyAction } from "./random-actions.ts";

/** A number that comes sooner counts as typed ahead. */
const GRACE_MS = 600;

const asksForTouch: SimScript = (request) =>
  toolResults(request).length > 0
    ? say("It is **done**.\n\nReally.")
    : callTools([{ name: "Bash", input: { command: "touch made.txt" } }]);

test("TERM=dumb: a trust question, a prompt, a tool's question, a command's page and Ctrl-C, all in lines", async () => {
  await using ground = await openGround(asksForTouch);
  ground.put(".prefork/settings.json", JSON.stringify({ permissions: { deny: ["Bash(rm *)"] } }));
  const env = { ...ground.env, TERM: "dumb" };
  await using screen = new TerminalScreen([], { cwd: ground.work, env, columns: 200, rows: 60 });
  await screen.shows(/Calls that are denied:[\s\S]*Bash\(rm \*\)[\s\S]*3: leave\nType a number and press Enter\./);
  await delay(GRACE_MS);
  screen.type("1\n");
  await screen.shows("The session is open.");
  screen.type("make \\\na file\n");
  await screen.shows(/You: make\s*\na file\nQuestion: The agent wants to use Bash:\n {4}touch made\.txt\n/);
  assert.equal(existsSync(ground.at("made.txt")), false);
  await delay(GRACE_MS);
  screen.type("1\n");
  await screen.shows(/Tool: Bash touch made\.txt[\s\S]*Agent: It is \*\*done\*\*\.\n+Really\.\nDone after/);
  assert.equal(existsSync(ground.at("made.txt")), true);
  screen.type("/theme\n");
  await screen.shows("press Enter alone to close the list");
  screen.type("\n/help\n");
  await screen.shows(/\/quit/);
  screen.press("ctrl+c");
  await screen.shows("Press Ctrl-C again to quit.");
  screen.press("ctrl+c");
  assert.equal(await screen.ended, 0);
  assert.ok(!screen.output.includes("\u001b"), "no control sequence");
});

test("whatever happens, plain lines have no control character, and no block is told twice", () => {
  fc.assert(
    fc.property(fc.array(anyAction, { maxLength: 40 }), (actions) => {
      let state = initialState({ cwd: "/w", columns: 80, rows: 24, now: 0 });
      let told = nothingTold;
      let at = 1_000_000;
      for (const { action, afterMs } of actions) {
        at += afterMs;
        state = reduce(state, action(at)).state;
        const news = newsIn(state, told);
        for (const line of news.lines) assert.doesNotMatch(line, /[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/u);
        told = news.told;
        assert.deepEqual(newsIn(state, told).lines, []);
      }
    }),
    { numRuns: 200 },
  );
});

const event = (body: object, agent = "main"): Action => ({
  type: "event",
  event: { at: 1_000, seq: 1, session: "s", level: "info", agent, ...body } as RuntimeEvent,
});

test("forks, to-dos and questions are told in lines, each once", () => {
  const actions: readonly Action[] = [
    event({ type: "todos_changed", todos: [{ content: "look", status: "in_progress" }] }),
    event({
      ...{ type: "fork_started", taskId: "task-1", runId: "r", parent: "main", label: "find callers" },
      ...{ querySource: "agent:fork", mode: "sync", skipTranscript: false, cacheKeyHash: "k" },
    }),
    event(
      {
        ...{ type: "question_opened", questionId: "q", callId: "c", tool: "Bash", args: { command: "a\nb" } },
        ...{ reason: "it writes", notes: [], rule: "Bash(a)" },
      },
      "task-1",
    ),
    event({ type: "ticked" }),
    event({ type: "task_ended", taskId: "task-1", end: "reported", turns: 1, usage: {}, usd: 0.01 }, "task-1"),
  ];
  let state = initialState({ cwd: "/w", columns: 80, rows: 24, now: 0 });
  let told = nothingTold;
  const lines: string[] = [];
  for (const action of actions) {
    state = reduce(state, action).state;
    const news = newsIn(state, told);
    told = news.told;
    lines.push(...news.lines);
  }
  assert.deepEqual(lines, [
    "To do: 0 of 1 done; now: look.",
    "Fork task-1 started: find callers",
    "Question: Fork task-1 (find callers) wants to use Bash:",
    "    a",
    "    b",
    "Why: it writes",
    "1: yes, once",
    "2: yes, always, by the rule Bash(a)",
    "3: no",
    "4: no, and stop",
    "Type a number and press Enter.",
    "Fork task-1 reported: find callers",
  ]);
});

test("plain lines are used where the cursor cannot be moved, and where a flag or the settings ask for them", async () => {
  await using ground = await openGround();
  const isPlain = async (flags: { readonly screenReader?: boolean }, env: object): Promise<boolean> => {
    const io = captured({ env: { ...ground.env, ...env } });
    const view = (await chooseView(flags, io))({
      ...{
        io,
        onKey: () => false,
        onSubmit: () => undefined,
        onHint: () => undefined,
        onScrollLimit: () => undefined,
        onEnd: () => undefined,
      },
      state: () => initialState({ cwd: "/w", columns: 80, rows: 24, now: 0 }),
    });
    return view instanceof PlainLines;
  };
  assert.equal(await isPlain({}, { TERM: "xterm" }), false);
  assert.equal(await isPlain({}, { TERM: "dumb" }), true);
  assert.equal(await isPlain({}, { TERM: undefined }), true);
  assert.equal(await isPlain({ screenReader: true }, { TERM: "xterm" }), true);
  ground.putHome(".prefork/settings.json", JSON.stringify({ terminal: { screenReader: true } }));
  assert.equal(await isPlain({}, { TERM: "xterm" }), true);
});
