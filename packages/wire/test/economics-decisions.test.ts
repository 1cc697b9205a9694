import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  breakEven,
  decideKeepAlive,
  decideLaunch,
  decideTtl,
  type FanOut,
  forkPlans,
  keepAliveBudget,
} from "../src/cost/index.ts";
import { modelFacts } from "../src/cost/models.ts";

const facts = modelFacts("claude-sonnet-5");
const family: FanOut = { prefix: 100_000, tail: 700, directive: 100, forks: 3, warm: true, facts };
const MINUTE = 60_000;

test("a warm family waits for its leader if sending at once costs over 1 % more", () => {
  const decision = decideLaunch(family);
  assert.equal(decision.launch, "leader-first");
  assert.equal(decision.atOnce.units, 43_875);
  assert.equal(decision.leaderFirst.units, 41_460);
  assert.equal(
    decision.reason,
    "leader first: at once would cost 5.8 % more (43,875 uncached tokens against 41,460, over 3 forks and the " +
      "parent's next request); the others follow when the leader's entry is readable, or after 10 s",
  );
});

test("a short tail is not worth waiting for", () => {
  const decision = decideLaunch({ ...family, tail: 100 });
  assert.equal(decision.launch, "at-once");
  assert.equal(decision.waitCapMs, 0);
  assert.equal(
    decision.reason,
    "at once: it costs 0.9 % more than leader first (40,875 uncached tokens against 40,530, over 3 forks and the " +
      "parent's next request), within the 1.0 % accepted for not waiting",
  );
});

test("the parent's next request counts as a reader of S", () => {
  // One fork alone has nobody to share S with; with the parent there are two readers.
  const one: FanOut = { ...family, forks: 1, tail: 5_000 };
  assert.equal(decideLaunch(one).launch, "leader-first");
  const alone = decideLaunch({ ...one, parentNext: "none" });
  assert.deepEqual([alone.launch, alone.reason], ["at-once", "at once: there is one reader, and nobody to wait for"]);
  assert.equal(decideLaunch({ ...one, forks: 2 }).launch, "leader-first", "two forks and the parent are three");
});

test("exactly 1 % more is still accepted", () => {
  const exact: FanOut = { prefix: 100_000, tail: 200, directive: 2_184, forks: 1, warm: true };
  const decision = decideLaunch(exact);
  assert.deepEqual([decision.leaderFirst.units, decision.atOnce.units, decision.extra], [23_000, 23_230, 0.01]);
  assert.equal(decision.launch, "at-once");
  assert.equal(decideLaunch({ ...exact, directive: 2_183 }).launch, "leader-first");
});

test("with trim, or without a tail, a warm family has nothing to wait for", () => {
  const reason = "at once: the prefix is warm and nothing after it is shared, so there is nothing to wait for";
  const trimmed = decideLaunch({ ...family, inFlight: "trim" });
  const tailless = decideLaunch({ ...family, tail: 0 });
  assert.deepEqual([trimmed.launch, trimmed.extra, trimmed.reason], ["at-once", 0, reason]);
  assert.deepEqual([tailless.launch, tailless.extra, tailless.reason], ["at-once", 0, reason]);
});

test("a cold family always sends a leader first, trimmed or not, and waits at least a minute", () => {
  for (const inFlight of ["keep", "trim"] as const) {
    const decision = decideLaunch({ ...family, warm: false, inFlight });
    assert.equal(decision.launch, "leader-first");
    assert.equal(decision.waitCapMs, MINUTE);
    assert.match(decision.reason, /^leader first: the prefix is cold, and at once would cost \d+\.\d % more/);
  }
  // Even where a huge directive makes the shared part less than 1 %.
  const dwarfed: FanOut = { ...family, warm: false, prefix: 2_000, tail: 0, directive: 900_000 };
  assert.ok(decideLaunch(dwarfed).extra < 0.01);
  assert.equal(decideLaunch(dwarfed).launch, "leader-first");
});

test("an entry about to expire is treated as cold", () => {
  const decision = decideLaunch({ ...family, inFlight: "trim", expiresInMs: 8_000 });
  assert.equal(decision.launch, "leader-first");
  assert.match(decision.reason, /expires in 8 s and may be gone on arrival/);
  assert.equal(decideLaunch({ ...family, inFlight: "trim", expiresInMs: 2 * MINUTE }).launch, "at-once");
});

