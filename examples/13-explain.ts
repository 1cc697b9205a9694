/** A family's bill from its journals: what each request read and cost, and what the alternatives would have cost. */

import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { anthropicEngine, createSession } from "@prefork/runtime";
import { explainFamily, readFamily } from "@prefork/runtime/observe";
import { lastUserText, type SimRequest, say, startSimulator, textOfTokens } from "@prefork/simulator";

const script = (request: SimRequest) => say(`Scope: ${lastUserText(request).slice(-3)}\nResult: done`);
await using simulator = await startSimulator({ script });
const folder = await mkdtemp(join(tmpdir(), "prefork-example-"));
const state = join(folder, ".state");

// A conversation, two forks of it, a pause that is longer than the provider keeps its cache, and one more prompt.
let now = Date.UTC(2026, 0, 1);
let id = "";
{
  await using session = await createSession({
    engine: anthropicEngine({ baseUrl: simulator.url, credential: { kind: "api-key", value: "any" } }),
    cwd: folder,
    state,
    permissions: { mode: "default" },
    clock: { now: () => now },
  });
  id = session.id;
  await session.prompt(`Know this: ${textOfTokens(5_000)}`).result();
  await Promise.all(session.forkAll([{ prompt: "one" }, { prompt: "two" }]).map((fork) => fork.result()));
  now += 6 * 60_000;
  simulator.clock.advance(6 * 60_000);
  await session.prompt("And now?").result();
}

// #region explain

const family = await readFamily({ state, now: Date.now, newId: () => "" }, id);
for (const { agent, turn, expected, usage, usd, cause } of family.rows)
  console.log(agent, turn, `expected ${expected}, read ${usage.read}`, usd?.toFixed(4), cause.kind);

const { total, instead, misses } = explainFamily(family);
for (const { id: plan, units } of instead) console.log(`${plan}: ${(units / total.units).toFixed(2)} ×`);
for (const { why, advice, lost } of misses) console.log(`${lost} tokens lost: ${why}. To avoid it: ${advice}.`);
// #endregion

// Journals and provider agree, row by row and in the sum.
const ledger = simulator.ledger();
assert.deepEqual(
  family.rows.map(({ usage }) => [usage.read, usage.written["5m"] ?? 0]).sort(),
  ledger.map(({ read, written }) => [read, written["5m"]]).sort(),
);
const billed = ledger.reduce((sum, row) => sum + (row.billed.usd ?? Number.NaN), 0);
assert.equal(total.usd?.toFixed(9), billed.toFixed(9));
assert.deepEqual(
  misses.map(({ agent, cause }) => [agent, cause.kind]),
  [["main", "expired"]],
);
await rm(folder, { recursive: true });
