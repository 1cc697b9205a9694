import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "@prefork/simulator";
import { createClient, DEFAULT_MODEL } from "@prefork/wire";
import { startEmbedded } from "../../src/rehearsal/index.ts";
import { ask, user } from "./driver.ts";

test("the engine gives a client everything that it needs, and bills its answers", async () => {
  await using engine = await startEmbedded({ clock: new ManualClock() });
  const { credential, model, engine: name } = engine;
  assert.deepEqual(
    { credential, model, name, onLoopback: /^http:\/\/127\.0\.0\.1:\d+$/.test(engine.baseUrl) },
    { credential: { kind: "api-key", value: "rehearsal" }, model: DEFAULT_MODEL, name: "rehearsal", onLoopback: true },
  );
  createClient({ baseUrl: engine.baseUrl, credential }).close();
  await ask(engine.baseUrl, [user("read a.ts")]);
  assert.deepEqual(
    engine.ledger().map(({ outcome, stream }) => ({ outcome, stream })),
    [{ outcome: "complete", stream: false }],
  );
});

test("a model that nobody published figures for is served with those of the default model", async () => {
  await using engine = await startEmbedded();
  const response = await fetch(`${engine.baseUrl}/v1/messages`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-api-key": "any", "anthropic-version": "2023-06-01" },
    body: JSON.stringify({ model: "my-own", max_tokens: 10, messages: [user("hello")] }),
  });
  const { model } = (await response.json()) as { model: string };
  assert.deepEqual({ model, billed: engine.ledger()[0]?.billed.usd !== null }, { model: "my-own", billed: true });
});

test("a closed engine answers nobody", async () => {
  const engine = await startEmbedded();
  await engine.close();
  await assert.rejects(ask(engine.baseUrl, [user("hello")]), { message: "fetch failed" });
});
