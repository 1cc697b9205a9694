/** What a family shares, stored by name with Gemini: when it pays, that it means the same, what it costs, and that it is
 *  removed. Every figure is compared with the simulated provider's ledger, over HTTP. */

import assert from "node:assert/strict";
import { cpSync, mkdirSync } from "node:fs";
import { test } from "node:test";
import { mergeLayers } from "@prefork/guard";
import {
  callTools,
  ManualClock,
  type ProviderName,
  type SimRequest,
  type Simulator,
  say,
  startSimulator,
  toolResults,
} from "@prefork/simulator";
import { type Scratch, scratch } from "@prefork/testing/scratch";
import type { Json, JsonObject } from "@prefork/wire";
import { Account } from "../../src/agent/index.ts";
import type { EventBody } from "../../src/events.ts";
import { StoredPrefixes } from "../../src/fork/stored-prefixes.ts";
import { createSession, engineFor, type RuntimeEvent, resumeSession, type SessionOptions } from "../../src/index.ts";
import { ephemeralJournal } from "../../src/journal/index.ts";
import { explainFamily, readFamily } from "../../src/observe.ts";

const PARTS = ["part1", "part2", "part3", "part4", "part5"];

/** Reads, then has each part looked at by a fork that reads too; every answer takes five seconds. */
const script = (clock: ManualClock, at?: (words: string) => unknown) => async (request: SimRequest) => {
  clock.advance(5_000);
  const text = JSON.stringify(request.body);
  const directive = text.lastIndexOf("fork-directive: part");
  if (directive >= 0) {
    await at?.("fork");
    if (text.slice(directive).includes("own.txt")) return say("Scope: part\nResult: done");
    return callTools([{ name: "Read", input: { file_path: "own.txt" } }]);
  }
  if (text.includes("<task-id>")) return say("All parts are done.");
  if (text.includes("look at part1")) return say("I wait.");
  const read = toolResults(request).length;
  if (read === 0) return callTools([{ name: "Read", input: { file_path: "a.txt" } }]);
  if (!text.includes("b.txt")) return callTools([{ name: "Read", input: { file_path: "b.txt" } }]);
  return callTools(
    PARTS.map((part) => ({ name: "Agent", input: { description: `look at ${part}`, prompt: part } })),
    "Each part is looked at by a fork.",
  );
};

type Ground = AsyncDisposable & {
  readonly folder: Scratch;
  readonly clock: ManualClock;
  readonly simulator: Simulator;
  readonly options: (more?: Partial<SessionOptions>) => SessionOptions;
};

const opened = async (rules: ProviderName, at?: (words: string) => unknown): Promise<Ground> => {
  const folder = scratch();
  for (const name of ["work", "home"]) mkdirSync(folder.at(name));
  folder.put("work/a.txt", "every line is read by the parent, and known to its forks\n".repeat(300));
  folder.put("work/b.txt", "b.txt\n");
  folder.put("work/own.txt", "own.txt\n");
  const clock = new ManualClock();
  const simulator = await startSimulator({ provider: rules, clock, keepBodies: true, script: script(clock, at) });
  return {
    ...{ folder, clock, simulator },
    options: (more = {}) => ({
      engine: engineFor("gemini", {
        baseUrl: `${simulator.url}/v1beta`,
        credential: { kind: "api-key", value: "any" },
        retry: { attempts: 1 },
      }),
      ...{ cwd: folder.at("work"), home: folder.at("home"), state: folder.at("state") },
      environment: { PATH: "/usr/bin:/bin" },
      permissions: { policy: { ...mergeLayers([]), sandbox: "off" }, mode: "bypass" },
      clock: { now: () => clock.now() },
      ...more,
    }),
    [Symbol.asyncDispose]: async () => {
      await simulator.close();
      folder[Symbol.dispose]();
    },
  };
};

/** `told`: what the exchange says it cost. */
type Run = {
  readonly id: string;
  readonly usd: number;
  readonly told: number;
  readonly events: readonly RuntimeEvent[];
};

