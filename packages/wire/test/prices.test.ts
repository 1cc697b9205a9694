import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { knownModels, type ModelFacts, modelFacts, windowOf } from "../src/cost/models.ts";
import { costOf, inputUnits, multipliersOf, type PriceOverride, pricesFor, withPrices } from "../src/cost/prices.ts";
import type { Ttl } from "../src/request.ts";
import { promptTokens, type Usage } from "../src/response.ts";

const factsOf = (model: string): ModelFacts => {
  const facts = modelFacts(model);
  assert.ok(facts, `${model} is in the table`);
  return facts;
};

const million: Usage = { plain: 1e6, read: 1e6, written: { "5m": 1e6, "1h": 1e6 }, output: 1e6 };

const near = (actual: number | undefined, expected: number): void => {
  assert.ok(
    actual !== undefined && Math.abs(actual - expected) <= 1e-9 * Math.max(1, expected),
    `${actual} ≠ ${expected}`,
  );
};

test("a million tokens of each kind cost the published prices", () => {
  const published: Readonly<Record<string, readonly [number, number, number, number, number]>> = {
    "claude-fable-5": [10, 12.5, 20, 1, 50],
    "claude-mythos-5-1": [10, 12.5, 20, 0.25, 50],
    "claude-opus-5-5": [4, 5, 8, 0.2, 20],
    "claude-opus-4-8": [5, 6.25, 10, 0.5, 25],
    "claude-opus-4-1": [15, 18.75, 30, 1.5, 75],
    "claude-sonnet-5-5": [2, 2.5, 4, 0.1, 10],
    "claude-sonnet-5": [2, 2.5, 4, 0.2, 10],
    "claude-sonnet-4-6": [3, 3.75, 6, 0.3, 15],
    "claude-haiku-4-5": [1, 1.25, 2, 0.1, 5],
    "claude-haiku-3-5": [0.8, 1, 1.6, 0.08, 4],
  };
  for (const [model, [plain, fiveMinutes, hour, read, output]] of Object.entries(published)) {
    const cost = costOf(million, factsOf(model));
    near(cost?.plain, plain);
    near(cost?.written["5m"], fiveMinutes);
    near(cost?.written["1h"], hour);
    near(cost?.read, read);
    near(cost?.output, output);
    near(cost?.total, plain + fiveMinutes + hour + read + output);
  }
});

test("prices match the published ones for 30-minute entries, and above 272K tokens too", () => {
  const published: Readonly<Record<string, readonly [number, number, number, number]>> = {
    "gpt-6-astra": [10, 12.5, 1, 50],
    "gpt-6-sol": [2, 2.5, 0.2, 10],
    "gpt-6-luna": [0.1, 0.125, 0.01, 0.5],
    "gpt-6.1-sol": [2, 2.5, 0.1, 10],
    "gpt-6.1-terra": [1, 1.25, 0.05, 5],
    "gpt-5.6-sol": [4, 5, 0.4, 20],
    "gpt-5.6-terra": [2, 2.5, 0.2, 12],
    "gpt-5.6-luna": [0.2, 0.25, 0.02, 1.2],
  };
  for (const [model, [plain, halfHour, read, output]] of Object.entries(published)) {
    const facts = factsOf(model);
    assert.deepEqual(facts.prices, { input: plain, write: { "30m": halfHour }, read, output }, model);
    assert.deepEqual(
      facts.tiers?.map(({ above, prices }) => [above, prices.input, prices.write["30m"], prices.read, prices.output]),
      [[272_000, plain * 2, halfHour * 2, read * 2, output * 1.5].map((price) => Math.round(price * 1e5) / 1e5)],
      model,
    );
  }
});

test("prices match the published ones if writing has no fee", () => {
  const published: Readonly<Record<string, readonly [number, number, number]>> = {
    "gpt-5.5": [5, 0.5, 30],
    "gpt-5.4": [2.5, 0.25, 15],
    "gpt-5.2": [1.75, 0.175, 14],
    "gpt-5.1": [1.25, 0.125, 10],
    "gpt-5": [1.25, 0.125, 10],
    "gpt-4.1": [2, 0.5, 8],
    "gpt-4o": [2.5, 1.25, 10],
    "gemini-4-argon": [2, 0.1, 10],
    "gemini-3.8-flash": [0.75, 0.075, 3.75],
    "gemini-3.7-flash": [0.75, 0.075, 3.75],
    "gemini-3.6-flash": [0.75, 0.075, 3.75],
    "gemini-3.5-flash": [1.5, 0.15, 9],
    "gemini-3.1-pro": [2, 0.2, 12],
    "gemini-2.5-pro": [1.25, 0.125, 10],
    "gemini-2.5-flash": [0.3, 0.03, 2.5],
    "deepseek-flash": [0.15, 0.003, 0.6],
    "deepseek-v4-pro": [0.66, 0.022, 1.98],
    "MiniMax-M3": [0.3, 0.06, 1.2],
    "MiniMax-M3.1-Flash": [0.15, 0.015, 0.6],
  };
  for (const [model, [input, read, output]] of Object.entries(published))
    assert.deepEqual(factsOf(model).prices, { input, write: {}, read, output }, model);
});

