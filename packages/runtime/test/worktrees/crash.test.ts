import assert from "node:assert/strict";
import { test } from "node:test";
import { brokenBy, reference } from "./crash.ts";

/** All of them are in the long form: npm run soak -- worktrees. */
const STRIDE = 9;
const MOMENTS = 3;

test("a process that is killed at a step leaves nothing half done once the next one has looked", async () => {
  const wanted = await reference();
  const broken: string[] = [];
  for (let atStep = 1; atStep <= wanted.steps.length; atStep += STRIDE)
    broken.push(...(await brokenBy({ atStep }, wanted)));
  assert.deepEqual(broken, []);
});

test("a process that is killed together with its git, at any moment, leaves nothing half done", async () => {
  const wanted = await reference();
  const broken: string[] = [];
  for (let at = 0; at < MOMENTS; at += 1)
    broken.push(...(await brokenBy({ afterMs: (wanted.ms * (at + 0.5)) / MOMENTS }, wanted)));
  assert.deepEqual(broken, []);
});
