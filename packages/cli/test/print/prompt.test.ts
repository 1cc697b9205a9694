/** The prompt: arguments, standard input, and additions to the system prompt. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { lastUserText, say } from "@prefork/simulator";
import { lastTexts, objectsIn, openGround } from "./ground.ts";

test("words are one prompt, also as a list that begins with dashes", async () => {
  await using ground = await openGround((request) => say(lastUserText(request)));
  assert.equal((await ground.prefork(["-p", "two", "words"])).out, "two words\n");
  assert.equal((await ground.prefork(["-p", "- one\n- two"])).out, "- one\n- two\n");
  assert.equal((await ground.prefork(["-p", "--", "--model is a flag"])).out, "--model is a flag\n");
});

test("standard input is added to the words, as what it is", async () => {
  await using ground = await openGround();
  const { code, err } = await ground.prefork(["-p", "sum this up"], { input: ["first", "", "  second"] });
  assert.deepEqual([code, err], [0, ""]);
  assert.equal(
    lastTexts(ground.bodies()[0]).at(-1),
    "sum this up\n\n<standard-input>\nfirst\n\n  second\n</standard-input>",
  );
});

test("standard input alone is the prompt", async () => {
  await using ground = await openGround();
  await ground.prefork(["-p"], { input: ["do this", "and that"] });
  assert.equal(lastTexts(ground.bodies()[0]).at(-1), "do this\nand that");
});

test("nothing asked, and more than is taken, are refused before anything is sent", async () => {
  await using ground = await openGround();
  const nothing = 'prefork: no prompt given. Try: prefork -p "fix the failing test"\n';
  assert.deepEqual(await ground.prefork(["-p"]), { code: 2, out: "", err: nothing });
  assert.deepEqual(await ground.prefork(["-p", " "], { input: ["", " "] }), { code: 2, out: "", err: nothing });
  assert.deepEqual(await ground.prefork(["-p", "look"], { input: ["x".repeat(2_000_001)] }), {
    code: 2,
    out: "",
    err: "prefork: standard input has 2000001 characters, and the limit is 2000000. Put the text in a file, and name the file in the prompt\n",
  });
  assert.deepEqual(ground.simulator.ledger(), []);
});

test("--append-system-prompt follows our system prompt, as a separate block", async () => {
  await using ground = await openGround();
  await ground.prefork(["-p", "speak"]);
  await ground.prefork(["-p", "--append-system-prompt", "Answer in verse.", "speak"]);
  const [plain = [], appended = []] = ground.bodies().map((body) => objectsIn(body.system).map(({ text }) => text));
  assert.equal(plain.length, 1);
  assert.deepEqual(appended, [...plain, "Answer in verse."]);
});

test("a resumed session keeps its system prompt, with a notice if another is given", async () => {
  await using ground = await openGround();
  await ground.prefork(["-p", "--append-system-prompt", "Answer in verse.", "speak"]);
  const { code, err } = await ground.prefork(["-p", "-c", "--append-system-prompt", "Answer in prose.", "speak"]);
  assert.deepEqual(
    [code, err],
    [0, "prefork: --append-system-prompt is ignored: a resumed session keeps its system prompt\n"],
  );
  const [first, second] = ground.bodies().map((body) => JSON.stringify(objectsIn(body.system).map(({ text }) => text)));
  assert.equal(second, first);
});

test("an input that stays open and silent delays neither the answer nor the end", async () => {
  await using ground = await openGround((request) => say(lastUserText(request)));
  const { ended } = ground.start(["-p", "speak"], { input: "open" });
  const { code, out, err } = await ended;
  assert.deepEqual([code, out], [0, "speak\n"]);
  assert.equal(
    err,
    "prefork: nothing arrived on standard input, so it is ignored; use </dev/null to avoid this wait, or pass slow input as a file\n",
  );
});

test("a prompt that takes its time on standard input is waited for", async () => {
  await using ground = await openGround((request) => say(lastUserText(request)));
  const { child, ended } = ground.start(["-p"], { input: "open" });
  setTimeout(() => child.stdin?.end("at last\n"), 3_500);
  const { code, out, err } = await ended;
  assert.deepEqual([code, out, err], [0, "at last\n", ""]);
});
