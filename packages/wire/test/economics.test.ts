import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { decideLaunch, type FanOut, forkPlans, type LaunchPlan, type PlanId } from "../src/cost/index.ts";
import { knownModels, type ModelFacts, modelFacts } from "../src/cost/models.ts";
import { promptTokens } from "../src/response.ts";

const sonnet = modelFacts("claude-sonnet-5");
const three: FanOut = { prefix: 100_000, tail: 700, directive: 100, forks: 3, warm: true, facts: sonnet };
const five: FanOut = { prefix: 46_000, tail: 2_500, directive: 200, forks: 5, warm: true, facts: sonnet };

const column = (fanOut: FanOut, of: (plan: LaunchPlan) => number | undefined): Partial<Record<PlanId, number>> =>
  Object.fromEntries(forkPlans(fanOut).plans.map((plan) => [plan.id, of(plan)]));

const planOf = (fanOut: FanOut, id: PlanId): LaunchPlan => {
  const plan = forkPlans(fanOut).plans.find((candidate) => candidate.id === id);
  assert.ok(plan);
  return plan;
};

test("the children of 100k × 3 cost the worked figures to the token", () => {
  assert.deepEqual(
    column(three, (plan) => plan.children.units),
    {
      "no-cache": 302_400,
      "last-block": 33_000,
      "at-once": 33_000,
      "leader-first": 31_390,
      prime: 41_460,
      "cold-at-once": 378_000,
      "cold-leader-first": 146_390,
      trim: 30_375,
      "trim-cold-leader-first": 145_375,
    },
  );
});

test("the children of 46k × 5 cost the worked figures to the token", () => {
  assert.deepEqual(
    column(five, (plan) => plan.children.units),
    {
      "no-cache": 243_500,
      "last-block": 39_875,
      "at-once": 39_875,
      "leader-first": 28_375,
      prime: 33_225,
      "cold-at-once": 304_375,
      "cold-leader-first": 81_275,
      trim: 24_250,
      "trim-cold-leader-first": 77_150,
    },
  );
});

test("single-turn children do not pay for a marker on D", () => {
  const single = column({ ...three, singleTurn: true }, (plan) => plan.children.units);
  assert.equal(single["leader-first"], 31_315);
  assert.equal(single["at-once"], 32_925);
  assert.equal(single["last-block"], 33_000, "this plan is its marker on D");
});

test("with a long in-flight turn the leader saves 46k of 5 × 100k", () => {
  const plans = column({ ...three, tail: 10_000, forks: 5 }, (plan) => plan.children.units);
  assert.equal((plans["at-once"] ?? 0) - (plans["leader-first"] ?? 0), 46_000);
});

test("the parent's next request is billed separately from the children, by what it can read under each plan", () => {
  const trailing = { parentNext: { trailing: 40 } } as const;
  assert.deepEqual(
    column({ ...three, ...trailing }, (plan) => plan.parentNext.units),
    {
      "no-cache": 100_740, // P + S + 40
      "last-block": 10_925, // reads P, writes S + 40
      "at-once": 10_925, // sent beside the children
      "leader-first": 10_120, // reads P + S, writes 40
      prime: 10_120,
      "cold-at-once": 125_925, // writes everything
      "cold-leader-first": 10_120,
      trim: 10_925, // nobody wrote S for it
      "trim-cold-leader-first": 10_925,
    },
  );
});

test("a 1h parent writes its own tail at 2×; its children stay at 1.25×", () => {
  const hour: FanOut = { ...three, parentTtl: "1h", parentNext: { trailing: 40 } };
  assert.equal(planOf(hour, "leader-first").children.units, 31_390);
  assert.equal(planOf(hour, "leader-first").parentNext.units, 10_150); // 0.1 × 100,700 + 2 × 40
  assert.equal(planOf(hour, "trim").parentNext.units, 11_480); // 0.1 × 100,000 + 2 × 740
  assert.equal(planOf(hour, "cold-leader-first").children.units, 146_390);
  // Writing S once at 1.25 for all is cheaper than the parent's own 2 × S, so trimming no longer wins.
  assert.equal(forkPlans(hour).cheapest.id, "leader-first");
});

test("a parent that sends nothing more is not billed", () => {
  const plan = planOf({ ...three, parentNext: "none" }, "leader-first");
  assert.deepEqual(plan.parentNext, { units: 0, money: 0 });
  assert.deepEqual(plan.total, plan.children);
});

test("each request of leader first is billed as read, written and uncached", () => {
  assert.deepEqual(planOf({ ...five, singleTurn: true, parentNext: { trailing: 40 } }, "leader-first").requests, [
    { from: "leader", count: 1, usage: { plain: 200, read: 46_000, written: { "5m": 2_500 }, output: 0 } },
    { from: "follower", count: 4, usage: { plain: 200, read: 48_500, written: {}, output: 0 } },
    { from: "parent", count: 1, usage: { plain: 0, read: 48_500, written: { "5m": 40 }, output: 0 } },
  ]);
});

