/** Two terminals and one session: `prefork attach` in a second terminal shows what the first one shows. */

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { test } from "node:test";
import { callTools, lastUserText, type SimScript, say, toolResults } from "@prefork/simulator";
import { ShownEvents } from "../../src/tui/attached-session.ts";
import { openGround } from "../print/ground.ts";
import { TerminalScreen } from "./pty.ts";

const asksForTouch: SimScript = (request) =>
  lastUserText(request).includes("greet")
    ? say("Hello from the session.")
    : toolResults(request).length > 0
      ? say("It is done.")
      : callTools([{ name: "Bash", input: { command: "touch made.txt" } }]);

test("an attached terminal shows the conversation, answers its question, prompts, and leaves it running", async () => {
  await using ground = await openGround(asksForTouch);
  const place = { cwd: ground.work, env: ground.env };
  await using owner = new TerminalScreen([], place);
  await owner.shows("? help");
  owner.type("greet me\r");
  await owner.shows("Hello from the session.");
  await owner.idle();
  owner.type("make a file\r");
  await owner.shows("y once");

  // From another folder, and read-only: everything is shown, and nothing is sent.
  await using watcher = new TerminalScreen(["attach", "--read-only"], { ...place, cwd: ground.home, rows: 40 });
  await watcher.shows(/❯ greet me[\s\S]*Hello from the session\.[\s\S]*❯ make a file[\s\S]*touch made\.txt/);
  await watcher.shows(/Not answered here[\s\S]*watching process \d+ \(read-only\)/);
  watcher.press("ctrl+q", "y");
  await watcher.shows("only watches (--read-only)");
  assert.equal(existsSync(ground.at("made.txt")), false);

  await using second = new TerminalScreen(["attach"], { ...place, rows: 40 });
  await second.shows(/Hello from the session\.[\s\S]*The agent wants to use Bash[\s\S]*attached to process \d+/);
  second.press("ctrl+q", "y");
  await second.shows("It is done.");
  await owner.shows((text) => text.includes("It is done.") && !text.includes("Question"));
  await watcher.shows((text) => text.includes("It is done.") && !text.includes("Question"));
  assert.equal(existsSync(ground.at("made.txt")), true);

  // A prompt from the second terminal; commands that need the session itself say where they work.
  await second.idle();
  second.type("greet me again\r");
  await owner.shows(/❯ greet me again[\s\S]*Hello from the session\./);
  await second.idle();
  second.type("/clear\r");
  await second.shows("This terminal is attached to a session of another process.");

  // Ctrl-C twice detaches; the session continues, and its end is announced to who is still there.
  second.press("ctrl+c");
  await second.shows("Press Ctrl-C again to detach. The session continues.");
  second.press("ctrl+c");
  assert.equal(await second.ended, 0);
  assert.match(second.all(), /Detached\. Session (\w+) continues: prefork attach \1/);
  await owner.idle();
  owner.type("/quit\r");
  assert.equal(await owner.ended, 0);
  assert.equal(await watcher.ended, 0);
  assert.match(watcher.all(), /Session (\w+) has ended\. To resume it: prefork --resume \1/);
});

test("an answer whose beginning was missed is not streamed from its middle", () => {
  const shown = new ShownEvents();
  const accepted = (seq: number, type: "turn_started" | "text_grew" | "text_entered", agent = "main"): boolean =>
    shown.accepts({ seq, type, agent });
  assert.deepEqual(
    [
      ...[accepted(1, "turn_started"), accepted(2, "text_grew")],
      ...[
        accepted(3, "text_grew", "task-1"),
        accepted(4, "turn_started", "task-1"),
        accepted(5, "text_grew", "task-1"),
      ],
      ...[accepted(9, "text_grew"), accepted(10, "text_entered"), accepted(11, "text_grew", "task-1")],
      ...[accepted(12, "turn_started"), accepted(13, "text_grew")],
    ],
    [true, true, false, true, true, false, true, false, true, true],
  );
});