test("bills of other providers' requests, to the cent", () => {
  const sol = factsOf("gpt-6-sol");
  near(costOf({ plain: 15, read: 46_700, written: { "30m": 950 }, output: 40 }, sol)?.total, 0.012145);
  // One token over 272K: the whole request at the second price.
  near(costOf({ plain: 1, read: 272_000, written: {}, output: 1_000 }, sol)?.total, 0.123804);
  near(costOf({ plain: 0, read: 272_000, written: {}, output: 1_000 }, sol)?.total, 0.0644);
  near(costOf({ plain: 965, read: 46_700, written: {}, output: 62 }, factsOf("gemini-3.8-flash"))?.total, 0.00445875);
  const pro = factsOf("gemini-3.1-pro");
  near(costOf({ plain: 100, read: 199_900, written: {}, output: 1_000 }, pro)?.total, 0.05218);
  near(costOf({ plain: 101, read: 199_900, written: {}, output: 1_000 }, pro)?.total, 0.098364);
  near(costOf({ plain: 2_128, read: 98_304, written: {}, output: 500 }, factsOf("gpt-5.5"))?.total, 0.074792);
});

test("DeepSeek costs twice as much from 01 to 04 and 06 to 10 UTC on weekdays, by when the request began", () => {
  const usage: Usage = { plain: 1e6, read: 1e6, written: {}, output: 1e6 };
  const at = (day: number, hour: number, minute = 0): number | undefined =>
    costOf(usage, factsOf("deepseek-flash"), { at: Date.UTC(2026, 0, day, hour, minute) })?.total;
  const [monday, friday, saturday] = [5, 9, 10];
  assert.deepEqual(
    [
      at(monday, 0, 59),
      at(monday, 1),
      at(monday, 3, 59),
      at(monday, 4),
      at(monday, 6),
      at(friday, 9, 59),
      at(friday, 10),
    ],
    [0.753, 1.506, 1.506, 0.753, 1.506, 1.506, 0.753],
  );
  assert.deepEqual([at(saturday, 2), costOf(usage, factsOf("deepseek-flash"))?.total], [0.753, 0.753]);
  near(costOf(usage, factsOf("deepseek-v4-pro"), { at: Date.UTC(2026, 0, 5, 2) })?.total, 1.32 + 0.044 + 3.96);
});

test("DashScope reads a marked prefix for a tenth, and an unmarked one at the listed price", () => {
  const usage: Usage = { plain: 0, read: 1e6, written: { "5m": 1e6 }, output: 0 };
  const unmarked: Usage = { plain: 1e6, read: 1e6, written: {}, output: 0 };
  for (const [model, write, marked, listed, input] of [
    ["qwen3.7-max", 1.844, 0.1475, 0.295, 1.475],
    ["qwen3.7-plus", 0.4, 0.032, 0.064, 0.32],
    ["qwen3.8-max", 2.5, 0.2, 0.25, 2],
  ] as const) {
    near(costOf(usage, factsOf(model))?.total, write + marked);
    near(costOf(unmarked, factsOf(model), { unmarked: true })?.total, input + listed);
  }
});

test("a price that a user states applies at every hour and to every read", () => {
  const table = withPrices(knownModels, new Map([["deepseek-flash", { prices: { input: 1 } }]]));
  const usage: Usage = { plain: 1e6, read: 0, written: {}, output: 0 };
  near(costOf(usage, modelFacts("deepseek-flash", table), { at: Date.UTC(2026, 0, 5, 2) })?.total, 1);
});

test("a lifetime that is not sold is billed as the next longer one, and has no price if none is sold", () => {
  const sol = factsOf("gpt-6-sol");
  const written = (ttl: "5m" | "1h" | "12h") =>
    costOf({ plain: 0, read: 0, written: { [ttl]: 200_000 }, output: 0 }, sol)?.total;
  assert.deepEqual([written("5m"), written("1h"), written("12h")], [0.5, undefined, undefined]);
});