test("money follows the model's prices, and an unknown model has none", () => {
  const { total } = planOf(three, "leader-first");
  assert.equal(total.units, 41_460);
  assert.equal(total.money?.toFixed(6), "0.082920"); // 41,460 × $2 a million
  const unknown = planOf({ ...three, facts: undefined }, "leader-first");
  assert.deepEqual(unknown.children, { units: 31_390 });
  assert.deepEqual(unknown.total, { units: 41_460 });
});

test("a price tier is counted for the requests that cross it", () => {
  const haiku = modelFacts("claude-haiku-5-5");
  const plans = forkPlans({ ...three, prefix: 99_500, facts: haiku });
  const kept = plans.plans.find((plan) => plan.id === "leader-first");
  const trimmed = plans.plans.find((plan) => plan.id === "trim");
  // Keep: children at 100,300 tokens pay five times the price; trimmed at 99,600 they do not.
  assert.equal(kept?.children.money?.toFixed(9), ((31_240 * 0.5) / 1e6).toFixed(9));
  assert.equal(trimmed?.children.money?.toFixed(9), ((30_225 * 0.1) / 1e6).toFixed(9));
});

test("nothing is cached below the model's minimum", () => {
  const opus = modelFacts("claude-opus-4-5"); // 4,096
  const short: FanOut = { prefix: 3_000, tail: 500, directive: 100, forks: 4, warm: true, facts: opus };
  for (const id of ["at-once", "leader-first", "cold-at-once"] as const) {
    assert.equal(planOf(short, id).children.units, 14_400, id);
  }
  // P alone is too short, P + S is not: there is an entry to share after all, and the leader writes all of it.
  const longer = planOf({ ...short, tail: 2_000 }, "leader-first");
  assert.equal(longer.children.units, 1.25 * 5_000 + 3 * 500 + 4 * 125);
});

test("plans apply by the state of the parent's entry", () => {
  const applying = (warm: boolean) => forkPlans({ ...three, warm }).plans.filter((plan) => plan.applies);
  assert.deepEqual(
    applying(true).map((plan) => plan.id),
    ["no-cache", "last-block", "at-once", "leader-first", "prime", "trim"],
  );
  assert.deepEqual(
    applying(false).map((plan) => plan.id),
    ["no-cache", "cold-at-once", "cold-leader-first", "trim-cold-leader-first"],
  );
});

test("each plan names the entry that it relies on and what happens to the turn in flight", () => {
  const named = forkPlans(three).plans.map(({ id, requires, inFlight }) => [id, requires, inFlight]);
  assert.deepEqual(named, [
    ["no-cache", "any", "keep"],
    ["last-block", "warm", "keep"],
    ["at-once", "warm", "keep"],
    ["leader-first", "warm", "keep"],
    ["prime", "warm", "keep"],
    ["cold-at-once", "cold", "keep"],
    ["cold-leader-first", "cold", "keep"],
    ["trim", "warm", "trim"],
    ["trim-cold-leader-first", "cold", "trim"],
  ]);
});

test("only trimmed children pay for the longer directive that replaces the turn", () => {
  const told = column({ ...three, trimmedDirective: 500 }, (plan) => plan.children.units);
  assert.equal(told.trim, 3 * (0.1 * 100_000 + 1.25 * 500));
  assert.equal(told["leader-first"], 31_390);
});

test("one fork leads and has no followers", () => {
  const { requests } = planOf({ ...three, forks: 1, parentNext: "none" }, "leader-first");
  const usage = { plain: 0, read: 100_000, written: { "5m": 800 }, output: 0 };
  assert.deepEqual(requests, [{ from: "leader", count: 1, usage }]);
});

test("a total has no money if one of its parts has no price", () => {
  assert.ok(sonnet);
  const only5m = { ...sonnet, prices: { ...sonnet.prices, write: { "5m": 2.5 } } };
  const { children, total } = planOf({ ...three, facts: only5m, parentTtl: "1h" }, "at-once");
  assert.ok(children.money !== undefined);
  assert.deepEqual(total, { units: 43_875 });
});

test("if plans cost the same, nobody has to wait", () => {
  assert.equal(forkPlans({ ...three, tail: 0 }).cheapest.id, "at-once");
  // Too short to be cached: then every plan costs what no cache costs.
  const short: FanOut = { ...three, prefix: 100, tail: 0 };
  assert.deepEqual(
    [true, false].map((warm) => forkPlans({ ...short, warm }).cheapest.id),
    ["at-once", "cold-at-once"],
  );
});

