import assert from "node:assert/strict";
import { test } from "node:test";
import { modelFacts, noUsage, type Usage } from "@prefork/wire";
import fc from "fast-check";
import { Account, estimateTokens, fitOrWait, fitRequest, worstCase } from "../../src/agent/index.ts";
import type { Reservation } from "../../src/ports.ts";

/** 2 dollars a million in, 10 out; a write of five minutes costs a quarter more. */
const sonnet = modelFacts("claude-sonnet-5");

const asked = (promptTokens: number, maxTokens: number): Parameters<typeof worstCase>[0] => ({
  promptTokens,
  maxTokens,
  facts: sonnet,
});

const used = (plain: number, output: number): Usage => ({ ...noUsage, plain, output });

test("the worst case writes the whole prompt to the cache and gets the longest answer", () => {
  assert.deepEqual(worstCase(asked(1_000_000, 100_000)), { usd: 2.5 + 1, tokens: 1_100_000 });
  assert.deepEqual(worstCase({ promptTokens: 10, maxTokens: 5, facts: undefined }), { usd: 0, tokens: 15 });
});

test("a reservation counts as spent until the actual cost replaces it", () => {
  const account = new Account({ usd: 10, tokens: 1_000 });
  assert.equal(account.reserve({ usd: 6, tokens: 600 }), undefined);
  assert.deepEqual(account.reserve({ usd: 5, tokens: 1 }), { limit: "usd", needed: 5, left: 4 });
  assert.deepEqual(account.reserve({ usd: 1, tokens: 500 }), { limit: "tokens", needed: 500, left: 400 });
  assert.deepEqual(account.left, { usd: 4, tokens: 400 });
  account.settle({ usd: 6, tokens: 600 }, { usage: used(100, 20), usd: 1 });
  assert.deepEqual(account.left, { usd: 9, tokens: 880 });
  assert.deepEqual(account.spent, { usage: used(100, 20), usd: 1 });
});

test("an account inside another reserves from both or from neither", () => {
  const above = new Account({ usd: 10 });
  const [one, other] = [new Account({ usd: 8 }, { above }), new Account({}, { above })];
  assert.equal(one.reserve({ usd: 7, tokens: 1 }), undefined);
  assert.deepEqual(other.reserve({ usd: 4, tokens: 1 }), { limit: "usd", needed: 4, left: 3 });
  assert.deepEqual([one.left.usd, other.left.usd, above.left.usd], [1, 3, 3]);
  assert.deepEqual(one.reserve({ usd: 2, tokens: 1 }), { limit: "usd", needed: 2, left: 1 });
  assert.deepEqual([one.left.usd, other.left.usd, above.left.usd], [1, 3, 3]);
  one.settle({ usd: 7, tokens: 1 }, { usage: used(1, 1), usd: 2 });
  assert.deepEqual([one.spent.usd, other.spent.usd, above.spent.usd], [2, 0, 2]);
  assert.deepEqual([other.countsMoney, new Account().countsMoney], [true, false]);
});

test("what an earlier run of the session spent counts", () => {
  const account = new Account({ usd: 1 }, { spent: { usage: noUsage, usd: 0.75 } });
  assert.deepEqual(account.reserve({ usd: 0.5, tokens: 0 }), { limit: "usd", needed: 0.5, left: 0.25 });
});

/** Dollars in eighths, so that sums are exact. */
const hold = fc.record({ usd: fc.nat(40).map((eighths) => eighths / 8), tokens: fc.nat(500) });
const step = fc.oneof(
  fc.record({ kind: fc.constant("hold" as const), by: fc.nat(3), hold }),
  fc.record({ kind: fc.constant("settle" as const), which: fc.nat(20), share: fc.constantFrom(0, 0.5, 1) }),
);

test("no limit is ever exceeded, in whatever order requests of several accounts begin and end", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const above = new Account({ usd: 12, tokens: 1_500 });
      const limits = [{ usd: 5 }, { tokens: 700 }, {}, { usd: 20, tokens: 100 }];
      const accounts = limits.map((limit) => new Account(limit, { above }));
      let open: readonly { readonly account: Account; readonly reserved: Reservation }[] = [];
      let [reservedUsd, spentUsd] = [0, 0];
      for (const taken of steps) {
        if (taken.kind === "hold") {
          const account = accounts[taken.by] ?? above;
          const before = accounts.map(({ left }) => left);
          if (account.reserve(taken.hold))
            assert.deepEqual(
              accounts.map(({ left }) => left),
              before,
            );
          else {
            open = [...open, { account, reserved: taken.hold }];
            reservedUsd += taken.hold.usd;
          }
        } else {
          const ending = open[taken.which % Math.max(1, open.length)];
          if (!ending) continue;
          open = open.filter((one) => one !== ending);
          const usd = ending.reserved.usd * taken.share;
          const tokens = Math.floor(ending.reserved.tokens * taken.share);
          ending.account.settle(ending.reserved, { usage: used(tokens, 0), usd });
          reservedUsd -= ending.reserved.usd;
          spentUsd += usd;
        }
        assert.ok(accounts.every(({ left }) => left.usd >= 0 && left.tokens >= 0));
        assert.deepEqual([above.left.usd, above.spent.usd], [12 - reservedUsd - spentUsd, spentUsd]);
      }
    }),
    { numRuns: 300 },
  );
});

