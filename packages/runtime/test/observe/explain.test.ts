/** Bills next to their alternatives: figures calculated by hand, and the sum of a real family. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { noUsage, promptTokens, type Usage } from "@prefork/wire";
import { explain, explainFamily, type RequestRow } from "../../src/observe/index.ts";
import { openForking, prompted } from "./fixture.ts";
import { used } from "./handwritten.ts";

const row = (
  place: readonly [agent: string, turn: number],
  usage: Usage,
  more: Partial<RequestRow> = {},
): RequestRow => ({
  ...{
    agent: place[0],
    session: place[0],
    kind: "turn",
    turn: place[1],
    at: 0,
    model: "claude-sonnet-5",
    epoch: 1,
    isAnswered: true,
  },
  ...{ expected: usage.read, estimated: 0, writtenBefore: usage.read, usage, cause: { kind: "none" } },
  ...more,
});

const family = (role: "leader" | "follower") => ({ family: "s", role, shared: 11_000, inherited: 10_000 }) as const;

/** P 10,000, S 1,000, D 100 each; two forks of two turns, the second with 400 tokens more; 50 tokens an answer. */
const rows: readonly RequestRow[] = [
  row(["main", 1], used(0, 10_000, { output: 50 })),
  row(["task-1", 1], used(10_000, 1_100, { output: 50 }), { family: family("leader") }),
  row(["task-2", 1], used(11_000, 100, { output: 50 }), { family: family("follower") }),
  row(["main", 2], used(11_000, 60, { output: 50 }), { family: family("follower") }),
  row(["task-1", 2], used(11_100, 400, { output: 50 })),
  row(["task-2", 2], used(11_100, 400, { output: 50 })),
  row(["main", 3], used(11_060, 300, { output: 50 })),
];

test("the same work without a cache, without forks, and with a cold cache all at once, calculated by hand", () => {
  const { total, instead } = explain(rows);
  assert.deepEqual(total.usage, used(65_260, 12_360, { output: 350 }));
  // 65,260 read at 0.1 and 12,360 written at 1.25.
  assert.equal(total.units, 21_976);
  const found = Object.fromEntries(
    instead.map(({ id, usage, units, saved }) => [id, { usage, units, saved: saved.units }]),
  );
  assert.deepEqual(found, {
    "no-cache": { usage: used(0, 0, { plain: 77_620, output: 350 }), units: 77_620, saved: 55_644 },
    // Three first requests write everything that they read before: 10,000 + 11,000 + 11,000.
    "cold-at-once": { usage: used(33_260, 44_360, { output: 350 }), units: 58_776, saved: 36_800 },
    // The first part leaves 11,500 + 50 - 11,000 = 550 tokens to the second, both leave 1,100 to the parent's turns.
    "no-fork": { usage: used(65_260 + 2 * 550 + 2 * 1_100, 12_360, { output: 350 }), units: 22_306, saved: 330 },
  });
});

test("money is what the journal says was billed, and what the price table says it would have been", () => {
  const billed = rows.map((each) => ({ ...each, usd: 0.01 }));
  const { total, instead, agents } = explain(billed);
  assert.equal(total.usd?.toFixed(6), "0.070000");
  assert.deepEqual(
    agents.map(({ agent, requests, usd }) => [agent, requests, usd?.toFixed(6)]),
    [
      ["main", 3, "0.030000"],
      ["task-1", 2, "0.020000"],
      ["task-2", 2, "0.020000"],
    ],
  );
  // 77,620 × $2 and 350 × $10 a million.
  const plain = instead.find(({ id }) => id === "no-cache");
  assert.deepEqual([plain?.usd?.toFixed(6), plain?.saved.usd?.toFixed(6)], ["0.158740", "0.088740"]);
});

test("a sum with a request that has no price has no amount of money", () => {
  const { usd: _none, ...unpriced } = row(["main", 1], used(0, 100), { model: "somebody-elses" });
  const { total, instead } = explain([{ ...row(["main", 1], used(0, 100)), usd: 1 }, unpriced]);
  assert.deepEqual(
    [total.usd, instead.map(({ usd, saved }) => [usd, saved.usd])],
    [undefined, [[undefined, undefined]]],
  );
});

test("a single agent is compared with no cache and a cold start, but not with a conversation without forks", () => {
  const own = explain(rows.filter(({ agent }) => agent === "task-1"));
  assert.deepEqual(
    own.instead.map(({ id }) => id),
    ["no-cache", "cold-at-once"],
  );
});

test("a miss says how many tokens it lost, what they cost beyond reading them, and how to avoid it", () => {
  const cause = { kind: "expired", ttl: "5m", unusedMs: 420_000 } as const;
  const expired = row(["main", 2], used(0, 10_060, { output: 50 }), { expected: 0, writtenBefore: 10_000, cause });
  const { misses } = explain([
    row(["main", 1], used(0, 10_000, { output: 50 }), { cause: { kind: "first-request" } }),
    expired,
  ]);
  assert.deepEqual(
    misses.map(({ usd, ...miss }) => ({ ...miss, usd: usd?.toFixed(6) })),
    [
      {
        ...{ row: 1, agent: "main", turn: 2, cause, lost: 10_000 },
        // 10,000 × ($2.50 − $0.20) a million.
        usd: "0.023000",
        why: "the cache entry had expired: unused for 7.0 min, with a lifetime of 5m",
        advice: "if pauses are longer than five minutes, a cache lifetime of 1h costs less",
      },
    ],
  );
});

test("a task whose journal cannot be read is counted as a whole", () => {
  const unread = {
    agent: "task-9",
    reason: "gone",
    model: "claude-sonnet-5",
    usage: used(0, 0, { plain: 1_000, output: 10 }),
    usd: 0.5,
  };
  const { total } = explain([{ ...row(["main", 1], used(0, 100)), usd: 1 }], [unread]);
  assert.deepEqual([total.usage, total.usd, total.requests], [used(0, 100, { plain: 1_000, output: 20 }), 1.5, 2]);
});

test("the bill of a real family is exactly what its session spent, and less than any alternative", async () => {
  await using ground = await openForking(5);
  await using session = await ground.open();
  await prompted(session, "Look at every part.");
  const read = await ground.family(session.id);
  const { total, instead, misses } = explainFamily(read);
  const { usage, usd } = session.spent;
  assert.deepEqual(total.usage, usage);
  assert.equal(total.usd?.toFixed(12), usd.toFixed(12));
  assert.deepEqual(misses, []);
  const [noFork, noCache, cold] = instead;
  assert.deepEqual([noFork?.id, noCache?.id, cold?.id], ["no-fork", "no-cache", "cold-at-once"]);
  assert.equal(noCache?.units, promptTokens(usage));
  for (const { saved } of instead) assert.ok(saved.units > 0 && (saved.usd ?? 0) > 0);
  const [task] = read.tasks;
  const alone = explainFamily(read, task?.id);
  assert.deepEqual([alone.total.usage, alone.total.requests], [task?.result?.usage ?? noUsage, 2]);
});
