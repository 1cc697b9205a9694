import assert from "node:assert/strict";
import { test } from "node:test";
import { FORKS_IN_TESTS, forksSoak } from "./forks-soak.ts";

test("forks one after another, with and without transcripts, leave heap, file handles and processes as they were", async (context) => {
  const { ends, broken, ...figures } = await forksSoak("mixed", FORKS_IN_TESTS);
  context.diagnostic(JSON.stringify(figures));
  assert.deepEqual({ ends, broken }, { ends: { reported: FORKS_IN_TESTS + 20 }, broken: [] });
});
