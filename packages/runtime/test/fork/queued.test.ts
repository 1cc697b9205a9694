/** Forks that are queued for longer than the cache keeps what they share: one of them writes it again, and the others
 *  read it. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as after } from "node:timers/promises";
import { callTools, ManualClock, say } from "@prefork/simulator";
import { Account } from "../../src/agent/index.ts";
import type { RunStart } from "../../src/children/running.ts";
import { Runs } from "../../src/children/runs.ts";
import { ephemeralJournal } from "../../src/journal/index.ts";
import { Inbox, TaskTable } from "../../src/tasks/index.ts";
import {
  bash,
  ended,
  familyScript,
  gate,
  openFamily,
  openListening,
  part,
  prompted,
  starts,
  unkeptPlan,
  watched,
} from "./family-ground.ts";

const NAMES = ["a", "b", "c", "d", "e", "f"];
const AT_ONCE = 3;

test("a fork that is stopped while it is queued leaves no gap and takes no slot", async () => {
  await using journal = await ephemeralJournal("session-1");
  const table = new TaskTable({ journal, inbox: new Inbox(journal), newNoticeId: () => "notice-1", state: new Map() });
  const opening = gate();
  const runs = new Runs({
    ...{ table, clock: { now: () => 0 }, emit: () => undefined, atOnce: 1, parent: "main", spent: () => undefined },
    host: {
      open: async () => {
        await opening.passed;
        throw new Error("no room");
      },
    },
  });
  const start = (task: string): RunStart => ({ child: unkeptPlan(task), budget: new Account(), notifies: false });
  const ends = ["task-1", "task-2"].map(async (task) => {
    const started = runs.start([start(task)]);
    const running = runs.find(task);
    await started;
    return (await running?.ended.promise)?.result.text;
  });
  runs.find("task-2")?.stop();
  assert.equal(await ends[1], "Not started: stopped before its turn came");
  assert.equal(runs.freePlaces, 0);
  opening.open();
  assert.equal(await ends[0], "Not started: no room");
  assert.equal(runs.freePlaces, 1);
});

test("a family that just fits has no queued forks, and a short family does not cross into a higher price tier", async () => {
  await using place = await openListening(({ directive }) => say(`Scope: ${directive}\nResult: done`));
  await using session = await place.open({ mostTasks: 2 }, { model: "claude-haiku-5-5" });
  const forks = NAMES.slice(0, 2).map((prompt) => ({ prompt }));
  const events = await watched(session, () => Promise.all(session.forkAll(forks).map(ended)));
  const advice = events.flatMap((event) => (event.type === "family_launched" ? [event.advice] : []));
  assert.deepEqual(advice, [[]]);
});

test("of forks that begin after the entry has expired, one writes and the others read, and the family's event warned of it", async () => {
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
    "3 of 6 wait in the queue; the shared entry lives 5 minutes after its last use, and a fork that starts later than that has to write the shared entry again",
  ]);
  const missed = events.flatMap((event) =>
    event.type === "fork_cache_missed" ? [[event.cause, event.isWarning]] : [],
  );
  assert.deepEqual(missed, [["it waited for a place longer than the entry lives, and wrote it again", false]]);
});
