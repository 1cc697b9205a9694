/** Tasks of sessions whose process dies: none is lost, none is reported twice, none is done twice. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { momentSoak, testRuns, wildSoak } from "./tasks-soak.ts";

test("killed sessions with all kinds of tasks resume, and report and do everything once", async (context) => {
  const { sessions, kills, cases, broken } = await wildSoak(testRuns);
  context.diagnostic(`${kills} kills: ${JSON.stringify(cases)}`);
  assert.deepEqual({ sessions, broken }, { sessions: testRuns.length, broken: [] });
  assert.ok(kills >= sessions, "else nothing was put to the test");
});

test("a family killed at any moment is reported, or resumes with a warm cache, when its session resumes", async (context) => {
  const { cuts, warm, cases, broken } = await momentSoak(["told", "waited for"], 20);
  context.diagnostic(`${cuts} cuts, ${warm} forks went on: ${JSON.stringify(cases)}`);
  assert.deepEqual(broken, []);
  assert.ok(cuts > 10 && warm > 0, "else nothing was put to the test");
});
