/** What a headless run prints, in each of its formats. */

import assert from "node:assert/strict";
import { test } from "node:test";
import type { JsonObject } from "@prefork/wire";
import { callTools, lastUserText, type SimScript, type Simulator, say, toolResults } from "@prefork/wire/simulator";
import { lastTexts, openGround, parsedLines, resultIn } from "./ground.ts";

/** Reads a file, then says what stands in it. */
const reader: SimScript = (request) => {
  const [result] = toolResults(request);
  return result === undefined
    ? callTools([{ name: "Read", input: { file_path: "greeting.txt" } }], "I look at it.")
    : say(`It says: ${result.text.split("\t")[1]}`);
};

const sumOf = (simulator: Simulator, pick: (row: ReturnType<Simulator["ledger"]>[number]) => number): number =>
  simulator.ledger().reduce((sum, row) => sum + pick(row), 0);

/** What the bill of the provider says a result must hold. */
const billOf = (simulator: Simulator): JsonObject => ({
  total_cost_usd: sumOf(simulator, ({ billed }) => billed.usd ?? Number.NaN),
  usage: {
    prompt_tokens: sumOf(simulator, ({ promptTokens }) => promptTokens),
    input_tokens: sumOf(simulator, ({ plain }) => plain),
    cache_read_input_tokens: sumOf(simulator, ({ read }) => read),
    cache_creation_input_tokens: sumOf(simulator, ({ written }) => written["5m"] + written["1h"]),
    output_tokens: sumOf(simulator, ({ output }) => output),
  },
});

/** Ids and times differ between runs; that they are there is checked, and then they are left out. */
const steady = ({ session_id, duration_ms, ...rest }: JsonObject): JsonObject => {
  assert.match(String(session_id), /^[0-9a-f]{10}$/);
  assert.ok(Number.isInteger(duration_ms) && Number(duration_ms) >= 0);
  return { ...rest, total_cost_usd: Number(Number(rest.total_cost_usd).toFixed(9)) };
};

test("text is the last answer and nothing else", async () => {
  await using ground = await openGround(reader);
  ground.put("greeting.txt", "good morning\n");
  const ran = await ground.prefork(["-p", "what does greeting.txt say?"]);
  assert.deepEqual(ran, { code: 0, out: "It says: good morning\n", err: "" });
});

test("json is one object that agrees with the provider's bill", async () => {
  await using ground = await openGround(reader);
  ground.put("greeting.txt", "good morning\n");
  const { code, out, err } = await ground.prefork(["-p", "--output-format", "json", "what does greeting.txt say?"]);
  assert.deepEqual([code, err], [0, ""]);
  const { total_cost_usd, usage } = billOf(ground.simulator);
  assert.deepEqual(steady(resultIn(out)), {
    type: "result",
    end: "done",
    is_error: false,
    reason: "end",
    result: "It says: good morning",
    engine: "anthropic",
    model: "claude-sonnet-5",
    num_turns: 2,
    total_cost_usd: Number(Number(total_cost_usd).toFixed(9)),
    usage,
  });
});

test("stream-json is every event in order, a line each, and then the result", async () => {
  await using ground = await openGround(reader);
  ground.put("greeting.txt", "good morning\n");
  const { code, out } = await ground.prefork(["-p", "--output-format", "stream-json", "what does greeting.txt say?"]);
  assert.equal(code, 0);
  const lines = parsedLines(out);
  const events = lines.slice(0, -1);
  assert.deepEqual(
    events.map(({ seq }) => seq),
    events.map((_, at) => at + 1),
  );
  assert.deepEqual(
    events.map(({ type }) => type).filter((type) => type !== "text_grew"),
    [
      ...["session_opened", "epoch_started", "prompt_entered"],
      ...["turn_started", "text_entered", "turn_ended", "call_proposed", "call_started", "call_ended"],
      ...["turn_started", "text_entered", "turn_ended", "exchange_ended"],
    ],
  );
  const grown = events.filter(({ type }) => type === "text_grew").map(({ text }) => text);
  assert.equal(grown.join(""), "I look at it.It says: good morning");
  const { result, session_id, usage } = lines.at(-1) ?? {};
  assert.deepEqual([result, session_id], ["It says: good morning", events[0]?.sessionId]);
  assert.deepEqual(usage, billOf(ground.simulator).usage);
});

test("a line of stream-json stays one line for readers that know other line ends", async () => {
  await using ground = await openGround(() => say("one\u2028two\u0085three\nfour"));
  const { out } = await ground.prefork(["-p", "--output-format", "stream-json", "speak"]);
  assert.equal(out.split(/[\n\u0085\u2028\u2029]/).length, parsedLines(out).length + 1);
  assert.equal(parsedLines(out).at(-1)?.result, "one\u2028two\u0085three\nfour");
});