test("the wait is capped by the recent time to first event, and by the leader's own entry", () => {
  const cap = (change: { firstEventMs: number; warm: boolean }) => decideLaunch({ ...family, ...change }).waitCapMs;
  assert.equal(cap({ warm: true, firstEventMs: 3_000 }), 6_000);
  assert.equal(cap({ warm: false, firstEventMs: 3_000 }), 60_000);
  assert.equal(cap({ warm: false, firstEventMs: 30_000 }), 120_000);
  assert.equal(cap({ warm: false, firstEventMs: 10 * MINUTE }), 270_000);
});

test("a prefix too short to be cached is sent at once, cold or warm", () => {
  const short: FanOut = { ...family, prefix: 900, tail: 50, warm: false };
  const decision = decideLaunch(short);
  assert.equal(decision.launch, "at-once");
  assert.match(decision.reason, /long enough to be cached/);
});

test("a family that sends nothing costs nothing more at once", () => {
  const { launch, extra } = decideLaunch({ prefix: 0, tail: 0, directive: 0, forks: 2, warm: true });
  assert.deepEqual([launch, extra], ["at-once", 0]);
});

test("the launch decision never costs over 1 % more than the cheapest plan that keeps the same blocks", () => {
  const sizes = fc.record({
    prefix: fc.integer({ min: 5_000, max: 500_000 }),
    tail: fc.integer({ min: 0, max: 40_000 }),
    directive: fc.integer({ min: 1, max: 5_000 }),
    forks: fc.constantFrom(1, 5, 20, 50),
    warm: fc.boolean(),
    singleTurn: fc.boolean(),
  });
  fc.assert(
    fc.property(sizes, (size) => {
      const decision = decideLaunch({ ...size, facts });
      const chosen = decision.launch === "at-once" ? decision.atOnce : decision.leaderFirst;
      assert.ok(chosen.units <= 1.01 * forkPlans({ ...size, facts }).cheapestKept.total.units + 1e-3);
    }),
    { numRuns: 150, seed: 3 },
  );
});

const known = { fresh: 15_000, rediscover: 20_000, rediscoverOutput: 3_000, brief: 500, outputRatio: 5 };

test("break-even against a fresh sub-agent gives the worked figures", () => {
  const turns = (read: number, change: Partial<typeof known> = {}): string => {
    const answer = breakEven({ ...known, ...change, prefix: 100_000, tail: 700, read, write: 1.25 });
    assert.equal(answer.kind, "until");
    return answer.kind === "until" ? answer.turns.toFixed(1) : "";
  };
  assert.equal(turns(0.1), "8.8");
  assert.equal(turns(0.05), "18.1");
  assert.equal(turns(0.025), "36.8");
  assert.equal(turns(0.1, { rediscover: 0, rediscoverOutput: 0 }), "2.3");
});

test("a fork that carries no more than a fresh sub-agent is never more expensive", () => {
  const answer = breakEven({ ...known, prefix: 34_000, tail: 1_000, read: 0.1, write: 1.25 });
  assert.deepEqual(answer, {
    kind: "always",
    reason: "a fork carries 35,000 tokens, a fresh sub-agent 35,000: the fork is never more expensive",
  });
  const free = breakEven({ ...known, prefix: 900_000, tail: 0, read: 0, write: 1 });
  assert.equal(free.kind, "always");
  const firstWritten = breakEven({ ...known, prefix: 900_000, tail: 0, read: 0, write: 1, warm: false });
  assert.deepEqual(firstWritten, {
    kind: "until",
    turns: 0,
    reason: "a fork carries 900,000 tokens, a fresh sub-agent 35,000: the fork is more expensive from its first turn",
  });
});

test("a cold fork is charged its share of the write", () => {
  const cold = { ...known, prefix: 100_000, tail: 700, read: 0.1, write: 1.25, warm: false };
  const alone = breakEven(cold);
  assert.deepEqual([alone.kind, alone.kind === "until" && alone.turns], ["until", 0]);
  assert.match(alone.reason, /more expensive from its first turn/);
  // [57,750 − 1.15 × 100,700 / 10] / 6,570
  const shared = breakEven({ ...cold, forks: 10 });
  assert.equal(shared.kind === "until" && shared.turns.toFixed(4), "7.0273");
});

