/** Whether an entry is worth storing by name, against figures worked out by hand. */

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { decideStored, type ModelFacts, modelFacts, storedBills, storedBreakEven } from "../src/index.ts";

const factsOf = (model: string): ModelFacts => {
  const facts = modelFacts(model);
  assert.ok(facts, model);
  return facts;
};
const flash = factsOf("gemini-3.8-flash");
const pro = factsOf("gemini-3.1-pro");
const [QUARTER, HOUR] = [900_000, 3_600_000];

const money = (bills: ReturnType<typeof storedBills>) =>
  bills &&
  Object.fromEntries(Object.entries(bills).map(([part, bill]) => [part, Math.round((bill.money ?? 0) * 1e7) / 1e7]));

test("a stored entry costs input at creation, storage by the hour, and a cache read each time", () => {
  assert.deepEqual(money(storedBills({ tokens: 100_000, heldMs: QUARTER, reads: 5, facts: flash })), {
    creation: 0.075,
    storage: 0.0125,
    reads: 0.0375,
    total: 0.125,
    unstored: 0.375,
  });
  assert.deepEqual(money(storedBills({ tokens: 100_000, heldMs: HOUR, reads: 5, facts: pro })), {
    creation: 0.2,
    storage: 0.45,
    reads: 0.1,
    total: 0.75,
    unstored: 1,
  });
  // Above 200K tokens input and reads cost twice as much, storage the same.
  assert.deepEqual(money(storedBills({ tokens: 300_000, heldMs: HOUR, reads: 2, facts: pro })), {
    creation: 1.2,
    storage: 1.35,
    reads: 0.24,
    total: 2.79,
    unstored: 2.4,
  });
  const { total, storage } = storedBills({ tokens: 100_000, heldMs: HOUR, reads: 5, facts: pro }) ?? {};
  assert.deepEqual([storage?.units, total?.units], [225_000, 375_000]);
});

test("the number of reads from which on storing is cheaper", () => {
  const reads = (facts: ModelFacts, heldMs: number, hitRate = 0) =>
    storedBreakEven({ tokens: 100_000, heldMs, facts, hitRate });
  assert.deepEqual([reads(flash, QUARTER), reads(flash, HOUR), reads(flash, 24 * HOUR)], [2, 2, 19]);
  assert.deepEqual([reads(pro, QUARTER), reads(pro, HOUR), reads(pro, 24 * HOUR)], [2, 4, 62]);
  // What would be read anyway spares nothing.
  assert.deepEqual([reads(pro, QUARTER, 0.5), reads(pro, HOUR, 0.5), reads(pro, 24 * HOUR, 0.5)], [4, 8, 123]);
  assert.deepEqual([reads(pro, QUARTER, 0.8), reads(pro, QUARTER, 1)], [9, undefined]);
  assert.equal(storedBreakEven({ tokens: 300_000, heldMs: HOUR, facts: pro }), 3);
  assert.equal(storedBreakEven({ tokens: 100_000, heldMs: HOUR, facts: factsOf("gemini-4-argon") }), undefined);
});

test("the decision states the cost and the number of reads it takes", () => {
  const five = decideStored({ tokens: 46_000, heldMs: QUARTER, reads: 6, facts: flash });
  assert.deepEqual(
    [five.store, five.reason],
    [true, "stored: with 6 reads 81,267 uncached tokens against 276,000; it takes 2 reads to be worth it"],
  );
  const once = decideStored({ tokens: 46_000, heldMs: QUARTER, reads: 1, facts: flash });
  assert.deepEqual(
    [once.store, once.reason],
    [false, "not stored: with 1 read 58,267 uncached tokens against 46,000, and it takes 2 reads to be worth it"],
  );
  const reason = (question: Partial<Parameters<typeof decideStored>[0]>) =>
    decideStored({ tokens: 46_000, heldMs: QUARTER, reads: 6, facts: flash, ...question }).reason;
  assert.equal(reason({ tokens: 4_095 }), "not stored: 4,095 tokens are below the minimum of 4,096");
  assert.equal(reason({ hitRate: 1 }), "not stored: all of it would be read without an entry too");
  assert.equal(reason({ facts: factsOf("gpt-6-sol") }), "not stored: no storage price is known for gpt-6-sol");
  assert.equal(reason({ facts: undefined }), "not stored: no storage price is known");
});

test("storing is advised exactly when it is cheaper, and one read fewer would not be", () => {
  fc.assert(
    fc.property(
      fc.record({
        tokens: fc.integer({ min: 4_096, max: 1_000_000 }),
        heldMs: fc.integer({ min: 1_000, max: 48 * HOUR }),
        reads: fc.integer({ min: 1, max: 200 }),
        hitRate: fc.constantFrom(0, 0.25, 0.5, 0.8),
        facts: fc.constantFrom(flash, pro),
      }),
      (question) => {
        const { store, bills, breakEven } = decideStored(question);
        assert.ok(bills && breakEven);
        const gain = bills.unstored.units - bills.total.units;
        assert.ok(store ? gain > -1e-3 : gain < 1e-3);
        const before = storedBills({ ...question, reads: breakEven - 1 });
        assert.ok(before && before.unstored.units <= before.total.units + 1e-3);
      },
    ),
    { numRuns: 200, seed: 13 },
  );
});
