/** Forks that wait for a place longer than the cache keeps what they share: one of them writes it again, and the others
 *  read it. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as after } from "node:timers/promises";
import { callTools, ManualClock, say } from "@prefork/wire/simulator";
import { bash, familyScript, gate, openFamily, part, prompted, starts } from "./family-ground.ts";

const NAMES = ["a", "b", "c", "d", "e", "f"];
const AT_ONCE = 3;

test("of forks that begin after the entry has expired one writes, the others read, and the family was told of it", async () => {
  const clock = new ManualClock();
  const first = gate();
  let busy = 0;
  await using place = await openFamily(
    familyScript({
      main: starts(NAMES.map(part)),
      fork: async ({ directive, answers, results }) => {
        if (NAMES.indexOf(directive) < AT_ONCE && answers > 0) {
          busy += 1;
          if (busy === AT_ONCE) {
            clock.advance(400_000); // all of them took their time
            first.open();
          }
          await first.passed;
        }
        await after(20); // long enough that siblings would be sent beside each other
        return results.length > 0 && answers > 0
          ? say(`Scope: ${directive}\nResult: done`)
          : callTools([bash("echo found")]);
      },
    }),
    { clock, conventions: 20_000 },
  );
  await using session = await place.open({
    mostTasks: AT_ONCE,
    forking: { keepAlive: false },
    clock: { now: () => clock.now(), sleep: (ms, signal) => after(ms, undefined, { signal }).catch(() => undefined) },
  });
  const { result, events } = await prompted(session, "go");
  assert.equal(result.end, "done", result.reason);
  const rows = place.simulator.ledger();
  const firsts = place.bodies().flatMap((body, at) => {
    const text = JSON.stringify(body);
    const late = NAMES.slice(AT_ONCE).some((name) => text.includes(`fork-directive: ${name}"`));
    return late && !text.includes("echo found") ? [rows[at]?.read ?? 0] : [];
  });
  assert.equal(firsts.length, NAMES.length - AT_ONCE);
  const [leader, ...others] = firsts.toSorted((one, other) => one - other);
  assert.equal(leader, 0);
  for (const read of others) assert.ok(read > 10_000, `${firsts}`);
  const launched = events.find(({ type }) => type === "family_launched");
  assert.ok(launched?.type === "family_launched");
  assert.deepEqual(launched.advice, [
    "3 of 6 wait for a place; what all share lives 5 minutes after it was last used, and whoever gets a place later than that writes it again for those behind",
  ]);
  const missed = events.flatMap((event) =>
    event.type === "fork_cache_missed" ? [[event.cause, event.isWarning]] : [],
  );
  assert.deepEqual(missed, [["it waited for a place longer than the entry lives, and wrote it again", false]]);
});