test("invalid sizes are a caller's bug", () => {
  assert.throws(() => forkPlans({ ...three, forks: 0 }), /forks/);
  assert.throws(() => forkPlans({ ...three, forks: 1.5 }), /forks/);
  assert.throws(() => forkPlans({ ...three, prefix: -1 }), /prefix/);
  assert.throws(() => decideLaunch({ ...three, tail: Number.NaN }), /tail/);
});

const sizes = fc.record({
  prefix: fc.integer({ min: 0, max: 900_000 }),
  tail: fc.integer({ min: 0, max: 40_000 }),
  directive: fc.integer({ min: 0, max: 5_000 }),
  forks: fc.integer({ min: 1, max: 60 }),
  warm: fc.boolean(),
  singleTurn: fc.boolean(),
  parentNext: fc.oneof(fc.record({ trailing: fc.nat(2_000) }), fc.constant("none" as const)),
  parentTtl: fc.constantFrom("5m" as const, "1h" as const),
});
const anyModel = fc.constantFrom<ModelFacts | undefined>(undefined, ...knownModels.values());
const runs = { numRuns: 150, seed: 7 };

test("the closed formulas hold whenever the prefix is long enough to be cached", () => {
  fc.assert(
    fc.property(sizes, (size) => {
      const { prefix: P, tail: S, directive: D, forks: N } = size;
      const [w, r, d] = [1.25, 0.1, size.singleTurn ? 1 : 1.25];
      const expected: Record<PlanId, number> = {
        "no-cache": N * (P + S + D),
        "last-block": N * (r * P + w * (S + D)),
        "at-once": N * (r * P + w * S + d * D),
        "leader-first": N * r * P + w * S + (N - 1) * r * S + N * d * D,
        prime: N * r * P + w * S + (N - 1) * r * S + N * d * D + r * (P + S),
        "cold-at-once": N * (w * (P + S) + d * D),
        "cold-leader-first": (w + (N - 1) * r) * (P + S) + N * d * D,
        trim: N * (r * P + d * D),
        "trim-cold-leader-first": (w + (N - 1) * r) * P + N * d * D,
      };
      for (const plan of forkPlans(size).plans) {
        assert.ok(Math.abs(plan.children.units - expected[plan.id]) < 1e-3, plan.id);
      }
    }),
    runs,
  );
});

test("the cheapest plan has the lowest total of those that apply, and parts sum", () => {
  fc.assert(
    fc.property(sizes, anyModel, (size, facts) => {
      // A lifetime that a model does not sell has no price, and then no plan has one.
      const parentTtl = facts?.prices.write["1h"] === undefined ? "5m" : size.parentTtl;
      const { plans, cheapest, cheapestKept } = forkPlans({ ...size, parentTtl, facts });
      const weight = (plan: LaunchPlan) => plan.total.money ?? plan.total.units;
      const applying = plans.filter((plan) => plan.applies);
      const kept = applying.filter((plan) => plan.inFlight === "keep");
      assert.ok(cheapest.applies && cheapestKept.applies && cheapestKept.inFlight === "keep");
      assert.ok(weight(cheapest) <= Math.min(...applying.map(weight)) * (1 + 1e-8));
      assert.ok(weight(cheapestKept) <= Math.min(...kept.map(weight)) * (1 + 1e-8));
      for (const plan of plans) {
        assert.ok(Math.abs(plan.children.units + plan.parentNext.units - plan.total.units) < 1e-3);
        assert.equal(plan.total.money === undefined, facts === undefined);
        for (const { from, usage } of plan.requests) {
          const own = plan.inFlight === "keep" ? size.tail + size.directive : size.directive;
          const trailing = size.parentNext === "none" ? 0 : size.parentNext.trailing;
          const added = { prime: size.tail, parent: size.tail + trailing, leader: own, follower: own, child: own };
          assert.equal(promptTokens(usage), size.prefix + added[from], `${plan.id} ${from}`);
        }
      }
    }),
    runs,
  );
});

test("leader first never costs more than at once, and costs never fall as forks or prefix grow", () => {
  fc.assert(
    fc.property(sizes, (size) => {
      const at = (change: Partial<FanOut>) => column({ ...size, ...change }, (plan) => plan.total.units);
      const [here, moreForks, longer] = [at({}), at({ forks: size.forks + 1 }), at({ prefix: size.prefix + 1_000 })];
      assert.ok((here["leader-first"] ?? 0) <= (here["at-once"] ?? 0) + 1e-3);
      assert.ok((here["cold-leader-first"] ?? 0) <= (here["cold-at-once"] ?? 0) + 1e-3);
      for (const [id, units] of Object.entries(here) as [PlanId, number][]) {
        assert.ok((moreForks[id] ?? 0) >= units, `${id} with one more fork`);
        assert.ok((longer[id] ?? 0) >= units, `${id} with a longer prefix`);
      }
    }),
    runs,
  );
});