test("a provider's failure is a result too, with exit code 1", async () => {
  await using ground = await openGround();
  ground.simulator.fault({ kind: "status", status: 400 });
  const { code, out, err } = await ground.prefork(["-p", "--output-format", "json", "speak"]);
  const { end, is_error, result, num_turns } = resultIn(out);
  assert.deepEqual(
    { code, err, end, is_error, result, num_turns },
    {
      ...{ code: 1, err: "", end: "provider-failed", is_error: true },
      ...{ result: "", num_turns: 1 },
    },
  );
});

test("what a model declines is told with exit code 4", async () => {
  await using ground = await openGround(() => ({ ...say("I would rather not."), stopReason: "refusal" }));
  const { code, out, err } = await ground.prefork(["-p", "speak"]);
  assert.deepEqual([code, out], [4, "I would rather not.\n"]);
  assert.match(err, /^prefork: stopped: the model declined to answer \(--resume [0-9a-f]{10} goes on\)\n$/);
});

test("prompts arrive as lines, in either of two forms, and are one conversation", async () => {
  await using ground = await openGround((request) => say(`heard ${lastUserText(request)}`));
  const block = (text: string): JsonObject => ({ type: "text", text });
  const input = [
    JSON.stringify({ prompt: "one" }),
    "",
    JSON.stringify({ type: "user", message: { role: "user", content: "two" } }),
    JSON.stringify({ type: "user", message: { role: "user", content: [block("three"), block("more")] } }),
  ];
  const argv = ["-p", "--input-format", "stream-json", "--output-format", "stream-json"];
  const { code, out, err } = await ground.prefork(argv, { input });
  assert.deepEqual([code, err], [0, ""]);
  const lines = parsedLines(out);
  const results = lines.filter(({ type }) => type === "result");
  assert.deepEqual(
    results.map(({ result }) => result),
    ["heard one", "heard two", "heard three\nmore"],
  );
  assert.equal(new Set(results.map(({ session_id }) => session_id)).size, 1);
  const seqs = lines.flatMap(({ seq }) => (seq === undefined ? [] : [Number(seq)]));
  assert.deepEqual(
    seqs,
    seqs.map((_, at) => at + 1),
  );
  assert.deepEqual(lastTexts(ground.bodies().at(-1)), ["three\nmore"]);
  assert.equal(ground.simulator.ledger().length, 3);
});

const badLines: Readonly<Record<string, string>> = {
  "{": "line 2 of standard input: not valid JSON",
  '{"prompt":" "}': 'line 2 of standard input: give {"type":"user","message":{"role":"user","content":"…"}}',
  '{"type":"assistant","message":{"content":"x"}}':
    'line 2 of standard input: give {"type":"user","message":{"role":"user","content":"…"}}',
  '{"type":"user","message":{"role":"user","content":[{"type":"image"}]}}':
    'line 2 of standard input: give {"type":"user","message":{"role":"user","content":"…"}}',
};

test("a line that is no prompt is named by its number, after what came before it is done", async () => {
  await using ground = await openGround((request) => say(`heard ${lastUserText(request)}`));
  for (const [line, complaint] of Object.entries(badLines)) {
    const input = ['{"prompt":"one"}', line, '{"prompt":"three"}'];
    const ran = await ground.prefork(["-p", "--input-format", "stream-json"], { input });
    assert.deepEqual(ran, { code: 2, out: "heard one\n", err: `prefork: ${complaint}\n` });
  }
});

test("a prompt that ends badly is the last one that is run", async () => {
  await using ground = await openGround(reader);
  const input = ['{"prompt":"one"}', '{"prompt":"two"}'];
  const argv = ["-p", "--input-format", "stream-json", "--output-format", "json", "--max-turns", "1"];
  const { code, out } = await ground.prefork(argv, { input });
  assert.deepEqual([code, parsedLines(out).map(({ end }) => end)], [3, ["max-turns"]]);
});

test("wrong formats, and words beside prompts that come as lines, are refused", async () => {
  await using ground = await openGround();
  const wrong: readonly (readonly [readonly string[], string])[] = [
    [
      ["--input-format", "stream-json", "hello"],
      "with --input-format stream-json prompts come on standard input alone",
    ],
    [
      ["--output-format", "xml", "hello"],
      "option '--output-format <format>' argument 'xml' is invalid. Allowed choices are text, json, stream-json.",
    ],
    [
      ["--input-format", "xml", "hello"],
      "option '--input-format <format>' argument 'xml' is invalid. Allowed choices are text, stream-json.",
    ],
  ];
  for (const [argv, complaint] of wrong)
    assert.deepEqual(await ground.prefork(["-p", ...argv]), { code: 2, out: "", err: `prefork: ${complaint}\n` });
  assert.deepEqual(ground.simulator.ledger(), []);
});
