import assert from "node:assert/strict";
import { request as httpRequest } from "node:http";
import { test } from "node:test";
import { callTools, ManualClock, type Simulator, say, startSimulator } from "@prefork/simulator";
import { type Body, marked, parts, post, request, row, textBlock } from "./sending.ts";

const body: Body = request({ messages: [{ role: "user", content: [textBlock(2_000, 1, marked)] }], stream: true });

const events = (text: string): readonly string[] =>
  [...text.matchAll(/^event: (.*)$/gm)].map((match) => match[1] ?? "");

/** All bytes that arrived, and whether the response ended properly. */
const raw = (sim: Simulator, sent: Body): Promise<{ readonly text: string; readonly ended: boolean }> =>
  new Promise((resolve) => {
    const outgoing = httpRequest(`${sim.url}/v1/messages`, { method: "POST", headers: { "x-api-key": "key-a" } });
    let text = "";
    outgoing.on("error", () => resolve({ text, ended: false }));
    outgoing.on("response", (response) => {
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => {
        text += chunk;
      });
      response.on("error", () => resolve({ text, ended: false }));
      response.on("close", () => resolve({ text, ended: response.complete }));
    });
    outgoing.end(JSON.stringify(sent));
  });

for (const [status, type] of [
  [429, "rate_limit_error"],
  [529, "overloaded_error"],
  [500, "api_error"],
  [503, "api_error"],
] as const)
  test(`a ${status} on request: one answer in the provider's shape, nothing read, written or billed`, async () => {
    await using sim = await startSimulator({ clock: new ManualClock() });
    sim.fault({ kind: "status", status, retryAfterMs: 1_500 });
    const response = await post(sim, body);
    const answer = (await response.json()) as { type: string; error: { type: string }; request_id: string };
    assert.deepEqual([response.status, answer.type, answer.error.type], [status, "error", type]);
    assert.equal(response.headers.get("retry-after"), "2");
    assert.equal(response.headers.get("retry-after-ms"), "1500");
    assert.equal(answer.request_id, response.headers.get("request-id"));
    const [failed] = sim.ledger();
    assert.deepEqual(
      [failed?.status, failed?.outcome, failed?.promptTokens, failed?.billed.usd],
      [status, "refused", 0, 0],
    );
    assert.deepEqual(parts(await row(sim, body)), [0, 2_000, 0, 0]);
  });

test("retry-after comes in the asked form only", async () => {
  await using sim = await startSimulator();
  sim.fault({ kind: "status", status: 429, retryAfterMs: 3_000, retryAfterForm: "seconds" });
  sim.fault({ kind: "status", status: 429, retryAfterMs: 250, retryAfterForm: "milliseconds" });
  sim.fault({ kind: "status", status: 429 });
  const heads: (string | null)[][] = [];
  for (let index = 0; index < 3; index += 1) {
    const { headers } = await post(sim, body);
    heads.push([headers.get("retry-after"), headers.get("retry-after-ms")]);
  }
  assert.deepEqual(heads, [
    ["3", null],
    [null, "250"],
    [null, null],
  ]);
});

test("a reset before any byte leaves no entry", async () => {
  await using sim = await startSimulator({ clock: new ManualClock() });
  sim.fault({ kind: "reset" });
  assert.deepEqual(await raw(sim, body), { text: "", ended: false });
  assert.equal(sim.ledger()[0]?.outcome, "interrupted");
  assert.deepEqual(parts(await row(sim, body)), [0, 2_000, 0, 0]);
});

test("a reset after k events breaks the stream there; the entry stays, and so does the bill for the prompt", async () => {
  await using sim = await startSimulator({ clock: new ManualClock() });
  sim.fault({ kind: "reset-mid-stream", afterEvents: 3 });
  const { text, ended } = await raw(sim, body);
  assert.deepEqual([events(text), ended], [["message_start", "content_block_start", "ping"], false]);
  const [broken] = sim.ledger();
  assert.deepEqual([broken?.outcome, broken?.billed.inputUnits, broken?.output], ["interrupted", 2_500, 0]);
  assert.deepEqual(parts(await row(sim, body)), [2_000, 0, 0, 0]);
});

