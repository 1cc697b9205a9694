/** What a session says that it spent is what its provider bills, where that depends on the hour or on the class of service;
 *  and budgets hold there. */

import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { test } from "node:test";
import { mergeLayers } from "@prefork/guard";
import { ManualClock, type ProviderName, say, startSimulator, textOfTokens } from "@prefork/simulator";
import { scratch } from "@prefork/testing/scratch";
import type { KeySettings } from "@prefork/wire";
import { createSession, engineFor, type SessionLimits } from "../../src/index.ts";
import { explainFamily, readFamily } from "../../src/observe.ts";

type Running = {
  readonly rules: ProviderName;
  readonly model: string;
  readonly path?: string;
  readonly at?: number;
  readonly settings?: KeySettings;
  readonly limits?: SessionLimits;
};

/** Two prompts: what the session says of them, what explaining it says, and what the provider bills. */
const spent = async ({ rules, model, path = "", at, settings, limits }: Running) => {
  using folder = scratch();
  for (const name of ["work", "home"]) mkdirSync(folder.at(name));
  folder.put("work/AGENTS.md", textOfTokens(6_000));
  const clock = new ManualClock(at ?? Date.UTC(2026, 0, 3));
  await using simulator = await startSimulator({ provider: rules, clock, script: () => say("well") });
  await using session = await createSession({
    engine: engineFor(rules, {
      baseUrl: simulator.url + path,
      model,
      credential: { kind: "api-key", value: "any" },
      diagnoses: false,
    }),
    ...{ cwd: folder.at("work"), home: folder.at("home"), state: folder.at("state") },
    environment: { PATH: "/usr/bin:/bin" },
    permissions: { policy: { ...mergeLayers([]), sandbox: "off" }, mode: "bypass" },
    clock: { now: () => clock.now() },
    ...(settings ? { settings } : {}),
    ...(limits ? { limits } : {}),
  });
  const ends: string[] = [];
  let said = 0;
  for (const words of ["one", "two"]) {
    const { usd, end } = await session.prompt(words).result();
    ends.push(end);
    said += usd;
    clock.advance(5_000);
  }
  const family = await readFamily({ state: folder.at("state"), now: () => clock.now(), newId: () => "" }, session.id);
  const explained = explainFamily(family);
  const billed = simulator.ledger().reduce((sum, row) => sum + (row.billed.usd ?? Number.NaN), 0);
  const noCache = explained.instead.find(({ id }) => id === "no-cache")?.usd;
  const prompts = simulator.ledger().reduce((sum, row) => sum + row.promptTokens, 0);
  const output = simulator.ledger().reduce((sum, row) => sum + row.output, 0);
  return { ends, said, billed, explained: explained.total.usd, noCache, prompts, output };
};

const cents = (usd: number | undefined): number => Math.round((usd ?? Number.NaN) * 1e9) / 1e9;

const PEAK = Date.UTC(2026, 0, 5, 2);
const OFF_PEAK = Date.UTC(2026, 0, 5, 12);

test("DeepSeek's price depends on the hour: the session and its explanation show double prices at peak hours", async () => {
  const usual = await spent({ rules: "deepseek", model: "deepseek-flash", path: "/v1", at: OFF_PEAK });
  const peak = await spent({ rules: "deepseek", model: "deepseek-flash", path: "/v1", at: PEAK });
  for (const { said, billed, explained } of [usual, peak])
    assert.deepEqual([cents(said), cents(explained)], [cents(billed), cents(billed)]);
  assert.ok(usual.billed > 0);
  assert.equal(cents(peak.billed), cents(usual.billed * 2));
  // Also what would have been is counted at the price of that hour.
  assert.equal(cents(peak.noCache), cents((peak.prompts * 0.3 + peak.output * 1.2) / 1e6));
});

test("speed fast is billed at its own prices", async () => {
  const standard = await spent({ rules: "anthropic", model: "claude-opus-5-5" });
  const fast = await spent({ rules: "anthropic", model: "claude-opus-5-5", settings: { speed: "fast" } });
  for (const { said, billed, explained } of [standard, fast])
    assert.deepEqual([cents(said), cents(explained)], [cents(billed), cents(billed)]);
  assert.equal(cents(fast.billed), cents(standard.billed * 2));
  assert.equal(cents(fast.noCache), cents((fast.prompts * 8 + fast.output * 40) / 1e6));
});

test("a budget is checked against the highest price that a request can have", async () => {
  const deepseek = { rules: "deepseek", model: "deepseek-flash", path: "/v1" } as const;
  // All of a first prompt and a longest answer: about 10,000 tokens in and 16,000 out, twice as dear at peak hours.
  const enough = await spent({ ...deepseek, at: PEAK, limits: { usd: 0.05 } });
  assert.deepEqual(enough.ends, ["done", "done"]);
  const little = await spent({ ...deepseek, at: PEAK, limits: { usd: 0.003 } });
  assert.deepEqual([little.ends, little.billed], [["over-budget", "over-budget"], 0]);
  const opus = { rules: "anthropic", model: "claude-opus-5-5", limits: { usd: 0.125 } } as const;
  assert.deepEqual((await spent(opus)).ends, ["done", "done"]);
  const fast = await spent({ ...opus, settings: { speed: "fast" } });
  assert.deepEqual([fast.ends, fast.billed], [["over-budget", "over-budget"], 0]);
});

test("a budget at a speed without a published price is refused", async () => {
  await assert.rejects(
    spent({ rules: "anthropic", model: "claude-sonnet-5", settings: { speed: "fast" }, limits: { usd: 1 } }),
    {
      message:
        "the price of claude-sonnet-5 at the speed fast is unknown, so a budget in dollars cannot be enforced; remove the budget",
    },
  );
});
