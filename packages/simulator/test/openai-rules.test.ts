/** OpenAI from GPT-5.6 on: entries end at breakpoints and at ends of messages, and writing costs. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { textOfTokens } from "@prefork/simulator";
import { assistant, type Body, developer, figures, responses, rowOf, started, user } from "./wire-sending.ts";

const MINUTE = 60_000;
const ask = responses("gpt-6-sol");

const breakpoint = { prompt_cache_breakpoint: { mode: "explicit" } } as const;
const part = (tokens: number, seed: number, mark: Body = {}): Body => ({
  type: "input_text",
  text: textOfTokens(tokens, seed),
  ...mark,
});
const message = (role: string, ...content: readonly Body[]): Body => ({ type: "message", role, content });
const explicit = { prompt_cache_options: { mode: "explicit" } } as const;

test("from 1,024 tokens on, and exactly at its end, the last user message is written at 1.25 of the input price", async () => {
  await using sim = await started("openai");
  const short = await rowOf(sim, ask([user(1_023)]));
  assert.deepEqual(figures(short), { read: 0, written: 0, plain: 1_023 });
  assert.equal(short.missCause, "below minimum");
  const first = await rowOf(sim, ask([developer(1_000), user(501, 5)]));
  assert.deepEqual(first.written, { "5m": 0, "1h": 0, "30m": 1_501, "12h": 0 });
  assert.deepEqual(first.billed, { inputUnits: 1_876.25, usd: 0.0037625 });
  const again = await rowOf(sim, ask([developer(1_000), user(501, 5)]));
  assert.deepEqual(figures(again), { read: 1_501, written: 0, plain: 0 });
  assert.deepEqual(again.billed, { inputUnits: 150.1, usd: 0.0003102 });
});

test("a conversation that grows reads up to the last user message before, and writes from there", async () => {
  await using sim = await started("openai");
  const opening = [developer(2_000), user(500)];
  await rowOf(sim, ask(opening));
  const next = await rowOf(sim, ask([...opening, assistant(100), user(300, 7)]));
  assert.deepEqual(figures(next), { read: 2_500, written: 400, plain: 0 });
});

test("a group of tool outputs ends at its last one", async () => {
  await using sim = await started("openai");
  const call = (id: string): Body => ({ type: "function_call", call_id: id, name: "Read", arguments: "{}" });
  const output = (id: string, tokens: number): Body => ({
    type: "function_call_output",
    call_id: id,
    output: textOfTokens(tokens, 3),
  });
  const turn = [user(2_000), call("a"), call("b"), output("a", 300), output("b", 400)];
  const first = await rowOf(sim, ask(turn));
  assert.deepEqual(figures(first), { read: 0, written: 2_702, plain: 0 });
  const again = await rowOf(sim, ask([...turn, assistant(10), user(50, 9)]));
  assert.deepEqual(figures(again), { read: 2_702, written: 60, plain: 0 });
  const inside = await rowOf(sim, ask([user(2_000), call("a"), output("a", 300)]));
  assert.deepEqual(figures(inside), { read: 0, written: 2_301, plain: 0 }, "nothing ends inside the group");
});

test("a message that grows loses its end, and a later developer message has none", async () => {
  await using sim = await started("openai");
  await rowOf(sim, ask([message("user", part(2_000, 1))]));
  const grown = await rowOf(sim, ask([message("user", part(2_000, 1), part(100, 2))]));
  assert.deepEqual([figures(grown), grown.missCause], [{ read: 0, written: 2_100, plain: 0 }, "no marker there"]);
  const note = await rowOf(sim, ask([message("user", part(2_000, 1)), assistant(10), developer(300, 5)]));
  assert.deepEqual(figures(note), { read: 2_000, written: 0, plain: 310 });
});

test("a sibling with other last words reads nothing by itself, and all up to a breakpoint that both have", async () => {
  await using sim = await started("openai");
  await rowOf(sim, ask([developer(2_000), user(500, 1)]));
  const sibling = await rowOf(sim, ask([developer(2_000), user(500, 2)]));
  assert.deepEqual(figures(sibling), { read: 0, written: 2_500, plain: 0 });
  const marked = (seed: number): readonly Body[] => [message("developer", part(3_000, 4, breakpoint)), user(500, seed)];
  await rowOf(sim, ask(marked(1)));
  assert.deepEqual(figures(await rowOf(sim, ask(marked(2)))), { read: 3_000, written: 500, plain: 0 });
});

test("explicit mode without a breakpoint uses no cache, and does not find what ended by itself", async () => {
  await using sim = await started("openai");
  assert.deepEqual(figures(await rowOf(sim, ask([user(2_000)], explicit))), { read: 0, written: 0, plain: 2_000 });
  await rowOf(sim, ask([user(2_000)]));
  const unmarked = await rowOf(sim, ask([user(2_000)], explicit));
  assert.deepEqual([figures(unmarked), unmarked.missCause], [{ read: 0, written: 0, plain: 2_000 }, "no marker there"]);
  const there = await rowOf(sim, ask([message("user", part(2_000, 0, breakpoint))], explicit));
  assert.deepEqual(figures(there), { read: 2_000, written: 0, plain: 0 }, "one at the same boundary does");
});

test("of six breakpoints the latest four are written in explicit mode, and the latest three plus the implicit one otherwise", async () => {
  const marks = (count: number): readonly Body[] => [
    message("user", ...Array.from({ length: count }, (_, index) => part(1_024, index, breakpoint))),
  ];
  const readOf = async (count: number, more: Body): Promise<number> => {
    await using sim = await started("openai");
    await rowOf(sim, ask([...marks(6), assistant(1), user(1)], more));
    return (await rowOf(sim, ask(marks(count), more))).read;
  };
  assert.deepEqual([await readOf(2, explicit), await readOf(3, explicit)], [0, 3_072]);
  assert.deepEqual([await readOf(3, {}), await readOf(4, {})], [0, 4_096]);
});

test("an entry lives thirty minutes after its last use", async () => {
  await using sim = await started("openai");
  const body = ask([user(2_000)]);
  await rowOf(sim, body);
  sim.clock.advance(29 * MINUTE);
  assert.equal((await rowOf(sim, body)).read, 2_000);
  sim.clock.advance(29 * MINUTE);
  assert.equal((await rowOf(sim, body)).read, 2_000, "a read extends it");
  sim.clock.advance(30 * MINUTE);
  const late = await rowOf(sim, body);
  assert.deepEqual([late.read, late.missCause], [0, "expired"]);
});

test("an entry written for twelve hours lives that long, and its price is not published", async () => {
  await using sim = await started("openai");
  const body = ask([user(2_000)], { prompt_cache_options: { ttl: "12h" } });
  const first = await rowOf(sim, body);
  assert.deepEqual(first.written, { "5m": 0, "1h": 0, "30m": 0, "12h": 2_000 });
  assert.deepEqual(first.billed, { inputUnits: null, usd: null });
  sim.clock.advance(12 * 60 * MINUTE - 1);
  assert.equal((await rowOf(sim, body)).read, 2_000);
});

test("above 272,000 tokens the whole request costs twice to send and half as much again to answer", async () => {
  await using sim = await started("openai");
  const at = await rowOf(sim, ask([user(272_000)], explicit));
  assert.equal(at.billed.usd, 0.54401);
  const above = await rowOf(sim, ask([user(272_001)], explicit));
  assert.equal(above.billed.usd, 1.088019);
});

test("the first 2 and the latest 50 breakpoints are looked up; with 80 as the types say, one between is found", async () => {
  const content = (count: number, marked: (index: number) => boolean): readonly Body[] => [
    message(
      "user",
      ...Array.from({ length: count }, (_, index) => part(600, index, marked(index + 1) ? breakpoint : {})),
    ),
  ];
  const readOf = async (entry: number, rules = {}): Promise<readonly [number, string | null]> => {
    await using sim = await started("openai", { rules });
    await rowOf(
      sim,
      ask(
        content(entry, (index) => index === entry),
        explicit,
      ),
    );
    const { read, missCause } = await rowOf(
      sim,
      ask(
        content(60, () => true),
        explicit,
      ),
    );
    return [read, missCause];
  };
  assert.deepEqual(await readOf(2), [1_200, null]);
  assert.deepEqual(await readOf(5), [0, "look-back exceeded"]);
  assert.deepEqual(await readOf(11), [6_600, null]);
  const eighty = { cache: { endings: { firstMarkers: 0, latestMarkers: 80 } } };
  assert.deepEqual(await readOf(5, eighty), [3_000, null]);
});

test("twenty ends of messages before the last one are looked up", async () => {
  await using sim = await started("openai");
  await rowOf(sim, ask([user(1_100, 1)]));
  const turns = (count: number): readonly Body[] =>
    Array.from({ length: count }, (_, index) => [assistant(1, index), user(1, index)]).flat();
  const near = await rowOf(sim, ask([user(1_100, 1), ...turns(20)]));
  assert.equal(near.read, 1_100);
  await using other = await started("openai");
  await rowOf(other, ask([user(1_100, 1)]));
  const far = await rowOf(other, ask([user(1_100, 1), ...turns(21)]));
  assert.deepEqual([far.read, far.missCause], [0, "look-back exceeded"]);
});

test("another cache key finds nothing; more than fifteen requests a minute of one key go to another machine", async () => {
  await using sim = await started("openai");
  const keyed = (key: string) => ask([user(2_000)], { prompt_cache_key: key });
  await rowOf(sim, keyed("family"));
  assert.equal((await rowOf(sim, keyed("other"))).read, 0);
  for (let count = 2; count <= 15; count += 1) assert.equal((await rowOf(sim, keyed("family"))).read, 2_000);
  const sixteenth = await rowOf(sim, keyed("family"));
  assert.deepEqual([sixteenth.read, sixteenth.expectedRead, sixteenth.missCause], [0, 2_000, "overflowed"]);
  sim.clock.advance(MINUTE);
  assert.equal((await rowOf(sim, keyed("family"))).read, 2_000);
});

const tool = (name: string): Body => ({ type: "function", name, parameters: { type: "object" }, strict: false });
const base: Body = { tools: [tool("Read")] };
const changes: readonly (readonly [what: string, change: Body, kept: boolean])[] = [
  ["effort", { reasoning: { effort: "high" } }, false],
  ["verbosity", { text: { verbosity: "low" } }, false],
  ["text format", { text: { format: { type: "json_object" } } }, false],
  ["service tier", { service_tier: "flex" }, false],
  ["parallel calls", { parallel_tool_calls: false }, false],
  ["another tool", { tools: [tool("Read"), tool("Grep")] }, false],
  ["choice of tools", { tool_choice: "none" }, true],
  ["output limit", { max_output_tokens: 100 }, true],
  ["temperature", { temperature: 0 }, true],
  ["safety identifier", { safety_identifier: "u" }, true],
];

for (const [what, change, kept] of changes)
  test(`a change of ${what} ${kept ? "keeps" : "loses"} the prefix`, async () => {
    await using sim = await started("openai");
    const first = await rowOf(sim, ask([user(2_000)], base));
    const changed = await rowOf(sim, ask([user(2_000)], { ...base, ...change }));
    assert.equal(changed.read, kept ? first.promptTokens : 0);
  });

test("a prewarmed prompt is written without an answer, and read by the next request", async () => {
  await using sim = await started("openai");
  const warm = await rowOf(sim, ask([user(2_000)], { prompt_cache_options: { prewarm: true } }));
  assert.deepEqual([figures(warm), warm.output], [{ read: 0, written: 2_000, plain: 0 }, 0]);
  assert.equal((await rowOf(sim, ask([user(2_000)]))).read, 2_000);
});

test("siblings that are sent together all miss and all write", async () => {
  await using sim = await started("openai");
  sim.fault({ kind: "together", times: 3 });
  const rows = await Promise.all([1, 2, 3].map(() => rowOf(sim, ask([user(2_000)]))));
  assert.deepEqual(rows.map(figures), Array(3).fill({ read: 0, written: 2_000, plain: 0 }));
  assert.deepEqual(
    sim.ledger().map(({ missCause }) => missCause),
    [null, "raced", "raced"],
  );
});

test("a model of the 6.1 generation is read at a twentieth", async () => {
  await using sim = await started("openai");
  const terra = responses("gpt-6.1-terra")([user(2_000)], explicit);
  assert.equal((await rowOf(sim, terra)).billed.usd, 0.002005);
  const marked = responses("gpt-6.1-terra")([message("user", part(2_000, 3, breakpoint))], explicit);
  await rowOf(sim, marked);
  assert.deepEqual((await rowOf(sim, marked)).billed, { inputUnits: 100, usd: 0.000105 });
});
