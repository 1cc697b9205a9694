/** Budgets and requests that cost more than they seem to: retries, which are billed each, and pictures, which have few bytes
 *  and many tokens. Actual and worst-case costs come from the simulator's ledger, which has its own figures. */

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { test } from "node:test";
import { callTools, type Fault, type LedgerRow, say } from "@prefork/simulator";
import { type JsonObject, promptTokens } from "@prefork/wire";
import { hastyTiming } from "../tasks/fixture.ts";
import { ended, type FamilyGround, familyScript, openFamily, prompted } from "./family-ground.ts";

/** Of claude-sonnet-4-6, in dollars a million. */
const [WRITE, OUTPUT] = [3.75, 15];

const MODEL = { model: "claude-sonnet-4-6", maxTokens: 1_024 } as const;

/** What a request takes where nothing of it is read and its answer is as long as it may be. */
const worst = ({ promptTokens: tokens }: LedgerRow, { max_tokens: most }: JsonObject): number =>
  (tokens * WRITE + Number(most) * OUTPUT) / 1e6;

/** What was billed since, and the most that it could have been at any moment: all before it, and one at its worst. */
const takenSince = ({ simulator, bodies }: FamilyGround, before: number) => {
  const rows = simulator.ledger().slice(before);
  let [billed, could] = [0, 0];
  for (const [at, row] of rows.entries()) {
    could = Math.max(could, billed + worst(row, bodies()[before + at] ?? {}));
    billed += row.billed.usd ?? 0;
  }
  return { rows, billed, could };
};

const FAULTS: Readonly<Record<string, Fault>> = {
  "an error before its content": { kind: "error-mid-stream", moment: "before-content" },
  "an error after its content": { kind: "error-mid-stream", moment: "after-content" },
  "a broken connection": { kind: "reset-mid-stream", afterEvents: 1 },
};

/** In worst cases of one request, of some five cents. */
const BUDGETS = [
  { usd: 0.06, attempts: 1, end: "failed" },
  { usd: 0.11, attempts: 2, end: "failed" },
  { usd: 0.17, attempts: 3, end: "reported" },
] as const;

for (const [name, fault] of Object.entries(FAULTS))
  test(`an answer that ends with ${name} is retried only as often as the family's budget covers its worst case`, async () => {
    const met = BUDGETS.map(async ({ usd }) => {
      // Nothing is cached here, so every attempt costs all of its prompt.
      await using place = await openFamily(
        familyScript({ main: () => say("heard"), fork: ({ directive }) => say(`Scope: ${directive}\nResult: done`) }),
        { conventions: 4_000, rules: { cache: { minimumPrefix: 10_000_000 } } },
      );
      await using session = await place.open({ ...MODEL, forking: { family: { usd } } }, { timing: hastyTiming });
      await prompted(session, "hello");
      place.simulator.fault({ ...fault, times: 2 });
      const { end, usage } = await ended(session.fork({ prompt: "it" }));
      const { rows, billed, could } = takenSince(place, 1);
      assert.ok(billed <= could && could <= usd, `${billed}, at most ${could} of ${usd}`);
      assert.equal(
        promptTokens(usage),
        rows.reduce((sum, row) => sum + row.promptTokens, 0),
      );
      return { usd, attempts: rows.length, end };
    });
    assert.deepEqual(await Promise.all(met), BUDGETS);
  });

/** One dot, of 70 bytes and 1,600 tokens. */
const DOT = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);

for (const [count, requests, end] of [
  [2, 2, "reported"],
  [30, 1, "over-budget"],
] as const)
  test(`a family's budget counts ${count} small pictures as a provider does before it sends them`, async () => {
    const usd = 0.12;
    await using place = await openFamily(
      familyScript({
        main: () => say("heard"),
        fork: ({ results }) =>
          results.length > 0
            ? say("Scope: pictures\nResult: done")
            : callTools(dots.map((path) => ({ name: "Read", input: { file_path: path } }))),
      }),
    );
    const dots = Array.from({ length: count }, (_, at) => place.folder.at("work", `${at}.png`));
    for (const path of dots) writeFileSync(path, DOT);
    await using session = await place.open({ ...MODEL, forking: { family: { usd } } });
    await prompted(session, "hello");
    const outcome = await ended(session.fork({ prompt: "look at them" }));
    const { rows, could } = takenSince(place, 1);
    assert.ok(could <= usd, `at most ${could} of ${usd}`);
    assert.deepEqual([outcome.end, rows.length], [end, requests]);
  });