test("an entry is kept alive until the keep-alives would cost more than one re-write", () => {
  const entry = { tokens: 100_000, ttl: "5m", facts } as const;
  assert.deepEqual(keepAliveBudget(entry), { each: 10_000, loss: 115_000, requests: 11 });
  assert.deepEqual(keepAliveBudget({ ...entry, ttl: "1h" }), { each: 10_000, loss: 190_000, requests: 19 });
  assert.deepEqual(keepAliveBudget({ ...entry, tokens: 1_023 }), { each: 1_023, loss: 0, requests: 0 });
  assert.deepEqual(keepAliveBudget({ ...entry, tokens: 1_024 }), { each: 102.4, loss: 1_177.6, requests: 11 });
  assert.deepEqual(keepAliveBudget({ tokens: 0, ttl: "5m" }), { each: 0, loss: 0, requests: 0 });

  const due = { ...entry, ageMs: 4.5 * MINUTE };
  assert.equal(decideKeepAlive({ ...due, sent: 10 }).action, "send");
  assert.deepEqual(decideKeepAlive({ ...due, sent: 11 }), {
    action: "stop",
    reason: "no more keep-alives: 11 sent at 10,000 uncached tokens each, and one more would pass a re-write (115,000)",
  });
});

test("free reads keep an entry alive forever, but only if losing it would cost something", () => {
  assert.ok(facts);
  const budget = (read: number, write: number) =>
    keepAliveBudget({
      tokens: 100_000,
      ttl: "5m",
      facts: { ...facts, prices: { ...facts.prices, read, write: { "5m": write } } },
    });
  const { input } = facts.prices;
  assert.deepEqual(budget(0, input), { each: 0, loss: 100_000, requests: Number.POSITIVE_INFINITY });
  assert.deepEqual(budget(0, 0), { each: 0, loss: 0, requests: 0 });
  assert.deepEqual(budget(input, input / 2), { each: 100_000, loss: -50_000, requests: 0 });
});

test("a keep-alive waits until the entry has nearly expired, and is not sent after that", () => {
  const entry = { tokens: 100_000, ttl: "5m", facts, sent: 0 } as const;
  assert.deepEqual(decideKeepAlive({ ...entry, ageMs: MINUTE }), {
    action: "wait",
    waitMs: 210_000,
    reason: "the entry lives: next keep-alive in 210 s",
  });
  assert.equal(
    decideKeepAlive({ ...entry, ttl: "1h", ageMs: 59 * MINUTE - 750_500 }).reason,
    "the entry lives: next keep-alive in 750.5 s",
  );
  assert.equal(decideKeepAlive({ ...entry, ageMs: 5 * MINUTE }).action, "stop");
  assert.equal(decideKeepAlive({ ...entry, ttl: "1h", ageMs: 58 * MINUTE }).action, "wait");
  assert.equal(decideKeepAlive({ ...entry, ttl: "1h", ageMs: 59 * MINUTE }).action, "send");
  assert.equal(decideKeepAlive({ ...entry, ageMs: 4.9 * MINUTE, refused: "a tool is forced" }).action, "stop");
  assert.equal(decideKeepAlive({ ...entry, tokens: 500, ageMs: 4.9 * MINUTE }).action, "stop");
});

test("1h on the parent's prefix pays off after one pause that 5m would not outlive", () => {
  const parent = { owner: "parent", tokens: 100_000, facts } as const;
  // 2P + rP against wP + wP: 0.75 P more at writing, 1.15 P less at the pause.
  assert.deepEqual(decideTtl({ ...parent, gapsMs: [20 * MINUTE] }), {
    ttl: "1h",
    cost: { "5m": 250_000, "1h": 210_000 },
    reason: "1h: it outlives 1 pause between 5 minutes and an hour (210,000 uncached tokens with 1h, 250,000 with 5m)",
  });
  assert.deepEqual(decideTtl({ ...parent, gapsMs: [MINUTE, 4 * MINUTE] }).ttl, "5m");
  assert.deepEqual(decideTtl({ ...parent, gapsMs: [] }).cost, { "5m": 125_000, "1h": 200_000 });
});

