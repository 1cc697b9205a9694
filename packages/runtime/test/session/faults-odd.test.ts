/** Answers that a provider should not give: what a session makes of them, and what it pays. */

import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import {
  callTools,
  type Fault,
  lastUserText,
  type ProviderName,
  type SimAnswer,
  type SimScript,
  say,
  startSimulator,
  think,
  toolResults,
} from "@prefork/simulator";
import { scratch } from "@prefork/testing/scratch";
import {
  anthropicEngine,
  createSession,
  type ExchangeResult,
  engineFor,
  resumeSession,
  type SessionOptions,
} from "../../src/index.ts";
import { assertGoesOn, endOf, followed, jumpingTiming, openGround, unasked } from "./fault-ground.ts";

const pausing = (name: string): SimAnswer => ({
  content: [
    { type: "server_tool_use", name: "web_search", input: { query: name } },
    { type: "web_search_tool_result", tool_use_id: "any", content: [] },
  ],
  stopReason: "pause_turn",
});

test("an answer that lacks only its last event is entered, and billed once", async () => {
  await using ground = await openGround();
  await using session = await ground.open();
  ground.simulator.fault({ kind: "no-last-event" });
  const { events, result } = await followed(session.prompt("hello"));
  assert.deepEqual([endOf(events), result.text], ["done: end", "heard hello"]);
  const [row, ...more] = ground.simulator.ledger();
  assert.deepEqual([result.usd.toFixed(9), more], [row?.billed.usd?.toFixed(9), []]);
  await assertGoesOn(ground, session);
});

/** The loop would send again after each of these, and none is a call or an end. */
const endless: Readonly<Record<string, (at: number) => SimAnswer>> = {
  "a pause": (at) => pausing(`${at}`),
  "pauses and cuts in turn": (at) =>
    at % 2 === 0 ? pausing(`${at}`) : { content: [{ type: "text", text: "cut" }], stopReason: "max_tokens" },
  "calls with half an input": (at) => callTools([{ name: "Glob", inputJson: '{"pattern":', id: `call_${at}` }]),
};

for (const [name, answer] of Object.entries(endless))
  test(`${name} without an end is bounded, and the session continues`, async () => {
    let asked = 0;
    await using ground = await openGround((request) => {
      const prompt = lastUserText(request);
      return /^(go on|and on)$/.test(prompt) ? say(`heard ${prompt}`) : answer(asked++);
    });
    await using session = await ground.open();
    const { events } = await followed(session.prompt("hello"));
    assert.match(endOf(events) ?? "", /^provider-failed: 20 answers in a row neither called a tool nor finished/);
    assert.equal(ground.proxy.arrived(), 20);
  });

test("a budget is enforced even if a provider reports no usage or invalid numbers, and the cost is marked as an estimate", async () => {
  const working: SimScript = () => callTools([{ name: "Glob", input: { pattern: "*" } }]);
  for (const form of ["missing", "text", "zero"] as const) {
    await using ground = await openGround(working);
    await using session = await ground.open({ limits: { usd: 0.06 }, maxTokens: 1_500 });
    ground.simulator.fault({ kind: "usage", form, times: 1_000 } satisfies Fault);
    const { events, result } = await followed(session.prompt("work"));
    assert.match(endOf(events) ?? "", /^over-budget: /);
    const billed = ground.simulator.ledger().reduce((sum, row) => sum + (row.billed.usd ?? 0), 0);
    assert.ok(billed <= 0.06, `${form}: the provider billed $${billed}`);
    assert.ok(result.usd > 0 && session.spent.usd <= 0.06, `${form}: ${session.spent.usd}`);
    assert.ok((result.usage.estimated ?? 0) > 0);
    const ended = events.filter((event) => event.type === "turn_ended");
    assert.ok(ended.length > 1 && ended.every(({ usage }) => (usage.estimated ?? 0) > 0));
    const journal = readFileSync(ground.folder.at("state/sessions", session.id, "journal.jsonl"), "utf8");
    assert.ok(journal.includes('"estimated":'));
  }
});

test("a retry delay of a day ends the exchange at once and says when to retry; a short delay is reported", async () => {
  await using ground = await openGround();
  const timing = { ...jumpingTiming(), date: () => Date.UTC(2026, 10, 15, 9, 30) };
  await using session = await ground.open({}, { timing });
  ground.simulator.fault({ kind: "status", status: 429, retryAfterMs: 86_400_000, message: "daily limit" });
  const long = await followed(session.prompt("hello"));
  assert.equal(
    endOf(long.events),
    "provider-failed: rate_limit_error: daily limit (the provider asks to wait 1 d, longer than the limit of 5 min. Try again after 2026-11-16 09:30 UTC.)",
  );
  assert.deepEqual(timing.waits, []);
  ground.simulator.fault({ kind: "status", status: 429, retryAfterMs: 90_000 });
  const short = await followed(session.prompt("hello"));
  const told = short.events.flatMap((event) => (event.type === "request_retried" ? [event.waitMs] : []));
  assert.deepEqual([short.result.end, told], ["done", [90_000]]);
});

