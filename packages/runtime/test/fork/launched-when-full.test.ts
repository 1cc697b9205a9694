/** Families that are launched when the conversation is due for a compaction: every member's first request is sent in the
 *  family's order, from the existing bytes, and only then is the conversation compacted. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { callTools, type SimAnswer, type SimScript, say, textOfTokens } from "@prefork/simulator";
import type { SessionOptions } from "../../src/index.ts";
import {
  asksForSummary,
  bash,
  ended,
  endsOf,
  type FamilyGround,
  gate,
  openFamily,
  part,
  prompted,
  type Seen,
  seenIn,
} from "./family-ground.ts";

/** Of 20,000 tokens half is there before the turn that forks, and that turn passes them. */
const FULL = { window: 200_000, compactAt: 0.1, maxTokens: 2_000 } as const satisfies Partial<SessionOptions>;
const HALF = textOfTokens(9_000);
const SUMMARY = "All is well so far.";

const main = ({ told, results, words }: Seen, names: readonly string[]): SimAnswer => {
  if (told.length > 0) return say(told.map(({ label, status }) => `${label}: ${status}`).join("\n"));
  if (results.length > 0 || words.includes(SUMMARY)) return say("I wait.");
  if (!words.includes("go")) return say("heard");
  const calls = names.map((name) => ({ name: "Agent", input: part(name) }));
  return callTools(calls, textOfTokens(8_000));
};

/** Names what each request is, in the order of their arrival. */
const played =
  (names: readonly string[], asked: string[]): SimScript =>
  (request) => {
    const seen = seenIn(request);
    const who = seen.directive ?? "main";
    asked.push(asksForSummary(seen) ? `${who} sums up` : who);
    if (asksForSummary(seen)) return say(`<summary>${SUMMARY}</summary>`);
    if (seen.directive === undefined) return main(seen, names);
    return seen.results.some(({ text }) => text.includes("found")) || seen.words.includes(SUMMARY)
      ? say(`Scope: ${who}\nResult: done`)
      : callTools([bash("echo found")]);
  };

const badBodies = ({ simulator }: FamilyGround): readonly string[] =>
  simulator.requests().flatMap(({ body }) => {
    try {
      JSON.parse(body.toString("utf8"));
      return [];
    } catch {
      return [body.toString("utf8").slice(-200)];
    }
  });

for (const names of [["a"], ["a", "b", "c"]])
  test(`a family of ${names.length} launched in the turn that passes the threshold is sent first, and the conversation is compacted afterwards`, async () => {
    const asked: string[] = [];
    await using place = await openFamily(played(names, asked));
    await using session = await place.open(FULL);
    const { result } = await prompted(session, `go ${HALF}`);
    assert.deepEqual(badBodies(place), []);
    assert.equal(result.end, "done", result.reason);
    assert.deepEqual(endsOf(session), Object.fromEntries(names.map((name) => [name, "reported"])));
    assert.deepEqual(asked.slice(0, 2), ["main", names[0]]);
    // Each is sent once in the family's order before it sums up.
    for (const who of ["main", ...names]) {
      const own = asked.filter((one) => one === who || one === `${who} sums up`);
      const expected = who === "main" ? ["main", "main", "main sums up", "main"] : [who, `${who} sums up`, who];
      assert.deepEqual(own, expected);
    }
    assert.deepEqual(
      place.simulator.ledger().map(({ status }) => status),
      asked.map(() => 200),
    );
    assert.equal((await prompted(session, "and now?")).result.text, "heard");
  });

/** Answers of the main agent fill its context; a fork answers when it is let. */
const filled =
  (asked: string[], fork: () => Promise<void>): SimScript =>
  async (request) => {
    const seen = seenIn(request);
    asked.push(asksForSummary(seen) ? "main sums up" : (seen.directive ?? "main"));
    if (asksForSummary(seen)) return say(`<summary>${SUMMARY}</summary>`);
    if (seen.directive === undefined) return say(seen.words.includes("fill") ? textOfTokens(9_000) : "heard");
    await fork();
    return say("Scope: x\nResult: done");
  };

test("a full conversation is neither sent nor compacted while a program's forks are unanswered", async () => {
  const asked: string[] = [];
  const [arrived, waiting] = [gate(), gate()];
  await using place = await openFamily(
    filled(asked, () => {
      arrived.open();
      return waiting.passed;
    }),
  );
  await using session = await place.open(FULL);
  await prompted(session, `fill ${HALF}`);
  const fork = session.fork({ prompt: "x" });
  await arrived.passed;
  const { result } = await prompted(session, "and now?", ({ type, agent }) => {
    if (type === "turn_started" && agent === "main") waiting.open();
  });
  assert.equal(result.text, "heard");
  assert.equal((await ended(fork)).end, "reported");
  assert.deepEqual(asked, ["main", "x", "main"]);
});

test("a program's forks that were already answered do not prevent a compaction", async () => {
  const asked: string[] = [];
  await using place = await openFamily(filled(asked, () => Promise.resolve()));
  await using session = await place.open(FULL);
  await prompted(session, `fill ${HALF}`);
  await ended(session.fork({ prompt: "x" }));
  assert.equal((await prompted(session, "and now?")).result.text, "heard");
  assert.deepEqual(asked, ["main", "x", "main sums up", "main"]);
});
