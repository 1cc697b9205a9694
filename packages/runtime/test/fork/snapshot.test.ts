/** What a fork inherits: everything that its parent's cache depends on, and nothing twice. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { callTools, say } from "@prefork/simulator";
import {
  anthropic,
  FORK_PLACEHOLDER_RESULT,
  FrozenPrefix,
  type Head,
  type KeySettings,
  type Marker,
  type ToolSpec,
  userText,
} from "@prefork/wire";
import * as z from "zod";
import {
  type CacheSafeParams,
  cacheKeyHash,
  findCacheMiss,
  findDivergence,
  SnapshotSlot,
} from "../../src/fork/index.ts";
import { defineTool, type SessionOptions } from "../../src/index.ts";
import { endsOf, familyScript, openFamily, part, prompted, starts, withoutMarkers } from "./family-ground.ts";

const tool = (name: string): ToolSpec => ({
  type: "function",
  name,
  description: `Does what ${name} does.`,
  inputSchema: { type: "object", properties: {} },
});

const paramsOf = (settings: KeySettings = {}, tools: readonly ToolSpec[] = [tool("Look")]): CacheSafeParams => {
  const head: Head = { model: "claude-sonnet-4-6", tools, system: [{ type: "text", text: "You look." }], settings };
  const prefix = FrozenPrefix.open(anthropic.encoder, head).append(userText("Look around."));
  return {
    protocol: anthropic,
    prefix,
    markers: [],
    head,
    epoch: 1,
    measured: undefined,
    pictures: { count: 0, bytes: 0 },
    turns: 1,
    maxTokens: 500,
  };
};

const marked = (params: CacheSafeParams, marker: Marker): CacheSafeParams => ({ ...params, markers: [marker] });

test("snapshots with equal bytes have equal keys, and every change to the rendered bytes changes the key", () => {
  const key = cacheKeyHash(paramsOf());
  assert.equal(cacheKeyHash(paramsOf()), key);
  assert.equal(cacheKeyHash({ ...paramsOf() }), key);
  const others: readonly (readonly [string, CacheSafeParams])[] = [
    ["a tool more", paramsOf({}, [tool("Look"), tool("Run")])],
    ["tools in another order", paramsOf({}, [tool("Run"), tool("Look")])],
    ["thinking", paramsOf({ thinking: { type: "adaptive" } })],
    ["effort", paramsOf({ effort: "low" })],
    ["tool choice", paramsOf({ toolChoice: { type: "none" } })],
    ["a beta", paramsOf({ betas: ["some-beta"] })],
    ["another message", { ...paramsOf(), prefix: paramsOf().prefix.append(userText("And there.")) }],
  ];
  assert.equal(new Set([key, ...others.map(([, params]) => cacheKeyHash(params))]).size, others.length + 1);
});

test("temperature and markers are not in the key; every other setting is", () => {
  const key = cacheKeyHash(paramsOf());
  for (const temperature of [0, 0.5, 1]) assert.equal(cacheKeyHash(paramsOf({ temperature })), key);
  const settings = { effort: "low", stopSequences: [',"temperature":1'], betas: ["some-beta"] };
  assert.equal(cacheKeyHash(paramsOf({ ...settings, temperature: 0.3 })), cacheKeyHash(paramsOf(settings)));
  assert.notEqual(cacheKeyHash(paramsOf({ ...settings, temperature: 0.3 })), key);
  const { prefix } = paramsOf();
  assert.ok(prefix.tip);
  for (const ttl of ["5m", "1h"] as const)
    assert.equal(cacheKeyHash(marked(paramsOf(), { at: prefix.tip, role: "tail", ttl })), key);
});

test("a slot is empty until a main turn fills it; others only read it, and clearing empties it", () => {
  const slot = new SnapshotSlot();
  const [first, second] = [paramsOf(), paramsOf({ effort: "low" })];
  assert.equal(slot.get(), undefined);
  assert.equal(slot.save(first, "main"), true);
  assert.equal(slot.get(), first);
  for (const source of ["agent:builtin:fork", "agent:general-purpose", "sidecar:memory", "eval", "anything", ""])
    assert.equal(slot.save(second, source), false, source);
  assert.equal(slot.get(), first);
  assert.equal(slot.save(second, "sdk"), true);
  assert.equal(slot.get(), second);
  slot.clear();
  assert.equal(slot.get(), undefined);
});

test("a provider that reports no cache is checked by its bytes, and the first byte that differs is named", () => {
  const { prefix: parent } = paramsOf();
  const { prefix: child } = paramsOf({}, [tool("Run")]);
  const usage = { plain: 10_300, read: 0, written: {}, output: 1 };
  assert.deepEqual(
    findCacheMiss({
      expectation: { tokens: 10_000, estimated: 0, parent },
      diverged: findDivergence(parent, child),
      usage,
    }),
    {
      ...{ expected: 10_000, read: 0, prompt: 10_300, isWarning: true, diverged: "tools[0].name" },
      cause: "the bytes differ from the parent's at tools[0].name",
    },
  );
});

// --- of a session ------------------------------------------------------------------------------------------------------

const settings: KeySettings = {
  thinking: { type: "enabled", budgetTokens: 1_024 },
  effort: "low",
  toolChoice: { type: "auto" },
  parallelTools: true,
  stopSequences: ["###"],
  temperature: 1,
  serviceTier: "auto",
  betas: ["some-beta-2026-01-01"],
};

const options: Partial<SessionOptions> = { model: "claude-sonnet-4-6", settings, maxTokens: 3_000 };

test("a snapshot holds the model, tools, system, settings, messages and answer limit of the last main turn", async () => {
  await using ground = await openFamily(
    familyScript({
      main: starts([part("one")]),
      fork: ({ directive }) => say(`Scope: ${directive}\nResult: done`),
    }),
  );
  await using session = await ground.open(options);
  const now = (): CacheSafeParams | undefined => session.snapshot;
  assert.equal(now(), undefined);
  const taken: (CacheSafeParams | undefined)[] = [];
  await prompted(session, "go", (event) => {
    if (event.type === "turn_ended" && event.agent !== "main") taken.push(now());
  });
  const snapshot = now();
  assert.ok(snapshot);
  const bodies = ground.simulator.requests().map(({ body }) => body);
  const last = bodies.findLast((body) => !body.includes("fork-directive"));
  assert.ok(last);
  const { model, tools, system, messages, max_tokens: maxTokens } = JSON.parse(last.toString("utf8"));
  assert.deepEqual(
    {
      model: snapshot.head.model,
      tools: snapshot.head.tools.map(({ name }) => name),
      system: snapshot.head.system.map(({ text }) => text),
      settings: snapshot.head.settings,
      messages: snapshot.lastSent?.messages,
      maxTokens: snapshot.maxTokens,
    },
    {
      ...{ model, settings, maxTokens },
      tools: tools.map(({ name }: { readonly name: string }) => name),
      system: system.map(({ text }: { readonly text: string }) => text),
      messages: messages.length,
    },
  );
  // Turns of the fork changed nothing of it: what was there then is a beginning of what is there now.
  for (const earlier of taken) assert.ok(earlier && snapshot.prefix.startsWith(earlier.prefix));
});

test("a fork sends all of its parent's settings and headers, temperature included, and reads its cache", async () => {
  await using ground = await openFamily(
    familyScript({ main: () => say("heard"), fork: ({ directive }) => say(`Scope: ${directive}\nResult: done`) }),
    { conventions: 4_000 },
  );
  await using session = await ground.open(options);
  await prompted(session, "hello");
  await session.fork({ prompt: "one" }).result();
  const [parent, child] = ground.simulator.requests();
  assert.ok(parent && child);
  const headOf = (body: Buffer): string => body.toString("utf8", 0, body.indexOf(',"tools":['));
  assert.equal(headOf(child.body), headOf(parent.body));
  assert.match(headOf(child.body), /"stop_sequences":\["###"\]/);
  assert.match(headOf(child.body), /"temperature":1/);
  assert.equal(child.headers["anthropic-beta"], "some-beta-2026-01-01");
  const closing = (body: Buffer): string =>
    body.toString("utf8").slice(body.toString("utf8").lastIndexOf('"max_tokens"'));
  assert.equal(closing(child.body), closing(parent.body));
  const [first, second] = ground.simulator.ledger();
  assert.equal(second?.read, first?.promptTokens);
});

test("a call that is open when a program forks stays unchanged in the fork, and is answered once", async () => {
  await using ground = await openFamily(
    familyScript({
      main: ({ results }) => (results.length > 0 ? say("heard") : callTools([{ name: "Hold", input: { word: "x" } }])),
      fork: ({ directive }) => say(`Scope: ${directive}\nResult: done`),
    }),
  );
  const forked = Promise.withResolvers<void>();
  const holding = defineTool({
    name: "Hold",
    description: "Waits until somebody has forked.",
    input: z.strictObject({ word: z.string() }),
    readOnly: true,
    run: async () => {
      await session.fork({ prompt: "beside it" }).result();
      forked.resolve();
      return { content: "held" };
    },
  });
  await using session = await ground.open({ tools: [holding] });
  await prompted(session, "go");
  await forked.promise;
  assert.deepEqual(endsOf(session), { "beside it": "reported" });
  const [, child, next] = ground.bodies().map((body) => JSON.parse(withoutMarkers(JSON.stringify(body.messages))));
  const calls = [
    { type: "tool_use", id: next[1].content[0].id, name: "Hold", input: { word: "x" }, caller: { type: "direct" } },
  ];
  assert.deepEqual(child[1], { role: "assistant", content: calls });
  assert.deepEqual(next[1], child[1]);
  const answered = (words: string) => [
    { type: "tool_result", tool_use_id: calls[0]?.id, content: [{ type: "text", text: words }] },
  ];
  assert.deepEqual(child[2].content.slice(0, -1), answered(FORK_PLACEHOLDER_RESULT));
  assert.deepEqual(next[2].content, answered("held"));
});