const run = async (ground: Ground, more: Partial<SessionOptions> = {}): Promise<Run> => {
  await using session = await createSession(ground.options(more));
  const events: RuntimeEvent[] = [];
  const reader = session.events();
  const reading = (async () => {
    for await (const event of reader) events.push(event);
  })();
  const { end, text, usd: told } = await session.prompt("Have all parts looked at.").result();
  assert.deepEqual([end, text], ["done", "All parts are done."]);
  await session.close();
  await reading;
  return { id: session.id, usd: session.spent.usd, told, events };
};

const isStoring = ({ type }: RuntimeEvent): boolean => type.startsWith("prefix_");
const billed = ({ simulator }: Ground): number =>
  simulator.ledger().reduce((sum, row) => sum + (row.billed.usd ?? 0), 0);
const cents = (usd: number | undefined): number => Math.round((usd ?? Number.NaN) * 1e9) / 1e9;
const bodiesOf = ({ simulator }: Ground): readonly { readonly path: string; readonly body: JsonObject }[] =>
  simulator.requests().map(({ path, body }) => ({ path, body: JSON.parse(body.toString() || "{}") as JsonObject }));
const listOf = (value: Json | undefined): readonly Json[] => (Array.isArray(value) ? value : []);

test("if nothing can be read without a stored entry, a family stores what it shares, reads it from its first request on, and removes it", async () => {
  await using ground = await opened("gemini-explicit");
  const { usd, events, id } = await run(ground);
  const [stored, released, ...others] = events.filter(isStoring);
  assert.ok(stored?.type === "prefix_stored" && released?.type === "prefix_released");
  assert.deepEqual([others, released.how, released.name], [[], "removed", stored.name]);
  const rows = ground.simulator.ledger();
  const forks = bodiesOf(ground).flatMap(({ body }, at) =>
    JSON.stringify(body).includes("fork-directive") ? [at] : [],
  );
  assert.equal(forks.length, PARTS.length * 2);
  assert.deepEqual(await heldBy(ground), []);
  for (const at of forks) assert.equal(rows[at]?.read, stored.tokens);
  // Nobody is missed, and what the session says is what the provider bills: creation and storage among it.
  assert.deepEqual(
    events.filter(({ type }) => type === "fork_cache_missed"),
    [],
  );
  assert.equal(cents(usd), cents(billed(ground)));
  const store = { state: ground.folder.at("state"), now: () => ground.clock.now(), newId: () => "" };
  const family = await readFamily(store, id);
  assert.deepEqual(
    family.rows
      .filter(({ kind }) => kind === "stored" || kind === "storage")
      .map(({ kind, usage, usd: cost }) => [kind, usage.plain, cents(cost)]),
    [
      ["stored", stored.tokens, cents(stored.usd)],
      ["storage", 0, cents(released.usd)],
    ],
  );
  // Each fork's row expects what the entry holds, and has read it.
  assert.deepEqual(
    family.rows
      .filter(({ agent }) => agent !== "main")
      .map(({ expected, estimated, usage, cause }) => [expected, estimated, usage.read, cause.kind]),
    PARTS.flatMap(() => [0, 1].map(() => [stored.tokens, 0, stored.tokens, "none"])),
  );
  assert.deepEqual(
    family.rows.filter(({ cause }) => cause.kind === "unexplained"),
    [],
  );
  const { total } = explainFamily(family);
  assert.equal(cents(total.usd), cents(billed(ground)));
  assert.equal(cents(released.usd), cents((stored.tokens * 0.5 * released.ms) / 3_600_000 / 1e6));
});

