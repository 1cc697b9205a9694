import assert from "node:assert/strict";
import { test } from "node:test";
import { type ForkQuestion, forkAllowed, LEAST_HEADROOM } from "../../src/fork/index.ts";

const open: ForkQuestion = {
  flag: true,
  coordinator: false,
  interactive: true,
  policyStated: false,
  insideFork: false,
  headroom: 100_000,
};

test("an interactive main agent with room may fork, and a headless one that stated a policy", () => {
  assert.deepEqual(forkAllowed(open), { allowed: true });
  assert.deepEqual(forkAllowed({ ...open, interactive: false, policyStated: true }), { allowed: true });
  assert.deepEqual(forkAllowed({ ...open, headroom: LEAST_HEADROOM }), { allowed: true });
});

test("each reason against it stands alone and says what it is", () => {
  const reasons: readonly (readonly [Partial<ForkQuestion>, RegExp])[] = [
    [{ insideFork: true }, /a fork does its work itself/],
    [{ flag: false }, /switched off/],
    [{ coordinator: true }, /coordinator/],
    [{ interactive: false }, /--permission-mode, --allow or --deny/],
    [{ headroom: LEAST_HEADROOM - 1 }, /7999 tokens of the window are left/],
    [{ headroom: -5 }, /only 0 tokens/],
  ];
  for (const [changed, reason] of reasons) {
    const gate = forkAllowed({ ...open, ...changed });
    assert.ok(!gate.allowed);
    assert.match(gate.reason, reason);
  }
});

test("inside a fork that is the reason, whatever else holds", () => {
  const gate = forkAllowed({ ...open, insideFork: true, flag: false, coordinator: true, headroom: 0 });
  assert.deepEqual(gate, {
    allowed: false,
    reason: "a fork does its work itself and starts nobody",
    isFinal: true,
  });
});
