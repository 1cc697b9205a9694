/** A task that moves to the background does the same work, at whatever moment it moves. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { moveCalls, moveForks } from "./backgrounding.ts";

/** The soak tries every moment. */
const STRIDE = 2;

test("a fork that is moved to the background at any moment has the same journal as one that was not, and is reported once", async (context) => {
  const { moments, tried, moved } = await moveForks(STRIDE);
  context.diagnostic(`${moments} moments, ${tried} tried, moved at ${moved} of them`);
  assert.ok(moved > tried / 2, "else nothing was put to the test");
});

test("an Agent call that is moved to the background at any moment delivers the same report, as a notification", async (context) => {
  const { moments, tried, moved } = await moveCalls(STRIDE);
  context.diagnostic(`${moments} moments, ${tried} tried, moved at ${moved} of them`);
  assert.ok(moved > tried / 2, "else nothing was put to the test");
});
