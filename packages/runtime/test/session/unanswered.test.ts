/** After unanswered requests, the next one reads what the last answered request wrote, however far back it is. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { callTools, say } from "@prefork/simulator";
import { bash, familyScript, openFamily, prompted } from "../fork/family-ground.ts";

// A turn with nine calls and their results is just within reach of the tail before it; with the next prompt it is not.
for (const calls of [1, 8, 9, 10, 12])
  test(`a prompt after a refused request reads all that was written before a turn of ${calls} calls`, async () => {
    await using place = await openFamily(
      familyScript({
        main: ({ words }) =>
          words.includes("and now?")
            ? say("done")
            : callTools(
                Array.from({ length: calls }, (_, at) => bash(`echo ${at}`)),
                "I look.",
              ),
        fork: () => say("nobody is asked"),
      }),
      { conventions: 4_000, lookback: "singly" },
    );
    await using session = await place.open();
    await prompted(session, "go", ({ type, ...event }) => {
      if (type === "turn_ended" && Object(event).turn === 1)
        place.simulator.fault({ kind: "status", status: 400, times: 2 });
    });
    await prompted(session, "and now?");
    assert.equal((await prompted(session, "and now?")).result.text, "done");
    const [first, , , last] = place.simulator.ledger();
    assert.deepEqual(
      [last?.status, last?.read, last?.expectedRead, last?.missCause],
      [200, first?.promptTokens, first?.promptTokens, null],
    );
  });
