import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { test } from "node:test";
import { callTools, type SimAnswer, say } from "@prefork/simulator";
import { type Answers, assertGoesOn, endOf, followed, openGround } from "./fault-ground.ts";

const touch = (name: string): { readonly name: string; readonly input: { readonly command: string } } => ({
  name: "Bash",
  input: { command: `touch ${name}` },
});

const cut = (answer: SimAnswer): SimAnswer => ({ ...answer, stopReason: "max_tokens" });

/** Answers no provider should give, and what becomes of them. */
const odd: Readonly<Record<string, { readonly answer: Answers[string]; readonly end: string; readonly text: string }>> =
  {
    "a call that is cut in the middle is not run, and the model is told": {
      answer: cut(callTools([{ name: "Bash", inputJson: '{"command":"touch ra' }])),
      end: "done: end",
      text: "saw ! Not run: the answer was cut at its length limit before this call was complete. Send smaller calls, fewer at a time.",
    },
    "a call that looks whole in an answer that was cut is not run either": {
      answer: cut(callTools([touch("ran")])),
      end: "done: end",
      text: "saw ! Not run: the answer was cut at its length limit before this call was complete. Send smaller calls, fewer at a time.",
    },
    "a call whose input is no JSON is not run, and is answered": {
      answer: callTools([{ name: "Bash", inputJson: '{"command": touch ran}' }]),
      end: "done: end",
      text: "saw ! Not run: the input of this call was no complete JSON object.",
    },
    "a call whose input is a list is not run, and is answered": {
      answer: callTools([{ name: "Bash", inputJson: '["touch ran"]' }]),
      end: "done: end",
      text: "saw ! Not run: the input of this call was no complete JSON object.",
    },
    "two calls with one id are both run, the second under an id of ours": {
      answer: callTools([
        { name: "Bash", input: { command: "echo one" }, id: "toolu_same" },
        { name: "Bash", input: { command: "echo two" }, id: "toolu_same" },
      ]),
      end: "done: end",
      text: "saw one\n[exit code 0] | two\n[exit code 0]",
    },
    "a call in an answer that says it is the end is run": {
      answer: { ...callTools([{ name: "Bash", input: { command: "echo ran" } }]), stopReason: "end_turn" },
      end: "done: end",
      text: "saw ran\n[exit code 0]",
    },
    "a call in an answer that was refused is not run, and the exchange ends": {
      answer: { ...callTools([touch("ran")]), stopReason: "refusal" },
      end: "refused: the model declined to answer",
      text: "",
    },
    "a refusal ends the exchange": {
      answer: { ...say("I will not."), stopReason: "refusal" },
      end: "refused: the model declined to answer",
      text: "I will not.",
    },
    "an answer without anything in it ends the exchange": { answer: { content: [] }, end: "done: end", text: "" },
    "an answer of empty lines counts as none": { answer: say("\n\n"), end: "done: end", text: "" },
    "a tool that is called without anything to call is the end": {
      answer: { content: [], stopReason: "tool_use" },
      end: "done: tool-use",
      text: "",
    },
  };

for (const [name, { answer, end, text }] of Object.entries(odd))
  test(`${name}; the session continues`, async () => {
    await using ground = await openGround({ "do it": answer });
    await using session = await ground.open();
    const { events, result } = await followed(session.prompt("do it"));
    assert.deepEqual([endOf(events), result.text], [end, text]);
    assert.equal(existsSync(ground.folder.at("work/ran")), false);
    await assertGoesOn(ground, session);
  });

test("ids that repeat in every turn mix up no results, and every long result gets its preview", async () => {
  const long = { name: "Bash", input: { command: "seq -f 'line %g of very many lines' 1 1000000 | head -c 25000" } };
  await using ground = await openGround({ first: callTools([long]), second: callTools([long]) });
  await using session = await ground.open({ window: 20_000, compactAt: 1 });
  ground.simulator.fault({ kind: "wrong-ids", times: 4 });
  for (const [prompt, id] of Object.entries({ first: "toolu_wrong", second: "toolu_wrong-2" })) {
    const { events, result } = await followed(session.prompt(prompt));
    assert.equal(endOf(events), "done: end");
    assert.match(result.text, /^saw \[Too long to show whole: 25,014 bytes/);
    assert.deepEqual(
      events.flatMap((event) => (event.type === "result_replaced" ? [event.callId] : [])),
      [id],
    );
  }
  await assertGoesOn(ground, session);
});

test("an answer that keeps being cut off is continued a few times, as one text", async () => {
  await using ground = await openGround({
    tell: cut(say("one ")),
    "Go on exactly": (request) => {
      const cuts = JSON.stringify(request.body.messages).split("Go on exactly").length - 1;
      return cuts < 3 ? cut(say(`part ${cuts} `)) : say("last");
    },
  });
  await using session = await ground.open();
  const { events, result } = await followed(session.prompt("tell"));
  assert.deepEqual([endOf(events), result.text, result.turns], ["done: end", "one part 1 part 2 last", 4]);
  await assertGoesOn(ground, session);
});

test("a model that only produces incomplete calls is stopped", async () => {
  const half = cut(callTools([{ name: "Write", inputJson: '{"file_path":"a","content":"' }]));
  await using ground = await openGround(() => half);
  await using session = await ground.open();
  const { events, result } = await followed(session.prompt("write"));
  assert.deepEqual([endOf(events), result.turns], ["done: the answer reached its length limit again and again", 4]);
});

test("a provider that pauses is asked to continue", async () => {
  await using ground = await openGround({
    search: (request) => {
      const messages = request.body.messages;
      const isPaused = Array.isArray(messages) && JSON.stringify(messages.at(-1)).includes("one moment");
      return isPaused ? say("found") : { ...say("one moment"), stopReason: "pause_turn" };
    },
  });
  await using session = await ground.open({ model: "claude-sonnet-4-5" });
  const { events, result } = await followed(session.prompt("search"));
  assert.deepEqual([endOf(events), result.text, result.turns], ["done: end", "found", 2]);
  await assertGoesOn(ground, session);
});
