/** The terminal in a real terminal device: it draws, asks, restores. */

import assert from "node:assert/strict";
import { existsSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { callTools, type SimScript, say, toolResults } from "@prefork/simulator";
import { objectsIn, openGround } from "../print/ground.ts";
import { TerminalScreen } from "./pty.ts";

const asksForTouch: SimScript = (request) =>
  toolResults(request).length > 0
    ? say("It is done.")
    : callTools([{ name: "Bash", input: { command: "touch made.txt" } }]);

test("a prompt, a question that takes no key that was typed for something else, and a restored terminal", async () => {
  await using ground = await openGround(asksForTouch);
  ground.putHome(".prefork/settings.json", JSON.stringify({ terminal: { notify: "both" } }));
  await using screen = new TerminalScreen([], { cwd: ground.work, env: ground.env });
  await screen.shows("? help");
  await screen.writes("\u001b[?1004h");
  screen.type("make a file\r");
  screen.press("\u001b[O"); // the person looks elsewhere
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
  assert.ok(screen.output.includes("\u0007\u001b]9;Prefork needs an answer\u0007"), "the person was called");
  assert.ok(screen.output.includes("\u001b[?1004l"));
  assert.match(screen.all(), /To continue this session: prefork --resume \w+/);
  assert.ok(screen.output.endsWith("\n") && screen.output.includes("\u001b[?25h"), "the cursor is visible again");
});

const STATUS_PROGRAM = `
const facts = JSON.parse(require("node:fs").readFileSync(0, "utf8"));
const keys = Object.keys(process.env).filter((name) => /KEY|TOKEN/.test(name));
const { session, model, mode, cwd, context, cost } = facts;
process.stdout.write(["\\u001b[31mmine:", typeof session, model, mode, cwd === process.cwd(), context.used > 0,
  context.window, cost.session > 0, cost.today >= cost.session, keys.length].join(" ") + "\\nsecond line");`;

test("the status line shows today's money and the user's own line, and a cache miss says its cause once", async () => {
  await using ground = await openGround(() => say("Hello."));
  const settings = { terminal: { theme: "light", statusCommand: [process.execPath, "-e", STATUS_PROGRAM] } };
  ground.putHome(".prefork/settings.json", JSON.stringify(settings));
  await using screen = new TerminalScreen([], { cwd: ground.work, env: ground.env, columns: 140 });
  await screen.shows("? help");
  screen.paste("say hello ".repeat(1_000));
  await screen.shows("[paste #1");
  screen.press("enter");
  await screen.shows(/\$0\.\d+ \(today \$\d/);
  await screen.shows(/^ ?mine: string claude\S+ default true true \d+ true true 0$/m);
  assert.ok(!screen.text().includes("second line"));
  assert.ok(screen.output.includes("\u001b[38;5;242m"), "the light theme");
  // A picture that is dropped on the terminal is sent, and named where it was dropped.
  const png = Buffer.from("89504e470d0a1a0a0000000d49484452000002800000028008060000000000000000", "hex");
  writeFileSync(ground.at("a shot.png"), png);
  screen.type("look at ");
  screen.paste(`'${ground.at("a shot.png")}'`);
  await screen.shows("look at [image a shot.png, 640×640]");
  screen.press("enter");
  await screen.shows((text) => (text.match(/Hello\./g) ?? []).length === 2);
  const { content } = objectsIn(ground.bodies().at(-1)?.messages).at(-1) ?? {};
  assert.deepEqual(
    objectsIn(content).map(({ type, text }) => [type, text]),
    [
      ["image", undefined],
      ["text", "look at [image a shot.png, 640×640]"],
    ],
  );
  // The provider loses its cache, which nothing that was sent explains.
  ground.simulator.reset();
  screen.type("and again\r");
  await screen.prints("Cache miss (main agent): ");
  ground.simulator.reset();
  screen.type("once more\r");
  await screen.shows((text) => (text.match(/Hello\./g) ?? []).length === 4);
  assert.equal(screen.all().match(/Cache miss/g)?.length, 1);
  await screen.idle(); // otherwise the first key stops the agent
  screen.press("ctrl+c", "ctrl+c");
  assert.equal(await screen.ended, 0);
});

/** The agent delegates; its sub-agent reads a file, and then takes as long as the test wants. */
const delegating =
  (released: () => Promise<void>): SimScript =>
  (request) => {
    const said = JSON.stringify(request.body.messages);
    if (!said.includes("delegate it")) {
      if (toolResults(request).length === 0) return callTools([{ name: "Read", input: { file_path: "notes.txt" } }]);
      return { ...say("The notes are short."), hold: released() };
    }
    if (said.includes("The notes are short.")) return say("The report came.");
    if (said.includes("tool_use")) return say("I go on meanwhile.");
    return callTools([{ name: "Agent", input: { description: "look at the notes", prompt: "Read the notes." } }]);
  };

test("without forks a sub-agent is waited for in view; Ctrl-B, or the set time, moves it to the background", async () => {
  const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const;
  let isSecond = false;
  await using ground = await openGround(delegating(() => gates[isSecond ? 1 : 0].promise));
  ground.put("notes.txt", "short\n");
  await using screen = new TerminalScreen(["--no-forks"], { cwd: ground.work, env: ground.env });
  await screen.shows("? help");
  screen.type("delegate it\r");
  await screen.shows(/◌ Agent look at the notes[\s\S]*1 running.*Ctrl-B[\s\S]*◌ look at the notes thinking +2 turns/);
  assert.doesNotMatch(screen.text(), /I go on/);
  screen.press("ctrl+b");
  await screen.shows(/⑂ Agent look at the notes\n\nI go on meanwhile\.[\s\S]*1 running[\s\S]*◌ look at the notes/);
  assert.doesNotMatch(screen.text(), /Ctrl-B/);
  await screen.idle();
  gates[0].resolve();
  await screen.shows(/1 reported[\s\S]*The report came\./);

  // A new session reads the settings.
  isSecond = true;
  ground.putHome(".prefork/settings.json", '{"forks": {"autoBackgroundMs": 300}}');
  await screen.idle();
  screen.type("/clear\r");
  await screen.shows(/New conversation\./);
  screen.type("delegate it\r");
  await screen.shows(/New conversation\.[\s\S]*I go on meanwhile\.[\s\S]*◌ look at the notes/);
  await screen.idle();
  gates[1].resolve();
  await screen.shows(/New conversation\.[\s\S]*The report came\./);
});
