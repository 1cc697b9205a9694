import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { brokenBy, live, reference } from "./crash.ts";
import { openGround, photographFiles } from "./ground.ts";
import { prepareLife } from "./life.ts";

/** The long form covers all steps: npm run soak -- worktrees. */
const STRIDE = 41;
const MOMENTS = 2;

/** The uninterrupted life. */
const wanted = await reference();

test("a process that is killed at a step leaves nothing half done once the next one has looked", async () => {
  const broken: string[] = [];
  for (let atStep = 1; atStep <= wanted.steps.length; atStep += STRIDE)
    broken.push(...(await brokenBy({ atStep }, wanted)));
  assert.deepEqual(broken, []);
});

test("a process that is killed together with its git, at any moment, leaves nothing half done", async () => {
  const broken: string[] = [];
  for (let at = 0; at < MOMENTS; at += 1)
    broken.push(...(await brokenBy({ afterMs: (wanted.ms * (at + 0.5)) / MOMENTS }, wanted)));
  assert.deepEqual(broken, []);
});

test("what somebody changes between a kill and the repair is kept on a ref", async () => {
  using ground = openGround();
  prepareLife(ground);
  await live(ground, { atStep: wanted.steps.indexOf("swap ends") + 1 });
  assert.equal(readFileSync(ground.at("repo/made/by/task"), "utf8"), "m\n", "it was killed with all in place");
  ground.put("private", "of the user, after the kill\n");
  const worktrees = await ground.open();
  const [repaired] = await worktrees.repair();
  assert.match(repaired?.done ?? "", /; later changes are kept on refs\/prefork\/kept\/1$/);
  assert.equal(ground.git("show", "refs/prefork/kept/1:private"), "of the user, after the kill\n");
  assert.deepEqual(photographFiles(ground.path), wanted.own);
});