test("a stored entry makes a family cheaper, by exactly the calculated amount", async () => {
  await using storing = await opened("gemini-explicit");
  await using plain = await opened("gemini-explicit");
  const stored = await run(storing);
  const unstored = await run(plain, { forking: { store: false } });
  assert.deepEqual(unstored.events.filter(isStoring), []);
  // Ten requests of forks and two of the parent read 8,238 tokens each for a tenth; storing them costs them once.
  const spared = 12 * 8_238 * 0.9 - 8_238;
  const storage = stored.events.flatMap((event) => (event.type === "prefix_released" ? [event.usd] : []));
  // What a notification says of its task's time and money is a few tokens longer or shorter.
  const roughly = (usd: number): string => usd.toFixed(4);
  assert.equal(roughly(unstored.usd - stored.usd), roughly((spared * 0.75) / 1e6 - (storage[0] ?? 0)));
});

test("a request that names an entry means, together with it, the same as the whole request", async () => {
  await using storing = await opened("gemini-explicit");
  await using plain = await opened("gemini-explicit");
  await run(storing);
  await run(plain, { forking: { store: false } });
  const held = bodiesOf(storing).find(({ path }) => path.endsWith("/cachedContents"))?.body ?? {};
  const whole = (body: JsonObject): JsonObject => {
    const { cachedContent, contents, ...rest } = body;
    // An empty list only gives every head the same opening.
    if (cachedContent === undefined) return { ...body, safetySettings: null };
    for (const name of ["tools", "toolConfig", "systemInstruction"]) assert.equal(rest[name], undefined);
    const { ttl: _ttl, model: _model, contents: before, ...head } = held;
    return { ...head, ...rest, safetySettings: null, contents: [...listOf(before), ...listOf(contents)] };
  };
  const asked = (ground: Ground): readonly string[] =>
    bodiesOf(ground)
      .filter(({ path }) => path.includes("enerateContent"))
      .map(({ body }) => withoutIds(JSON.stringify(sorted(whole(body)))))
      .filter((body) => body.includes("fork-directive"))
      .toSorted();
  const [named, alone] = [asked(storing), asked(plain)];
  assert.equal(named.length, PARTS.length * 2);
  assert.ok(named.every((body, at) => body === alone[at]));
});

test("if the provider's automatic cache already holds the whole conversation, nothing is stored", async () => {
  await using ground = await opened("gemini");
  const { events, usd } = await run(ground);
  assert.deepEqual(events.filter(isStoring), []);
  assert.equal(cents(usd), cents(billed(ground)));
});

/** Names of what the provider holds. */
const heldBy = async ({ simulator }: Ground): Promise<readonly unknown[]> => {
  const response = await fetch(`${simulator.url}/v1beta/cachedContents`, { headers: { "x-goog-api-key": "any" } });
  const { cachedContents = [] } = (await response.json()) as { cachedContents?: readonly { name: string }[] };
  return cachedContents.map(({ name }) => name);
};

test("if an entry disappears early, requests are sent whole", async () => {
  let forks = 0;
  await using ground = await opened("gemini-explicit", () => {
    forks += 1;
    if (forks === 1) ground.clock.advance(700_000);
  });
  const { events, usd } = await run(ground);
  const released = events.find(({ type }) => type === "prefix_released");
  assert.ok(released?.type === "prefix_released");
  assert.deepEqual([released.how, released.ms], ["gone", 600_000]);
  const asked = bodiesOf(ground).filter(({ body }) => JSON.stringify(body).includes("fork-directive"));
  assert.ok(asked.some(({ body }) => body.cachedContent === undefined));
  assert.equal(cents(usd), cents(billed(ground)));
});

test("the reported cost of an exchange includes storage", async () => {
  await using ground = await opened("gemini-explicit");
  const { told, events } = await run(ground);
  assert.equal(cents(told), cents(billed(ground)));
  const order = events.map(({ type }) => type).filter((type) => /^prefix_released|^exchange_ended/.test(type));
  assert.deepEqual(order, ["prefix_released", "exchange_ended"]);
});

