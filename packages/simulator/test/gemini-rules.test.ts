/** Gemini: prompts that are kept by themselves without a promise, and prompts that are stored by name. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { type Simulator, textOfTokens } from "@prefork/simulator";
import { type Body, figures, geminiPath, refusalOf, rowOf, type Sent, send, started } from "./wire-sending.ts";

const HOUR = 3_600_000;
const flash = "gemini-3.8-flash";

const content = (tokens: number, seed = 0, role = "user"): Body => ({
  role,
  parts: [{ text: textOfTokens(tokens, seed) }],
});
const ask = (contents: readonly Body[], more: Body = {}, model = flash): Sent => ({
  path: geminiPath(model),
  body: { contents, ...more },
});

const minima: readonly (readonly [model: string, minimum: number])[] = [
  ["gemini-4-argon", 4_096],
  ["gemini-3.8-flash", 4_096],
  ["gemini-3.7-flash", 4_096],
  ["gemini-3.6-flash", 4_096],
  ["gemini-3.5-flash", 4_096],
  ["gemini-3.1-pro", 4_096],
  ["gemini-2.5-pro", 2_048],
  ["gemini-2.5-flash", 2_048],
];

for (const [model, minimum] of minima)
  test(`${model} keeps prompts from ${minimum} tokens on`, async () => {
    await using sim = await started("gemini");
    assert.equal((await rowOf(sim, ask([content(minimum - 1)], {}, model))).missCause, "below minimum");
    await rowOf(sim, ask([content(minimum, 5)], {}, model));
    assert.equal((await rowOf(sim, ask([content(minimum, 5)], {}, model))).read, minimum);
  });

test("automatic caching costs nothing to write and a tenth to read, on the fourth generation a twentieth", async () => {
  await using sim = await started("gemini");
  const first = await rowOf(sim, ask([content(10_000)]));
  assert.deepEqual([figures(first), first.billed.usd], [{ read: 0, written: 0, plain: 10_000 }, 0.00750375]);
  const next = await rowOf(sim, ask([content(10_000), content(100, 2, "model"), content(50, 3)]));
  assert.deepEqual([figures(next), next.billed.inputUnits], [{ read: 10_000, written: 0, plain: 150 }, 1_150]);
  const argon = (await rowOf(sim, ask([content(10_000)], {}, "gemini-4-argon"))).billed.usd;
  assert.deepEqual(
    [argon, (await rowOf(sim, ask([content(10_000)], {}, "gemini-4-argon"))).billed.usd],
    [0.02001, 0.00101],
  );
});

test("above 200,000 tokens a whole request to 3.1 Pro costs twice as much to send", async () => {
  await using sim = await started("gemini");
  assert.equal((await rowOf(sim, ask([content(200_000)], {}, "gemini-3.1-pro"))).billed.usd, 0.400012);
  assert.equal((await rowOf(sim, ask([content(200_001)], {}, "gemini-3.1-pro"))).billed.usd, 0.800022);
});

const store = async (sim: Simulator, more: Body = {}, model = flash): Promise<string> => {
  const body = {
    model: `models/${model}`,
    systemInstruction: { parts: [{ text: textOfTokens(6_000, 1) }] },
    contents: [content(4_000, 2)],
    ...more,
  };
  const response = await send(sim, { path: "/v1beta/cachedContents", body });
  const { name, error } = (await response.json()) as { name?: string; error?: unknown };
  if (name === undefined) throw new Error(JSON.stringify(error));
  return name;
};

test("a prompt stored by name is read whole by every request that names it, from the first turn on", async () => {
  await using sim = await started("gemini-explicit");
  const cachedContent = await store(sim);
  sim.fault({ kind: "together", times: 3 });
  const rows = await Promise.all([1, 2, 3].map((seed) => rowOf(sim, ask([content(50, seed)], { cachedContent }))));
  for (const row of rows) {
    assert.deepEqual(figures(row), { read: 10_000, written: 0, plain: 50 });
    assert.deepEqual([row.missCause, row.billed], [null, { inputUnits: 1_050, usd: 0.00079125 }]);
  }
});

test("without its name nothing is read, where nothing is cached automatically", async () => {
  await using sim = await started("gemini-explicit");
  await rowOf(sim, ask([content(10_000)]));
  assert.deepEqual(figures(await rowOf(sim, ask([content(10_000)]))), { read: 0, written: 0, plain: 10_000 });
});

test("storing costs the input once and storage by the hour, an hour unless asked otherwise", async () => {
  await using sim = await started("gemini");
  const name = await store(sim);
  const [row] = sim.ledger();
  assert.deepEqual(row && [figures(row), row.billed.usd], [{ read: 0, written: 0, plain: 10_000 }, 0.0125]);
  const change = { path: `/v1beta/${name}`, body: { ttl: "7200s" }, method: "PATCH" };
  const changed = (await (await send(sim, change)).json()) as Body;
  assert.equal(changed.expireTime, "2026-01-01T02:00:00.000Z");
  assert.equal(sim.ledger()[0]?.billed.usd, 0.0175);
  sim.clock.advance(HOUR / 2);
  await send(sim, { path: `/v1beta/${name}`, body: {}, method: "DELETE" });
  assert.equal(sim.ledger()[0]?.billed.usd, 0.01, "half an hour was stored");
  assert.equal(sim.ledger().length, 1, "only creating a stored prompt adds a row");
});

test("storage costs more on 3.1 Pro, and where no price is published no money is shown", async () => {
  await using sim = await started("gemini");
  await store(sim, {}, "gemini-3.1-pro");
  await store(sim, {}, "gemini-2.5-pro");
  assert.deepEqual(
    sim.ledger().map(({ billed }) => billed),
    [
      { inputUnits: 10_000, usd: 0.065 },
      { inputUnits: 10_000, usd: null },
    ],
  );
});

test("what has expired, was deleted, or belongs to another key or model cannot be named", async () => {
  await using sim = await started("gemini");
  const cachedContent = await store(sim, { ttl: "60s" });
  const named = ask([content(10)], { cachedContent });
  const gone = {
    status: 403,
    error: {
      code: 403,
      message: "CachedContent not found (or permission denied)",
      status: "PERMISSION_DENIED",
    },
  };
  assert.deepEqual(await refusalOf(sim, { ...named, key: "key-b" }), gone);
  const other = await refusalOf(sim, ask([content(10)], { cachedContent }, "gemini-3.7-flash"));
  assert.match(JSON.stringify(other.error), /has to be the same/);
  assert.equal((await rowOf(sim, named)).read, 10_000);
  sim.clock.advance(60_000);
  assert.deepEqual(await refusalOf(sim, named), gone);
  const deleted = await store(sim);
  await send(sim, { path: `/v1beta/${deleted}`, body: {}, method: "DELETE" });
  assert.deepEqual(await refusalOf(sim, ask([content(10)], { cachedContent: deleted })), gone);
});

test("a prompt too short to be stored is refused, and so is a request that sets a stored field again", async () => {
  await using sim = await started("gemini");
  await assert.rejects(store(sim, { systemInstruction: { parts: [{ text: "short" }] }, contents: [content(93, 2)] }), {
    message:
      '{"code":400,"message":"Cached content is too small. total_token_count=95, min_total_token_count=4096","status":"INVALID_ARGUMENT"}',
  });
  const cachedContent = await store(sim);
  for (const more of [
    { systemInstruction: { parts: [{ text: "x" }] } },
    { tools: [{ functionDeclarations: [{ name: "f" }] }] },
    { toolConfig: { functionCallingConfig: { mode: "ANY" } } },
  ]) {
    const { status, error } = await refusalOf(sim, ask([content(10)], { cachedContent, ...more }));
    assert.equal(status, 400);
    assert.match(JSON.stringify(error), /CachedContent can not be used with GenerateContent request setting/);
  }
});
