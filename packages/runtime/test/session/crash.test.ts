/** When a killed session is resumed by another process: is everything there, done once, and still cached? */

import assert from "node:assert/strict";
import { test } from "node:test";
import { crashSoak, endOf, KILLS_IN_TESTS, randomMoments } from "./crash-soak.ts";

/** An edit that has ended, in a batch that has not: what was learned of the file must not be lost with the batch. */
const EDIT_IN_A_BATCH = "toolu_3_2_0";

test("a killed session resumes from its journal as if it had not been killed", async (context) => {
  const result = await crashSoak((whole) => [
    ...randomMoments(KILLS_IN_TESTS)(whole),
    ...endOf(EDIT_IN_A_BATCH)(whole),
  ]);
  context.diagnostic(`the kills hit ${JSON.stringify(result.cases)}`);
  const { "not killed in time": late = 0, "ended, changing": edits = 0 } = result.cases;
  assert.deepEqual(
    { kills: result.kills, late, edited: edits > 0, broken: result.broken },
    { kills: KILLS_IN_TESTS + 1, late: 0, edited: true, broken: [] },
  );
});
