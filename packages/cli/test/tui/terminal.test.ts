/** The terminal in a real terminal device: it draws, asks, restores. */

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { test } from "node:test";
import { callTools, type SimScript, say, toolResults } from "@prefork/simulator";
import { openGround } from "../print/ground.ts";
import { TerminalScreen } from "./pty.ts";

const asksForTouch: SimScript = (request) =>
  toolResults(request).length > 0
    ? say("It is done.")
    : callTools([{ name: "Bash", input: { command: "touch made.txt" } }]);

test("a prompt, a question that takes no key that was typed for something else, and a restored terminal", async () => {
  await using ground = await openGround(asksForTouch);
  await using screen = new TerminalScreen([], { cwd: ground.work, env: ground.env });
  await screen.shows("? help");
  screen.type("make a file\r");
  await screen.shows("y once");
  screen.type("yes, it is fine"); // typing goes to the input line
  await screen.shows("yes, it is fine");
  assert.equal(existsSync(ground.at("made.txt")), false);
  screen.press("ctrl+q", "y");
  await screen.shows("It is done.");
  assert.equal(existsSync(ground.at("made.txt")), true);
  await screen.idle();
  screen.press("ctrl+c", "ctrl+c", "ctrl+c"); // clears the input, then quits
  assert.equal(await screen.ended, 0);
  assert.match(screen.all(), /To continue this session: prefork --resume \w+/);
  assert.ok(screen.output.endsWith("\n") && screen.output.includes("\u001b[?25h"), "the cursor is visible again");
});