test("a web page instead of an answer ends the exchange after one request, and its first words are shown", async () => {
  await using ground = await openGround();
  await using session = await ground.open();
  ground.simulator.fault({ kind: "not-an-answer", form: "html", times: 9 });
  const { events } = await followed(session.prompt("hello"));
  assert.match(
    endOf(events) ?? "",
    /^provider-failed: the address answered with a web page .*Sign in.*\(request id req_sim/,
  );
  assert.equal(ground.proxy.arrived(), 1);
});

test("endless text is cut off and not retried", async () => {
  await using ground = await openGround();
  await using session = await ground.open({ maxTokens: 1_024 });
  ground.simulator.fault({ kind: "endless", of: "content", times: 9 });
  const { events } = await followed(session.prompt("hello"));
  assert.match(endOf(events) ?? "", /^provider-failed: the answer was cut after 0\.\d MiB/);
  assert.equal(ground.simulator.ledger().length, 1);
  await ground.simulator.reset();
  assert.equal((await session.prompt("again").result()).text, "heard again");
});

// --- ids -------------------------------------------------------------------------------------------------------------

type Wire = { readonly rules: ProviderName; readonly profile: string; readonly model: string; readonly path: string };

const WIRES: readonly Wire[] = [
  { rules: "anthropic", profile: "anthropic", model: "claude-sonnet-5", path: "" },
  { rules: "openai", profile: "openai", model: "gpt-6.1-sol", path: "/v1" },
  { rules: "openai", profile: "openai-chat", model: "gpt-6.1-sol", path: "/v1" },
  { rules: "gemini", profile: "gemini", model: "gemini-3.8-flash", path: "/v1beta" },
];

/** Reads a, b and a again in one answer, and c in the next, always under the same ids; then says what it saw. */
const repeating =
  (ids: readonly string[]): SimScript =>
  (request) => {
    const results = toolResults(request).map(({ text }) => text.match(/content of \w/)?.[0] ?? text);
    const reading = (...names: readonly string[]): SimAnswer =>
      callTools(names.map((name, at) => ({ name: "Read", input: { file_path: `${name}.txt` }, id: ids[at] ?? "" })));
    if (results.length === 3) return reading("c");
    if (results.length === 1) return say(`saw ${results.join()}`);
    return reading("a", "b", "c");
  };

// Gemini signs its calls: there two with one id cannot be told apart, and neither may run.
for (const { rules, profile, model, path } of WIRES)
  for (const ids of [
    ["call_0", "call_1", "call_2"],
    ["call_0", "call_0", "call_0"],
    ["", "", ""],
  ])
    if (profile !== "gemini" || ids[0] !== ids[1] || ids[0] === "")
      test(`${profile}: ids ${JSON.stringify(ids)} in every answer leave a history that the provider accepts, also after a restart`, async () => {
        using folder = scratch();
        for (const name of ["work", "home"]) mkdirSync(folder.at(name));
        for (const name of ["a", "b", "c"]) writeFileSync(folder.at("work", `${name}.txt`), `content of ${name}\n`);
        await using simulator = await startSimulator({ provider: rules, script: repeating(ids), keepBodies: true });
        const options: SessionOptions = {
          engine: engineFor(profile, {
            ...{ baseUrl: `${simulator.url}${path}`, model, timing: jumpingTiming() },
            credential: { kind: "api-key", value: "any-key" },
          }),
          ...{ cwd: folder.at("work"), home: folder.at("home"), state: folder.at("state"), permissions: unasked },
          environment: { PATH: "/usr/bin:/bin" },
        };
        const said: string[] = [];
        const ask = async (asked: Promise<ExchangeResult>): Promise<void> => void said.push((await asked).text);
        const session = await createSession(options);
        await ask(session.prompt("look").result());
        await ask(session.prompt("look again").result());
        await session.close();
        await using again = await resumeSession(session.id, options);
        await ask(again.prompt("and again").result());
        assert.deepEqual(said, Array(3).fill("saw content of c"));
        assert.deepEqual(
          simulator.ledger().map(({ status, outcome }) => `${status} ${outcome}`),
          Array(9).fill("200 complete"),
        );
        const last = simulator.requests().at(-1)?.body.toString("utf8") ?? "";
        for (const name of ["a", "b", "c"]) assert.ok(last.includes(`content of ${name}`));
      });

test("a call keeps its original id in a turn that the provider signed", async () => {
  let turn = 0;
  await using ground = await openGround((request) =>
    toolResults(request).length > 0
      ? say("done")
      : think("hm", callTools([{ name: "Glob", input: { pattern: "*" }, id: `toolu_${turn++}` }])),
  );
  await using session = await ground.open();
  assert.equal((await session.prompt("look").result()).end, "done");
  assert.equal((await session.prompt("look").result()).end, "done");
  const last = ground.simulator.requests().at(-1)?.body.toString("utf8") ?? "";
  assert.deepEqual(
    [...last.matchAll(/"type":"tool_use","id":"(\w+)"/g)].map(([, id]) => id),
    ["toolu_0", "toolu_1"],
  );
});

// --- a session that moved --------------------------------------------------------------------------------------------

test("a fork that is resumed after its session changed engines uses the engine it was started with, or is refused", async () => {
  using folder = scratch();
  for (const name of ["work", "home"]) mkdirSync(folder.at(name));
  const script: SimScript = (request) =>
    JSON.stringify(request.body).includes("look around") ? say("Scope: all\nResult: seen") : say("fine");
  await using first = await startSimulator({ script, keepBodies: true });
  await using second = await startSimulator({ provider: "openai", script, keepBodies: true });
  const [from, to] = [
    engineFor("anthropic", { baseUrl: first.url, credential: { kind: "api-key", value: "key-of-first" } }),
    engineFor("openai", { baseUrl: `${second.url}/v1`, credential: { kind: "api-key", value: "key-of-second" } }),
  ];
  const options = (more: Pick<SessionOptions, "engine" | "engines">): SessionOptions => ({
    ...{ cwd: folder.at("work"), home: folder.at("home"), state: folder.at("state"), permissions: unasked },
    environment: { PATH: "/usr/bin:/bin" },
    ...more,
  });
  const session = await createSession(options({ engine: from }));
  await session.prompt("hello").result();
  const fork = session.fork({ prompt: "look around" });
  await fork.result();
  const [task] = session.tasks;
  assert.ok(task);
  await session.close();
  const asked = first.requests().length;

  await using moved = await resumeSession(session.id, options({ engine: to }));
  assert.equal((await moved.prompt("go on").result()).text, "fine");
  const sent = second.requests().length;
  const ended = await moved.resumeTask(task.id, { message: "look again" }).catch((error: Error) => error.message);
  const said = typeof ended === "string" ? ended : JSON.stringify(ended);
  assert.match(
    said,
    /it was started with anthropic at http:\/\/127\.0\.0\.1:\d+, and the session now uses openai; set ANTHROPIC_API_KEY to resume it/,
  );
  assert.deepEqual([first.requests().length, second.requests().length], [asked, sent]);
  await moved.close();

  await using again = await resumeSession(session.id, options({ engine: to, engines: [from] }));
  const retriedBy: string[] = [];
  void (async () => {
    for await (const { type, agent } of again.events()) if (type === "request_retried") retriedBy.push(agent);
  })();
  first.fault({ kind: "status", status: 529 });
  const woken = await again.resumeTask(task.id, { message: "look again" });
  assert.deepEqual(retriedBy, [task.id], "a retry is an event of the agent whose request it repeats");
  assert.deepEqual([woken.state.kind === "ended" && woken.state.end], ["reported"]);
  assert.deepEqual([first.requests().length, second.requests().length], [asked + 2, sent]);
});

test("engines with the same endpoint and credential share one client, whatever their models", () => {
  const at = (key: string, model: string) =>
    anthropicEngine({ baseUrl: "http://127.0.0.1:1", model, credential: { kind: "api-key", value: key } });
  const others = [at("one", "claude-haiku-4-5"), at("two", "claude-haiku-4-5")];
  const connections = [at("one", "claude-sonnet-5"), ...others].map(({ connection }) => connection);
  const [own, same, other] = connections;
  assert.deepEqual([own === same, own === other, connections.includes(undefined)], [true, false, false]);
});

test("wrapped arguments are unwrapped, judged by the rules, and stay unchanged in the conversation", async () => {
  const enveloped = callTools([
    { name: "Read", inputJson: '{ "arguments": {"file_path":"a.txt"} }', id: "toolu_a" },
    { name: "Read", inputJson: '{"input":{"file_path":"../outside.txt"}}', id: "toolu_b" },
    { name: "Read", inputJson: '{"input":{"arguments":{"file_path":"a.txt"}}}', id: "toolu_c" },
  ]);
  const seen: string[] = [];
  await using ground = await openGround((request) => {
    const results = toolResults(request);
    seen.push(...results.map(({ text }) => text));
    return results.length > 0 ? say("done") : enveloped;
  });
  writeFileSync(ground.folder.at("work", "a.txt"), "content of a\n");
  writeFileSync(ground.folder.at("outside.txt"), "a secret\n");
  await using session = await ground.open({ permissions: { stated: true } });
  assert.equal((await session.prompt("look").result()).text, "done");
  const [inside = "", outside = "", nested = ""] = seen;
  assert.match(inside, /content of a/);
  assert.match(outside, /^Not allowed: /);
  assert.match(nested, /^Read: "arguments" is no argument of it/);
  const last = ground.simulator.requests().at(-1)?.body.toString("utf8") ?? "";
  assert.ok(last.includes('"input":{ "arguments": {"file_path":"a.txt"} }'));
});