test("a reset inside an answer that is not streamed", async () => {
  await using sim = await startSimulator();
  sim.fault({ kind: "reset-mid-stream", afterEvents: 1 });
  const { text, ended } = await raw(sim, { ...body, stream: false });
  assert.equal(ended, false);
  assert.throws(() => JSON.parse(text));
});

test("an error event before or after the first content ends the stream", async () => {
  await using sim = await startSimulator();
  sim.fault({ kind: "error-mid-stream", moment: "before-content" });
  sim.fault({ kind: "error-mid-stream", moment: "after-content" });
  const before = await raw(sim, body);
  assert.deepEqual([events(before.text), before.ended], [["message_start", "error"], true]);
  assert.match(before.text, /data: \{"type":"error","error":\{"type":"overloaded_error","message":"Overloaded"\}/);
  const after = await raw(sim, body);
  assert.equal(events(after.text).at(-1), "error");
  assert.ok(events(after.text).includes("content_block_delta"));
  assert.deepEqual(
    sim.ledger().map(({ outcome }) => outcome),
    ["interrupted", "interrupted"],
  );
});

test("truncated JSON ends properly and does not parse, streamed or not", async () => {
  await using sim = await startSimulator();
  sim.fault({ kind: "truncated-json", times: 2 });
  const whole = await raw(sim, { ...body, stream: false });
  assert.equal(whole.ended, true);
  assert.throws(() => JSON.parse(whole.text));
  const streamed = await raw(sim, body);
  assert.equal(streamed.ended, true);
  const last = streamed.text.trimEnd().split("\n").at(-1) ?? "";
  assert.ok(last.startsWith("data: "));
  assert.throws(() => JSON.parse(last.slice("data: ".length)));
});

test("a slow drip sends the same events, one by one", async () => {
  await using sim = await startSimulator({ script: () => say("short") });
  const usual = await raw(sim, body);
  sim.fault({ kind: "slow-drip", delayMs: 2 });
  const dripped = await raw(sim, body);
  assert.deepEqual(events(dripped.text), events(usual.text));
  assert.equal(dripped.ended, true);
});

test("wrong ids: the message's and every call's repeat", async () => {
  await using sim = await startSimulator({ script: () => callTools([{ name: "a" }, { name: "b" }]) });
  sim.fault({ kind: "wrong-ids" });
  const answer = (await (await post(sim, { ...body, stream: false })).json()) as {
    id: string;
    content: { id: string }[];
  };
  assert.deepEqual([answer.id, ...answer.content.map(({ id }) => id)], ["msg_wrong", "toolu_wrong", "toolu_wrong"]);
});

test("faults can wait for the nth request, for a model, and hit several", async () => {
  await using sim = await startSimulator();
  sim.fault({ kind: "status", status: 529, nth: 3 });
  sim.fault({ kind: "status", status: 429, model: "claude-opus-5", times: 2 });
  const statuses: number[] = [];
  for (const model of ["claude-sonnet-5", "claude-opus-5", "claude-opus-5", "claude-opus-5", "claude-sonnet-5"])
    statuses.push((await post(sim, { ...body, model })).status);
  assert.deepEqual(statuses, [200, 429, 529, 429, 200]);
});

test("a script that throws is a 500 that says so", async () => {
  await using sim = await startSimulator({
    script: () => {
      throw new Error("no idea");
    },
  });
  const response = await post(sim, body);
  assert.equal(response.status, 500);
  assert.match(await response.text(), /script: no idea/);
  assert.deepEqual([sim.ledger()[0]?.status, sim.ledger()[0]?.billed.usd], [500, 0]);
});