test("1h does not pay off if the entry is lost anyway, is not sold, or is a child's", () => {
  const parent = { owner: "parent", tokens: 100_000, facts } as const;
  assert.equal(decideTtl({ ...parent, gapsMs: [90 * MINUTE] }).ttl, "5m");
  // One pause rescued, three nights lost: four writes at 2 and a read against five at 1.25.
  const mixed = decideTtl({ ...parent, gapsMs: [20 * MINUTE, 90 * MINUTE, 90 * MINUTE, 90 * MINUTE] });
  assert.deepEqual(mixed, {
    ttl: "5m",
    cost: { "5m": 625_000, "1h": 810_000 },
    reason:
      "5m: 1 pause between 5 minutes and an hour cost less than 1h writes (810,000 uncached tokens with 1h, 625,000 with 5m)",
  });
  assert.equal(decideTtl({ ...parent, owner: "child", gapsMs: [20 * MINUTE] }).ttl, "5m");
  assert.ok(facts);
  const asDear = { ...facts, prices: { ...facts.prices, write: { "5m": 2.5, "1h": 4.8 } } };
  const equal = decideTtl({ ...parent, facts: asDear, gapsMs: [20 * MINUTE] });
  assert.deepEqual([equal.ttl, equal.cost], ["5m", { "5m": 250_000, "1h": 250_000 }], "of equals the shortest");
  const only5m = { ...facts, prices: { ...facts.prices, write: { "5m": 2.5 } } };
  assert.equal(decideTtl({ ...parent, facts: only5m, gapsMs: [20 * MINUTE] }).ttl, "5m");
});

test("for other providers the lifetimes that they sell are compared", () => {
  const of = (model: string, gapMs: number) =>
    decideTtl({ owner: "parent", tokens: 100_000, facts: modelFacts(model), gapsMs: [gapMs] });
  assert.deepEqual(of("gpt-6-sol", 20 * MINUTE), {
    ttl: "30m",
    cost: { "30m": 135_000 },
    reason: "30m: gpt-6-sol sells no longer lifetime with a known price",
  });
  assert.deepEqual(of("gemini-3.8-flash", 20 * MINUTE), {
    ttl: "5m",
    cost: { "5m": 200_000 },
    reason: "5m: gemini-3.8-flash keeps what it likes without a fee, so no lifetime is asked for",
  });
  const sold = modelFacts("gpt-6-sol");
  assert.ok(sold);
  const both = { ...sold, prices: { ...sold.prices, write: { "30m": 2.5, "12h": 4 } } };
  assert.deepEqual(decideTtl({ owner: "parent", tokens: 100_000, facts: both, gapsMs: [2 * 60 * MINUTE] }), {
    ttl: "12h",
    cost: { "30m": 250_000, "12h": 210_000 },
    reason:
      "12h: it outlives 1 pause between 30 minutes and 12 hours (210,000 uncached tokens with 12h, 250,000 with 30m)",
  });
  const three = { ...sold, prices: { ...sold.prices, write: { "30m": 2.5, "1h": 3, "12h": 4 } } };
  assert.deepEqual(decideTtl({ owner: "parent", tokens: 100_000, facts: three, gapsMs: [2 * 60 * MINUTE] }), {
    ttl: "12h",
    cost: { "30m": 250_000, "1h": 300_000, "12h": 210_000 },
    reason:
      "12h: it outlives 1 pause between 30 minutes and 12 hours (210,000 uncached tokens with 12h, 250,000 with 30m)",
  });
});

test("a prompt that a provider keeps for a day by itself needs no keep-alive for a day", () => {
  const entry = { tokens: 100_000, ttl: "5m", facts: modelFacts("gpt-5.4"), sent: 0 } as const;
  assert.deepEqual(decideKeepAlive({ ...entry, ageMs: 10 * MINUTE }), {
    action: "wait",
    waitMs: 24 * 60 * MINUTE - 11 * MINUTE,
    reason: "the entry lives: next keep-alive in 85,740 s",
  });
  assert.equal(decideKeepAlive({ ...entry, ageMs: 24 * 60 * MINUTE }).action, "stop");
});