/** Has the entry removed by somebody else when the last fork has asked for the first time. */
const withRemoved = async (): Promise<Ground & { readonly removedAt: () => number }> => {
  let forks = 0;
  let removedAt = Number.NaN;
  const ground = await opened("gemini-explicit", async () => {
    forks += 1;
    if (forks !== PARTS.length) return;
    removedAt = ground.clock.now();
    for (const name of await heldBy(ground))
      await fetch(`${ground.simulator.url}/v1beta/${name}`, {
        method: "DELETE",
        headers: { "x-goog-api-key": "any" },
      });
  });
  return { ...ground, removedAt: () => removedAt };
};

test("an entry that somebody else removed is billed for the time it is known to have existed", async () => {
  await using ground = await withRemoved();
  const begun = ground.clock.now();
  const { events } = await run(ground);
  const released = events.find(({ type }) => type === "prefix_released");
  assert.ok(released?.type === "prefix_released");
  assert.equal(released.how, "gone");
  assert.ok(released.ms >= 0 && released.ms <= ground.removedAt() - begun, String(released.ms));
  assert.equal(cents(released.usd), cents((released.tokens * 0.5 * released.ms) / 3_600_000 / 1e6));
});

test("requests that were sent whole because their entry had disappeared say so", async () => {
  await using ground = await withRemoved();
  const { events, id } = await run(ground);
  const stored = events.find(({ type }) => type === "prefix_stored");
  assert.ok(stored?.type === "prefix_stored");
  const { name, tokens } = stored;
  const store = { state: ground.folder.at("state"), now: () => ground.clock.now(), newId: () => "" };
  const family = await readFamily(store, id);
  const forks = family.rows.filter(({ agent }) => agent !== "main");
  const whole = forks.filter(({ usage }) => usage.read === 0);
  assert.ok(whole.length > 0);
  assert.deepEqual(
    whole.map(({ expected, cause }) => [expected, cause]),
    whole.map(() => [tokens, { kind: "entry-gone", name }]),
  );
  const { misses } = explainFamily(family);
  assert.deepEqual(
    misses.filter(({ agent }) => agent !== "main").map(({ lost, why }) => [lost, why]),
    whole.map(() => [tokens, `${name} was gone, and the request was sent in full`]),
  );
  assert.ok(misses.every(({ cause }) => cause.kind === "entry-gone"));
});

/** Long enough before its end to hold an entry again. */
const RENEW_MS = 480_000;

