import assert from "node:assert/strict";
import { test } from "node:test";
import { type ForkConditions, forkAllowed, LEAST_HEADROOM } from "../../src/fork/index.ts";
import { readSwitches } from "../../src/session/forking.ts";
import { steadyNow } from "../../src/session/options.ts";

const open: ForkConditions = {
  isEnabled: true,
  interactive: true,
  policyStated: false,
  insideFork: false,
  headroom: 100_000,
};

test("an interactive main agent with room in its window may fork, and so may a headless one with a stated policy", () => {
  assert.deepEqual(forkAllowed(open), { allowed: true });
  assert.deepEqual(forkAllowed({ ...open, interactive: false, policyStated: true }), { allowed: true });
  assert.deepEqual(forkAllowed({ ...open, headroom: LEAST_HEADROOM }), { allowed: true });
});

test("each reason against forking is sufficient and names itself", () => {
  const reasons: readonly (readonly [Partial<ForkConditions>, RegExp])[] = [
    [{ insideFork: true }, /a fork does its work itself/],
    [{ isEnabled: false }, /switched off/],
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

test("inside a fork, that is the reason, regardless of all others", () => {
  const gate = forkAllowed({ ...open, insideFork: true, isEnabled: false, headroom: 0 });
  assert.deepEqual(gate, {
    allowed: false,
    reason: "a fork does its work itself and starts no other agents",
    isFinal: true,
  });
});

test("the environment turns forks off with any spelling of no, and an unknown value is named", () => {
  const read = (value: string) => readSwitches({ PREFORK_FORK_SUBAGENT: value });
  for (const off of ["0", "false", "FALSE", "off", "Off", "no", " no "])
    assert.deepEqual([off, read(off).forks, read(off).notices], [off, false, []]);
  for (const on of ["1", "true", "on", "YES"]) assert.deepEqual([on, read(on).forks], [on, true]);
  assert.deepEqual(read(""), { forks: undefined, autoBackgroundMs: undefined, notices: [] });
  assert.deepEqual(readSwitches({ PREFORK_FORK_SUBAGENT: "maybe", PREFORK_AUTO_BACKGROUND_MS: "soon" }), {
    forks: undefined,
    autoBackgroundMs: undefined,
    notices: [
      "PREFORK_FORK_SUBAGENT=maybe is not understood and changes nothing; it takes 1, true, on, yes, 0, false, off or no",
      "PREFORK_AUTO_BACKGROUND_MS=soon is not understood and changes nothing; it takes milliseconds, or 0 for never",
    ],
  });
  const times = ["0", "off", "No", "true", "1", "5000", "1e99"];
  assert.deepEqual(
    times.map((value) => readSwitches({ PREFORK_AUTO_BACKGROUND_MS: value }).autoBackgroundMs),
    [0, 0, 0, 120_000, 120_000, 5_000, 2_147_483_647],
  );
});

test("a clock that is set back continues, and the time that passes meanwhile counts", () => {
  const machine = { wall: 1_000, ticks: 0 };
  const now = steadyNow({ wall: () => machine.wall, ticks: () => machine.ticks });
  const passed = (wall: number, ticks: number): number => {
    machine.wall += wall;
    machine.ticks += ticks;
    return now();
  };
  // Forward, set back by an hour, forward again, and over a sleep in which nothing ticks.
  assert.deepEqual(
    [passed(50, 50), passed(-3_600_000, 20), passed(30, 30), passed(10_000, 1)],
    [1_050, 1_070, 1_100, 11_100],
  );
});
