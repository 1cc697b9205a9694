/** What a headless run prints, in each of its formats. */

import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { callTools, lastUserText, type SimScript, type Simulator, say, toolResults } from "@prefork/simulator";
import type { JsonObject } from "@prefork/wire";
import { lastTexts, openGround, parsedLines, resultIn } from "./ground.ts";

/** Reads a file, then says what it contains. */
const reader: SimScript = (request) => {
  const [result] = toolResults(request);
  return result === undefined
    ? callTools([{ name: "Read", input: { file_path: "greeting.txt" } }], "I look at it.")
    : say(`It says: ${result.text.split("\t")[1]}`);
};

const sumOf = (simulator: Simulator, pick: (row: ReturnType<Simulator["ledger"]>[number]) => number): number =>
  simulator.ledger().reduce((sum, row) => sum + pick(row), 0);

/** The figures that a result must have, according to the provider's bill. */
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

/** Ids and times differ between runs: checks that they exist, then removes them. */
const steady = ({ session_id, duration_ms, ...rest }: JsonObject): JsonObject => {
  assert.match(String(session_id), /^[0-9a-f]{10}$/);
  assert.ok(Number.isInteger(duration_ms) && Number(duration_ms) >= 0);
  return { ...rest, total_cost_usd: Number(Number(rest.total_cost_usd).toFixed(9)) };
};

/** A gateway that rejects the key of every fork. */
const refusingForks = async (url: string): Promise<AsyncDisposable & { readonly url: string }> => {
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = Buffer.concat(chunks);
    if (body.includes("fork-directive:")) {
      const error = { type: "authentication_error", message: "invalid x-api-key" };
      response.writeHead(401, { "content-type": "application/json" }).end(JSON.stringify({ type: "error", error }));
      return;
    }
    const headers = { "content-type": "application/json", "x-api-key": "any", "anthropic-version": "2023-06-01" };
    const answer = await fetch(`${url}${request.url}`, { method: "POST", headers, body });
    response.writeHead(answer.status, { "content-type": answer.headers.get("content-type") ?? "" });
    response.end(Buffer.from(await answer.arrayBuffer()));
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await once(server.close(), "close");
    },
  };
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
    exit_code: 0,
    warnings: [],
  });
});

test("json says what text says on the error output: denials, and settings that are not used", async () => {
  await using ground = await openGround((request) => {
    const [result] = toolResults(request);
    const write = { name: "Write", input: { file_path: ground.at("new.txt"), content: "x" } };
    return result === undefined ? callTools([write]) : say("I could not.");
  });
  const env = { PREFORK_FORK_SUBAGENT: "maybe" };
  const text = await ground.prefork(["-p", "write it"], { env });
  const { code, out, err } = await ground.prefork(["-p", "--output-format", "json", "write it"], { env });
  const { warnings, is_error, exit_code } = resultIn(out);
  assert.deepEqual([text.code, code, is_error, exit_code, err], [0, 0, false, 0, ""]);
  const said = (warnings as readonly JsonObject[]).map(({ kind, message }) => [kind, `prefork: ${message}\n`]);
  assert.deepEqual(
    said.map(([kind]) => kind),
    ["settings", "denied"],
  );
  assert.equal(said.map(([, line]) => line).join(""), text.err);
});

test("a run whose forks all failed reports that in every format, with its own exit code", async () => {
  await using ground = await openGround((request) => {
    if (JSON.stringify(request.body.messages).includes("task-notification")) return say("None of them worked.");
    if (toolResults(request).length > 0) return say("I wait.");
    return callTools(["a", "b", "c"].map((prompt) => ({ name: "Agent", input: { description: prompt, prompt } })));
  });
  await using gateway = await refusingForks(ground.simulator.url);
  const argv = ["-p", "--permission-mode", "default", "--base-url", gateway.url, "split it"];
  const text = await ground.prefork(argv);
  assert.deepEqual([text.code, text.out], [5, "None of them worked.\n"]);
  assert.match(text.err, /^prefork: all 3 forks failed: Ended as failed: .*invalid x-api-key/m);
  for (const format of ["json", "events"]) {
    const { code, out } = await ground.prefork([...argv, "--output-format", format]);
    const { end, is_error, exit_code, warnings } = parsedLines(out).at(-1) ?? {};
    assert.deepEqual([code, end, is_error, exit_code], [5, "done", true, 5]);
    assert.deepEqual(
      (warnings as readonly JsonObject[]).map(({ kind }) => kind),
      ["fork-failed", "fork-failed", "fork-failed", "all-forks-failed"],
    );
  }
});