test("a model is recognised by the names that providers and gateways give it", () => {
  const named = (name: string): string | undefined => modelFacts(name)?.id;
  assert.deepEqual(
    [
      "openai/gpt-6.1-sol",
      "gpt-6-sol-2026-08-01",
      "gpt-4.1-2025-04-14",
      "gpt-4o-2024-11-20",
      "gpt-4o-2024-05-13",
      "models/gemini-3.1-pro-preview",
      "gemini-3.1-pro-preview-customtools",
      "google/gemini-2.5-flash-preview-09-2025",
      "gemini-2.5-flash-001",
      "claude-opus-4.8",
      "us.anthropic.claude-opus-4-8-20260301-v1:0",
      "deepseek/deepseek-v4-pro",
      "minimax/minimax-m2.7",
      "qwen/qwen3.7-max",
      "gpt-4o-mini",
      "gemini-2.5-flash-lite",
      "gpt-5-pro",
    ].map(named),
    [
      "gpt-6.1-sol",
      "gpt-6-sol",
      "gpt-4.1",
      "gpt-4o",
      "gpt-4o-2024-05-13",
      "gemini-3.1-pro",
      "gemini-3.1-pro",
      "gemini-2.5-flash",
      "gemini-2.5-flash",
      "claude-opus-4-8",
      "claude-opus-4-8",
      "deepseek-v4-pro",
      "MiniMax-M2.7",
      "qwen3.7-max",
      undefined,
      undefined,
      undefined,
    ],
  );
});

test("a tier is chosen by the whole prompt and prices the whole request", () => {
  const haiku = factsOf("claude-haiku-5-5");
  const at = { plain: 100, read: 90_000, written: { "5m": 9_900 }, output: 1_000 };
  near(costOf(at, haiku)?.total, (100 * 0.1 + 90_000 * 0.01 + 9_900 * 0.125 + 1_000 * 0.5) / 1e6);
  const above = { ...at, plain: 101 };
  near(costOf(above, haiku)?.total, (101 * 0.5 + 90_000 * 0.05 + 9_900 * 0.625 + 1_000 * 2.5) / 1e6);
});

test("the highest tier passed counts, in whatever order tiers are listed", () => {
  const base = factsOf("claude-sonnet-5");
  const tier = (above: number, input: number) => ({ above, prices: { ...base.prices, input } });
  const facts: ModelFacts = { ...base, tiers: [tier(200, 7), tier(100, 5), tier(300, 9)] };
  assert.deepEqual(
    [100, 101, 200, 201, 301].map((prompt) => pricesFor(facts, prompt).input),
    [2, 5, 5, 7, 9],
  );
});

test("service factors multiply, and the fast class keeps the model's cache multipliers", () => {
  const opus = factsOf("claude-opus-5-5");
  const usage: Usage = { plain: 1e6, read: 1e6, written: { "5m": 1e6 }, output: 1e6 };
  near(costOf(usage, opus, { batch: true })?.total, 29.2 * 0.5);
  near(costOf(usage, opus, { geoUs: true })?.total, 29.2 * 1.1);
  near(costOf(usage, opus, { batch: true, geoUs: true, regional: true })?.total, 29.2 * 0.5 * 1.1 * 1.1);
  const fast = costOf(usage, opus, { speed: "fast" });
  near(fast?.plain, 8);
  near(fast?.read, 0.4);
  near(fast?.written["5m"], 10);
  near(fast?.output, 40);
});

test("what has no published price has no cost", () => {
  assert.equal(costOf(million, undefined), undefined);
  assert.equal(costOf(million, factsOf("claude-sonnet-5"), { speed: "fast" }), undefined);
  assert.equal(costOf({ ...million, written: { "12h": 1 } }, factsOf("claude-sonnet-5")), undefined);
  assert.equal(modelFacts("unheard-of-model"), undefined);
});

test("without any write price, writing costs what input costs", () => {
  const facts: ModelFacts = { ...factsOf("claude-sonnet-5"), prices: { input: 2, write: {}, read: 0.2, output: 10 } };
  near(costOf({ plain: 0, read: 0, written: { "5m": 1e6 }, output: 0 }, facts)?.total, 2);
  assert.equal(inputUnits({ plain: 0, read: 0, written: { "5m": 700 }, output: 0 }, facts), 700);
});