/** A clock on which an entry is due to be renewed when a test says so, once; nothing else ever is. */
const renewing = ({ clock }: Ground) => {
  const [due, renewed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let times = 0;
  const sleep = async (ms: number, signal: AbortSignal): Promise<void> => {
    if (ms === RENEW_MS) times += 1;
    if (ms === RENEW_MS && times === 1) return due.promise;
    if (ms === RENEW_MS) renewed.resolve();
    await new Promise((ended) => signal.addEventListener("abort", ended, { once: true }));
  };
  const pass = (): void => {
    clock.advance(RENEW_MS);
    due.resolve();
  };
  return { clock: { now: () => clock.now(), sleep }, pass, renewed: renewed.promise };
};

test("an entry that is needed for longer is renewed shortly before it expires, and billed for its whole lifetime", async () => {
  let forks = 0;
  await using ground = await opened("gemini-explicit", async () => {
    forks += 1;
    if (forks !== PARTS.length) return;
    time.pass();
    await time.renewed;
    ground.clock.advance(RENEW_MS);
  });
  const time = renewing(ground);
  const { events, usd } = await run(ground, { clock: time.clock });
  const released = events.find(({ type }) => type === "prefix_released");
  assert.ok(released?.type === "prefix_released");
  assert.deepEqual([released.how, released.ms > 2 * RENEW_MS], ["removed", true]);
  assert.equal(cents(usd), cents(billed(ground)));
});

test("a journal's record of an entry counts only if it is complete", async () => {
  await using journal = await ephemeralJournal("session-1");
  const events: EventBody[] = [];
  const clock = { now: () => 2_000 };
  const stored = new StoredPrefixes({ contents: undefined, journal, clock, emit: (event) => events.push(event) });
  const whole = { name: "cachedContents/one", tokens: 36_000, model: "gemini-3.8-flash", from: 1_000, until: 601_000 };
  const broken = Object.keys(whole).map((field) => ({ ...whole, [field]: null }));
  const values: readonly Json[] = [...broken, { endedAt: 1_500 }, null, "one", []];
  const state = new Map(values.map((value, at) => [`stored:${at}`, value]));
  await stored.takeOver(state.set("noted:one", whole).set("stored:one", whole), new Account());
  const { name, tokens } = whole;
  assert.deepEqual(events, [{ type: "prefix_released", name, tokens, ms: 600_000, usd: 0.003, how: "left" }]);
});

test("an entry that a killed session left behind is removed when the session resumes, and billed for as long as it was stored", async () => {
  const { promise: killed, resolve: endAll } = Promise.withResolvers<void>();
  await using ground = await opened("gemini-explicit", () => killed);
  const session = await createSession(ground.options());
  const exchange = session.prompt("Have all parts looked at.");
  for await (const event of session.events()) if (event.type === "prefix_stored") break;
  // As if the process died here: its journal as it is now, and nobody who closes anything.
  await new Promise((done) => setTimeout(done, 50));
  const isLock = (path: string): boolean => path.endsWith("lock");
  cpSync(ground.folder.at("state"), ground.folder.at("copy"), { recursive: true, filter: (path) => !isLock(path) });
  assert.equal((await heldBy(ground)).length, 1);
  const before = ground.clock.now();
  ground.clock.advance(60_000);
  const again = await resumeSession(session.id, ground.options({ state: ground.folder.at("copy") }));
  assert.deepEqual(await heldBy(ground), []);
  await again.close();
  const store = { state: ground.folder.at("copy"), now: () => ground.clock.now(), newId: () => "" };
  const { rows } = await readFamily(store, session.id);
  const held = rows.filter(({ kind }) => kind === "stored" || kind === "storage");
  const created = ground.simulator
    .ledger()
    .find(({ nextRead, promptTokens, output }) => output === 0 && nextRead === promptTokens);
  assert.ok(created && created.timeMs <= before);
  assert.equal(cents(held.reduce((sum, { usd }) => sum + (usd ?? 0), 0)), cents(created.billed.usd ?? 0));
  endAll();
  exchange.abort();
  await session.close();
});

test("if the budget has no room for an entry, an event says so and the family runs without it", async () => {
  await using ground = await opened("gemini-explicit");
  await using session = await createSession(ground.options({ forking: { family: { usd: 0.006 } } }));
  const exchange = session.prompt("Have all parts looked at.");
  const events: RuntimeEvent[] = [];
  for await (const event of exchange) events.push(event);
  assert.deepEqual(
    events.filter(isStoring).map((event) => [event.type, "reason" in event && event.reason]),
    [["prefix_not_stored", "the budget has no room for it"]],
  );
  assert.deepEqual(await heldBy(ground), []);
});

test("an endpoint that cannot store is asked only once", async () => {
  await using ground = await opened("gemini-explicit");
  ground.simulator.fault({ kind: "status", status: 404, nth: 4 });
  const { events } = await run(ground);
  assert.deepEqual(
    events.filter(isStoring).map(({ type }) => type),
    ["prefix_not_stored"],
  );
});

/** Folders and tasks have names of their own. */
const withoutIds = (body: string): string =>
  body
    .replaceAll(/task-[0-9a-f]{10}/g, "task")
    .replaceAll(/\/[^" \\]*\/work/g, "/work")
    .replaceAll(/call_\w+/g, "call");

const sorted = (value: Json): Json => {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .toSorted(([one], [other]) => (one < other ? -1 : 1))
      .map(([key, each]) => [key, sorted(each)]),
  );
};
