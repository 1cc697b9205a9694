/** Forks that a program starts one by one, at any moment: what they cost next to the conversation and next to each other,
 *  and what ends them. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { type LedgerRow, say, textOfTokens } from "@prefork/simulator";
import type { ForkHandle, Session } from "../../src/index.ts";
import { ended, type FamilyGround, familyScript, gate, openFamily, prompted } from "./family-ground.ts";

/** Of the conversation's last answer, which no request has sent yet: what its forks share and somebody has to write. */
const SHARED = 5_000;

/** Slow enough that whoever is sent beside another finds nothing that it wrote. */
const openSlow = (): Promise<FamilyGround> =>
  openFamily(
    familyScript({
      main: ({ words }) => say(words.includes("hello") ? textOfTokens(SHARED) : "heard"),
      fork: ({ directive }) => say(`Scope: ${directive}\nResult: done`),
    }),
    { conventions: 4_000, latency: { firstEventMs: 30 } },
  );

const billed = ({ read, written, plain, missCause }: LedgerRow) => ({ read, written: written["5m"], plain, missCause });

const NAMES = ["a", "b", "c", "d"] as const;

const WAYS = {
  "one by one": (session: Session): readonly ForkHandle[] => NAMES.map((prompt) => session.fork({ prompt })),
  together: (session: Session): readonly ForkHandle[] => session.forkAll(NAMES.map((prompt) => ({ prompt }))),
} as const;

for (const [state, later] of [
  ["warm", 0],
  ["cold", 6 * 60_000],
] as const)
  test(`forks of a ${state} conversation cost the same one by one as together: only the first writes what they share`, async () => {
    const bills: Record<string, readonly ReturnType<typeof billed>[]> = {};
    for (const [way, start] of Object.entries(WAYS)) {
      await using place = await openSlow();
      let offset = 0;
      await using session = await place.open({ clock: { now: () => Date.now() + offset } });
      await prompted(session, "hello");
      offset = later;
      place.simulator.clock.advance(later);
      await Promise.all(start(session).map(ended));
      bills[way] = place.simulator.ledger().slice(1).map(billed);
    }
    assert.deepEqual(bills["one by one"], bills.together);
    assertWrittenOnce(bills.together ?? []);
  });

/** The first one writes what all share, and everybody else reads it and writes only words of its own. */
const assertWrittenOnce = (bills: readonly ReturnType<typeof billed>[]): void => {
  const [first, ...others] = bills;
  assert.ok(first && first.written >= SHARED);
  const shared = others[0]?.read ?? 0;
  assert.ok(shared > first.read && shared <= first.read + first.written);
  assert.deepEqual(
    others.map(({ read, plain, missCause }) => ({ read, plain, missCause })),
    others.map(() => ({ read: shared, plain: 0, missCause: null })),
  );
  assert.ok(others.every(({ written }) => written < 1_000));
};

for (const [order, isFirst] of [
  ["right after its forks", false],
  ["right before them", true],
] as const)
  test(`a prompt ${order} is not sent while the leader is unanswered, and nothing shared is written twice`, async () => {
    await using place = await openSlow();
    await using session = await place.open();
    await prompted(session, "hello");
    const before = isFirst ? [session.prompt("go on").result()] : [];
    const forks = WAYS.together(session).map(ended);
    const after = isFirst ? [] : [session.prompt("go on").result()];
    await Promise.all([...before, ...forks, ...after]);
    assertWrittenOnce(place.simulator.ledger().slice(1).map(billed));
  });

test("a prompt is not sent next to queued forks either: the first request writes for all", async () => {
  const busy = gate();
  await using place = await openFamily(
    familyScript({
      main: ({ words }) => say(words.includes("hello") ? textOfTokens(SHARED) : "heard"),
      fork: ({ directive }) => ({
        ...say(`Scope: ${directive}\nResult: done`),
        ...(directive === "busy" ? { hold: busy.passed } : {}),
      }),
    }),
    { conventions: 4_000 },
  );
  await using session = await place.open({ mostTasks: 1 });
  await prompted(session, "hello");
  const first = ended(session.fork({ prompt: "busy" }));
  await prompted(session, "hello again");
  const forks = WAYS.together(session).map(ended);
  await prompted(session, "go on");
  busy.open();
  await Promise.all([first, ...forks]);
  const [, , , ...rest] = place.simulator.ledger().map(billed);
  assertWrittenOnce(rest);
});