test("multipliers are the ratios of the facts, without binary noise", () => {
  const read = (model: string) => multipliersOf(factsOf(model)).read;
  assert.equal(read("claude-sonnet-4-6"), 0.1);
  assert.equal(read("claude-opus-5-5"), 0.05);
  assert.equal(read("claude-fable-5-1"), 0.025);
  assert.equal(read("gpt-6.1-terra"), 0.05);
  assert.equal(read("gemini-2.5-flash"), 0.1);
  for (const facts of knownModels.values()) {
    if (facts.id.startsWith("claude-")) {
      assert.deepEqual(multipliersOf(facts).write, { "5m": 1.25, "1h": 2 }, facts.id);
      assert.equal(multipliersOf(facts).output, 5, facts.id);
    } else if (facts.id.startsWith("gpt-") && Object.keys(facts.prices.write).length > 0)
      assert.deepEqual(multipliersOf(facts).write, { "30m": 1.25 }, facts.id);
  }
  assert.deepEqual(multipliersOf(undefined), { write: { "5m": 1.25, "1h": 2 }, read: 0.1, output: 5 });
});

test("overrides change what they name and leave the table unchanged", () => {
  const overrides = new Map<string, PriceOverride>([
    ["claude-sonnet-5-5", { prices: { read: 0.2, write: { "5m": 3 } } }],
    ["my-model", { prices: { input: 1, write: { "5m": 1 }, read: 0, output: 4 }, minimumPrefix: 16 }],
    ["my-other-model", { prices: { input: 1, write: {}, read: 0, output: 4 } }],
    ["gemini-4-argon", { storage: 1 }],
  ]);
  const table = withPrices(knownModels, overrides);
  assert.deepEqual(table.get("claude-sonnet-5-5"), {
    id: "claude-sonnet-5-5",
    prices: { input: 2, write: { "5m": 3, "1h": 4 }, read: 0.2, output: 10 },
    minimumPrefix: 512,
    earlierThinking: "keep-all",
  });
  assert.deepEqual(table.get("my-model"), {
    id: "my-model",
    prices: { input: 1, write: { "5m": 1 }, read: 0, output: 4 },
    minimumPrefix: 16,
    earlierThinking: "keep-all",
  });
  assert.equal(table.get("my-other-model")?.minimumPrefix, 4_096);
  assert.deepEqual(table.get("gemini-4-argon"), { ...factsOf("gemini-4-argon"), storage: 1 });
  assert.equal(knownModels.get("claude-sonnet-5-5")?.prices.read, 0.1);
  assert.equal(knownModels.has("my-model"), false);
  assert.equal(modelFacts("anthropic.claude-sonnet-5-5-20261001-v1:0", table)?.prices.read, 0.2);
});

test("an unknown model with an incomplete price list is refused", () => {
  const overrides = new Map([["my-model", { prices: { input: 1 } }]]);
  assert.throws(() => withPrices(knownModels, overrides), /my-model/);
});

test("parts sum to the total, for any usage of any model", () => {
  const tokens = fc.nat(2_000_000);
  // Of each model the lifetimes it sells; where writing has no fee a lifetime is only a name.
  const written = (facts: ModelFacts) => {
    const sold = Object.keys(facts.prices.write) as Ttl[];
    return fc.record(Object.fromEntries((sold.length > 0 ? sold : ["5m" as const]).map((ttl) => [ttl, tokens])));
  };
  const billed = fc
    .constantFrom(...knownModels.values())
    .chain((facts) =>
      fc
        .record({ plain: tokens, read: tokens, written: written(facts), output: tokens })
        .map((usage) => ({ usage, facts })),
    );
  fc.assert(
    fc.property(billed, ({ usage, facts }) => {
      const cost = costOf(usage, facts);
      assert.ok(cost);
      const parts = Object.values(cost.written).reduce((sum, part) => sum + part, 0);
      near(cost.total, cost.plain + cost.read + parts + cost.output);
      // Money and tokens must rank requests alike: units × the price of input is the input's cost.
      near(inputUnits(usage, facts) * (pricesFor(facts, promptTokens(usage)).input / 1e6), cost.total - cost.output);
    }),
    { numRuns: 300, seed: 11 },
  );
});

test("a model's window is what its vendor publishes, or what its name says", () => {
  const named = [
    ...["claude-sonnet-5", "anthropic.claude-opus-4-6-v1:0", "claude-opus-4-5-20251101", "openai/gpt-5.6-sol"],
    ...["gemini-4-argon", "claude-sonnet-4-5[1m]", "my-model[128K]", "unheard-of-model"],
  ];
  assert.deepEqual(named.map(windowOf), [
    ...[1_000_000, 1_000_000, 200_000, 1_050_000],
    ...[1_048_576, 1_000_000, 128_000, undefined],
  ]);
});
