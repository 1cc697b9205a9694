import assert from "node:assert/strict";
import { test } from "node:test";
import { stopBeforeTurn } from "../../src/agent/index.ts";

const state = { turns: 3, now: 1_000, aborted: false };

test("another turn begins as long as no limit is reached", () => {
  assert.equal(stopBeforeTurn({}, state), undefined);
  assert.equal(stopBeforeTurn({ maxTurns: 4, deadline: 1_001 }, state), undefined);
});

test("a limit that is reached stops the exchange and is named", () => {
  assert.deepEqual(stopBeforeTurn({ maxTurns: 3 }, state), {
    end: "max-turns",
    reason: "the limit of 3 turns is reached",
  });
  assert.deepEqual(stopBeforeTurn({ maxTurns: 1 }, { ...state, turns: 1 }), {
    end: "max-turns",
    reason: "the limit of 1 turn is reached",
  });
  assert.deepEqual(stopBeforeTurn({ deadline: 1_000 }, state), {
    end: "out-of-time",
    reason: "the time limit is reached",
  });
  assert.deepEqual(stopBeforeTurn({ maxTurns: 0 }, { ...state, turns: 0 })?.end, "max-turns");
});

test("an interruption takes precedence over every limit", () => {
  assert.deepEqual(stopBeforeTurn({ maxTurns: 3, deadline: 0 }, { ...state, aborted: true }), {
    end: "aborted",
    reason: "interrupted",
  });
});
