/** `prefork tour` on a terminal: it fits the width, updates lines in place, and can be interrupted. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as after } from "node:timers/promises";
import { stripVTControlCharacters } from "node:util";
import { run } from "../../src/main.ts";
import { captured } from "../captured.ts";
import { openTourGround } from "./tour-ground.ts";

test("in a narrow terminal every line fits, in colour, and the commands at the end work when pasted", async () => {
  await using ground = await openTourGround();
  const env = { TMPDIR: ground.temporary, COLUMNS: "40", FORCE_COLOR: "1" };
  const { code, out, err } = await ground.start(["tour", "--forks", "1"], { env }).ended;
  assert.deepEqual([code, err], [0, ""]);
  assert.ok(out.includes("\u001b[32m▸ one fork"), "the row of the forks is green");
  const lines = stripVTControlCharacters(out).split("\n");
  assert.deepEqual(
    lines.filter((line) => [...line].length > 40),
    [],
  );
  const next = lines.slice(lines.indexOf("Next:") + 1).filter((line) => line !== "" && !line.startsWith("#"));
  assert.deepEqual(next, ['npx prefork -p "Count files per folder"', "npx prefork explain", "npx prefork demo"]);
  for (const command of next) {
    const words = [...command.matchAll(/"([^"]+)"|(\S+)/g)].map(([, quoted, word]) => quoted ?? word ?? "");
    const pasted = await ground.start(words.slice(2)).ended;
    assert.deepEqual([command, pasted.code, pasted.err], [command, 0, ""]);
  }
});

test("an interrupt exits with 130 and leaves nothing, whenever it comes", async () => {
  await using ground = await openTourGround();
  /** The moments: the repository exists; the forks start; one of them calls a tool; one has reported. */
  for (const shown of ["5. Docs", "starting", "turn 2  Grep", "reported after"]) {
    const interrupt = new AbortController();
    const heed = (text: string): void => {
      if (text.includes(shown)) interrupt.abort();
    };
    const io = captured({
      ...{ isTerminal: true, signal: interrupt.signal, env: { ...ground.env, TMPDIR: ground.temporary } },
      ...{ out: heed, err: heed },
    });
    const code = await run(["tour", "--keep"], io);
    assert.deepEqual([shown, interrupt.signal.aborted, code, ground.left()], [shown, true, 130, []]);
  }
  const started = ground.tour("--keep");
  while (ground.left().length === 0 && started.child.exitCode === null) await after(5);
  started.child.kill("SIGINT");
  const { code, signal, err } = await started.ended;
  assert.deepEqual({ code, signal, err, left: ground.left() }, { code: 130, signal: null, err: "", left: [] });
});

test("on a terminal the live lines are removed before the reports are printed", async () => {
  await using ground = await openTourGround();
  const shown: string[] = [];
  const show = (text: string): void => void shown.push(text);
  const env = { ...ground.env, TMPDIR: ground.temporary };
  const io = captured({ isTerminal: true, colour: true, env, out: show, err: show });
  assert.deepEqual([await run(["tour", "--forks", "2"], io), ground.left()], [0, []]);
  const [introduction = "", ...rest] = shown;
  assert.match(introduction, /A real agent and two forks/);
  assert.ok(rest.slice(0, -4).every((text) => text.includes("\u001b[2K  Schema ")));
  assert.deepEqual(rest.slice(-4, -1), [
    "\u001b[2A\r\u001b[0J",
    "\r\u001b[2KRunning the same work in two other ways, to compare …",
    "\r\u001b[2K",
  ]);
  assert.ok(rest.at(-1)?.startsWith("\u001b[1mSchema\u001b[22m reported: two calls"));
});