test("a request that does not fit gets a shorter answer limit before it is refused", () => {
  const tight = new Account({ tokens: 10_000 });
  assert.deepEqual(fitRequest(tight, asked(6_000, 16_000)), {
    ok: true,
    maxTokens: 4_000,
    reserved: worstCase(asked(6_000, 4_000)),
  });
  assert.deepEqual(tight.left.tokens, 0);
  const poor = new Account({ usd: 0.05 });
  const fitted = fitRequest(poor, asked(4_000, 16_000));
  assert.deepEqual([fitted.ok, fitted.ok && fitted.maxTokens], [true, 3_999]); // rounded down, never up
});

test("an answer limit is never reduced below a useful length", () => {
  const account = new Account({ tokens: 7_023 });
  const refused = { ok: false, shortage: { limit: "tokens", needed: 22_000, left: 7_023 } };
  assert.deepEqual(fitRequest(account, asked(6_000, 16_000)), refused);
  assert.deepEqual(account.left.tokens, 7_023);
  const enough = fitRequest(new Account({ tokens: 7_024 }), asked(6_000, 16_000));
  assert.deepEqual([enough.ok, enough.ok && enough.maxTokens], [true, 1_024]);
  const short = fitRequest(new Account({ tokens: 6_010 }), asked(6_000, 10));
  assert.deepEqual([short.ok, short.ok && short.maxTokens], [true, 10]);
});

test("for any request and budget, a fitted request stays within the budget, and one is refused only if the shortest answer does not fit", () => {
  const request = fc.record({ promptTokens: fc.nat(200_000), maxTokens: fc.integer({ min: 1, max: 64_000 }) });
  const limits = fc.record({ usd: fc.double({ min: 0, max: 2, noNaN: true }), tokens: fc.nat(300_000) });
  fc.assert(
    fc.property(request, limits, ({ promptTokens, maxTokens }, limit) => {
      const account = new Account(limit);
      const fitted = fitRequest(account, asked(promptTokens, maxTokens));
      const shortest = Math.min(1_024, maxTokens);
      if (!fitted.ok) {
        const least = worstCase(asked(promptTokens, shortest + 1));
        assert.ok(least.usd > limit.usd || least.tokens > limit.tokens);
        assert.deepEqual(account.left, { ...limit });
        return;
      }
      assert.ok(fitted.maxTokens >= shortest && fitted.maxTokens <= maxTokens);
      assert.deepEqual(fitted.reserved, worstCase(asked(promptTokens, fitted.maxTokens)));
      assert.ok(account.left.usd >= 0 && account.left.tokens >= 0);
    }),
    { numRuns: 500 },
  );
});

test("tokens are estimated high, and from the provider's last count if there is one", () => {
  assert.equal(estimateTokens(3_001), 1_001);
  assert.equal(estimateTokens(9_000, { bytes: 6_000, tokens: 1_500 }), 2_500);
  assert.equal(estimateTokens(3_000, { bytes: 6_000, tokens: 1_500 }), 1_000);
});

test("a request that would fit without the requests in flight waits for them, and its answer is not shortened", async () => {
  const above = new Account({ tokens: 30_000 });
  const [one, other] = [new Account({}, { above }), new Account({}, { above })];
  const { signal } = new AbortController();
  const first = await fitOrWait(one, asked(10_000, 8_000), signal);
  assert.ok(first.ok);
  let isWaiting = true;
  const second = fitOrWait(other, asked(10_000, 8_000), signal).finally(() => {
    isWaiting = false;
  });
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(isWaiting, true);
  one.settle(first.reserved, { usage: used(10_000, 500), usd: 0 });
  assert.deepEqual(await second, { ok: true, maxTokens: 8_000, reserved: worstCase(asked(10_000, 8_000)) });
});

test("if waiting would not help, the answer is shortened or the request refused at once; an abort ends the wait", async () => {
  const account = new Account({ tokens: 20_000 });
  const stop = new AbortController();
  const shorter = await fitOrWait(account, asked(10_000, 16_000), stop.signal);
  assert.deepEqual([shorter.ok, shorter.ok && shorter.maxTokens], [true, 10_000]);
  const tooMuch = await fitOrWait(account, asked(40_000, 16_000), stop.signal);
  assert.deepEqual(tooMuch, { ok: false, shortage: { limit: "tokens", needed: 56_000, left: 0 } });
  const waiting = fitOrWait(account, asked(1_000, 2_000), stop.signal);
  stop.abort();
  assert.deepEqual(await waiting, { ok: false, shortage: { limit: "tokens", needed: 3_000, left: 0 } });
});
