import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock, say, startSimulator } from "@prefork/simulator";
import { type Body, marked, parts, post, request, row, textBlock } from "./sending.ts";

const body: Body = request({ messages: [{ role: "user", content: [textBlock(5_000, 1, marked)] }], stream: true });

test("five identical requests sent together each miss and each pay the write", async () => {
  await using sim = await startSimulator({ clock: new ManualClock() });
  sim.fault({ kind: "together", times: 5 });
  await Promise.all(Array.from({ length: 5 }, async () => (await post(sim, body)).text()));
  const rows = sim.ledger();
  assert.deepEqual(
    rows.map(parts),
    Array.from({ length: 5 }, () => [0, 5_000, 0, 0]),
  );
  assert.deepEqual(
    rows.map((each) => each.missCause),
    [null, "raced", "raced", "raced", "raced"],
  );
  assert.deepEqual(parts(await row(sim, body)), [5_000, 0, 0, 0]);
});

test("an entry that was already readable is read by all simultaneous requests", async () => {
  await using sim = await startSimulator({ clock: new ManualClock() });
  await row(sim, body);
  sim.fault({ kind: "together", times: 4 });
  await Promise.all(Array.from({ length: 4 }, async () => (await post(sim, body)).text()));
  assert.deepEqual(
    sim.ledger(1).map((each) => each.read),
    [5_000, 5_000, 5_000, 5_000],
  );
});

test("followers can read as soon as the leader's first event is out, long before its answer ends", async () => {
  const { promise: hold, resolve: letGo } = Promise.withResolvers<void>();
  const answers = [{ ...say("slow"), hold }, say("quick")];
  await using sim = await startSimulator({ clock: new ManualClock(), script: () => answers.shift() ?? say("more") });
  const leader = await post(sim, body);
  const reader = leader.body?.getReader();
  const first = await reader?.read();
  assert.match(new TextDecoder().decode(first?.value), /^event: message_start\n/);
  assert.deepEqual(parts(await row(sim, body)), [5_000, 0, 0, 0]);
  assert.equal(sim.ledger()[0]?.outcome, "open");
  letGo();
  while (!(await reader?.read())?.done);
  assert.equal(sim.ledger()[0]?.outcome, "complete");
});

test("where the rule says so, an entry is readable only after the whole answer", async () => {
  const { promise: hold, resolve: letGo } = Promise.withResolvers<void>();
  const answers = [{ ...say("slow"), hold }];
  await using sim = await startSimulator({
    clock: new ManualClock(),
    rules: { cache: { readable: "complete" } },
    script: () => answers.shift() ?? say("quick"),
  });
  const leader = await post(sim, body);
  const reader = leader.body?.getReader();
  await reader?.read();
  assert.deepEqual(parts(await row(sim, body)), [0, 5_000, 0, 0]);
  letGo();
  while (!(await reader?.read())?.done);
  assert.deepEqual(parts(await row(sim, body)), [5_000, 0, 0, 0]);
});

test("a writer that disconnects before its first event leaves no entry and is not billed", async () => {
  const never = new Promise<never>(() => {});
  const answers: Promise<never>[] = [never];
  await using sim = await startSimulator({ clock: new ManualClock(), script: () => answers.shift() ?? say("ok") });
  const abort = new AbortController();
  const sent = post(sim, body, { signal: abort.signal });
  while (sim.ledger()[0]?.status !== 200) await new Promise(setImmediate);
  abort.abort();
  await assert.rejects(sent);
  while (sim.ledger()[0]?.outcome === "open") await new Promise(setImmediate);
  const [gone] = sim.ledger();
  assert.deepEqual([gone?.outcome, gone?.promptTokens, gone?.billed.inputUnits], ["aborted", 0, 0]);
  assert.deepEqual(parts(await row(sim, body)), [0, 5_000, 0, 0]);
  assert.equal(sim.ledger().at(-1)?.expectedRead, 0);
});

test("keys are workspaces: another key reads nothing, the same key as bearer reads all", async () => {
  await using sim = await startSimulator({ clock: new ManualClock() });
  await row(sim, body, { key: "key-a" });
  assert.equal((await row(sim, body, { key: "key-b" })).read, 0);
  const bearer = await row(sim, body, { key: "", headers: { authorization: "Bearer key-a" } });
  assert.deepEqual([bearer.read, bearer.workspace], [5_000, "workspace-1"]);
  await using shared = await startSimulator({ rules: { cache: { isolation: "organization" } } });
  await row(shared, body, { key: "key-a" });
  assert.equal((await row(shared, body, { key: "key-b" })).read, 5_000);
});
