import { test } from "node:test";
import fc from "fast-check";
import { assertMerge, cases } from "./merge-laws.ts";

/** The long form runs more of them: npm run soak -- worktrees. */
const RUNS = 8;

test("whatever both sides did, a merge is git's own, and undo restores exactly", async () => {
  await fc.assert(
    fc.asyncProperty(cases, async (one) => {
      await assertMerge(one);
    }),
    { numRuns: RUNS, seed: 7, endOnFailure: true },
  );
});