test("journal damage is reported in every format and by every command that reads the journal", async () => {
  await using ground = await openGround(reader);
  ground.put("greeting.txt", "good morning\n");
  const { session_id: id } = resultIn((await ground.prefork(["-p", "--output-format", "json", "read it"])).out);
  const file = `${ground.home}/.local/state/prefork/sessions/${id}/journal.jsonl`;
  const lines = readFileSync(file, "utf8").split("\n");
  const lost = lines.findIndex((line) => line.includes('"kind":"response"'));
  writeFileSync(file, lines.with(lost, "x".repeat(40)).join("\n"));
  const detail = `line ${lost + 1}: not JSON (40 bytes)`;
  const listed = await ground.prefork(["sessions", "list", "--all", "--json"]);
  assert.deepEqual([resultIn(listed.out).problems, listed.err.includes("is damaged in 1 place")], [1, true]);
  for (const argv of [
    ["sessions", "show", String(id), "--json"],
    ["explain", String(id), "--json"],
  ]) {
    const { out, err } = await ground.prefork(argv);
    assert.ok(JSON.stringify(resultIn(out).problems).includes(detail), argv.join(" "));
    assert.ok(err.includes(detail), argv.join(" "));
  }
  for (const argv of [["ps"], ["ps", "--json"], ["sessions", "export", String(id)]])
    assert.ok((await ground.prefork(argv)).err.includes(detail), argv.join(" "));
  const { code, out } = await ground.prefork(["-p", "--resume", String(id), "--output-format", "json", "again"]);
  const { is_error, warnings } = resultIn(out);
  assert.deepEqual([code, is_error], [5, true]);
  assert.deepEqual(
    (warnings as readonly JsonObject[]).map(({ kind, message }) => [kind, String(message).split(":")[1]]),
    [
      ["journal", ` line ${lost + 1}`],
      ["journal", ` line ${lost + 2}`],
    ],
  );
});

test("events are printed in order, a line each, and then the result", async () => {
  await using ground = await openGround(reader);
  ground.put("greeting.txt", "good morning\n");
  const { code, out } = await ground.prefork(["-p", "--output-format", "events", "what does greeting.txt say?"]);
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

test("stream-json prints the same lines, and says that it will change", async () => {
  await using ground = await openGround(() => say("done"));
  const { code, out, err } = await ground.prefork(["-p", "--output-format", "stream-json", "go"]);
  assert.deepEqual([code, parsedLines(out).at(-1)?.result], [0, "done"]);
  const said = "stream-json will change to the format of other agents; for these lines use --output-format events";
  assert.equal(err, `prefork: ${said}\n`);
});

test("a line of events stays one line for readers that know other line ends", async () => {
  await using ground = await openGround(() => say("one\u2028two\u0085three\nfour"));
  const { out } = await ground.prefork(["-p", "--output-format", "events", "speak"]);
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

test("a model's refusal is reported with exit code 4", async () => {
  await using ground = await openGround(() => ({ ...say("I would rather not."), stopReason: "refusal" }));
  const { code, out, err } = await ground.prefork(["-p", "speak"]);
  assert.deepEqual([code, out], [4, "I would rather not.\n"]);
  assert.match(err, /^prefork: stopped: the model declined to answer \(to resume: --resume [0-9a-f]{10}\)\n$/);
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
  const argv = ["-p", "--input-format", "stream-json", "--output-format", "events"];
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
  '{"prompt":" "}': 'line 2 of standard input: expected {"type":"user","message":{"role":"user","content":"…"}}',
  '{"type":"assistant","message":{"content":"x"}}':
    'line 2 of standard input: expected {"type":"user","message":{"role":"user","content":"…"}}',
  '{"type":"user","message":{"role":"user","content":[{"type":"image"}]}}':
    'line 2 of standard input: expected {"type":"user","message":{"role":"user","content":"…"}}',
};

test("a line that is not a prompt is reported by its number, after the earlier prompts are done", async () => {
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

test("invalid formats, and words on the command line in addition to streamed prompts, are refused", async () => {
  await using ground = await openGround();
  const wrong: readonly (readonly [readonly string[], string])[] = [
    [
      ["--input-format", "stream-json", "hello"],
      "with --input-format stream-json, give prompts on standard input only, not on the command line",
    ],
    [
      ["--output-format", "xml", "hello"],
      "option '--output-format <format>' argument 'xml' is invalid. Allowed choices are text, json, events, stream-json.",
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
