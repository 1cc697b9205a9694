import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock, type Simulator, startSimulator, textOfTokens } from "@prefork/simulator";
import { type Body, marked, post, request, textBlock } from "./sending.ts";

/** P tokens of parent, then S of shared tail (words, one call, its placeholder), then D of directive. */
type Family = { readonly p: number; readonly s: number; readonly d: number; readonly n: number };

const parentMessages = ({ p }: Family): Body[] => [{ role: "user", content: [textBlock(p - 40_000, 2, marked)] }];

const head = { system: [textBlock(40_000, 1, marked)] };

const child = (family: Family, index: number, markDirective: boolean): Body =>
  request({
    ...head,
    messages: [
      ...parentMessages(family),
      {
        role: "assistant",
        content: [textBlock(99, 3), { type: "tool_use", id: "toolu_1", name: "Agent", input: {} }],
      },
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: "toolu_1", content: textOfTokens(family.s - 100, 4), ...marked },
          textBlock(family.d, 100 + index, markDirective ? marked : {}),
        ],
      },
    ],
    stream: true,
  });

const warmUp = async (sim: Simulator, family: Family): Promise<void> => {
  await (await post(sim, request({ ...head, messages: parentMessages(family) }))).text();
};

type Plan = { readonly warm: boolean; readonly launch: "leader first" | "at once"; readonly markDirective?: boolean };

/** The children's bill in uncached tokens, as the ledger states it. */
const childrensBill = async (family: Family, { warm, launch, markDirective = true }: Plan): Promise<number> => {
  await using sim = await startSimulator({ clock: new ManualClock() });
  if (warm) await warmUp(sim, family);
  const before = sim.ledger().length;
  const bodies = Array.from({ length: family.n }, (_, index) => child(family, index, markDirective));
  if (launch === "at once") sim.fault({ kind: "together", times: family.n });
  const [leader, ...followers] = bodies;
  if (launch === "leader first") await (await post(sim, leader as Body)).text();
  await Promise.all((launch === "at once" ? bodies : followers).map(async (body) => (await post(sim, body)).text()));
  const rows = sim.ledger(before);
  assert.equal(rows.length, family.n);
  for (const row of rows) assert.equal(row.promptTokens, family.p + family.s + family.d);
  return rows.reduce((sum, row) => sum + (row.billed.inputUnits ?? Number.NaN), 0);
};

const three: Family = { p: 100_000, s: 700, d: 100, n: 3 };
const five: Family = { p: 46_000, s: 2_500, d: 200, n: 5 };

test("three forks of a warm 100K parent, leader first, cost 31,390, and 31,315 with the directive unmarked", async () => {
  assert.equal(await childrensBill(three, { warm: true, launch: "leader first" }), 31_390);
  assert.equal(await childrensBill(three, { warm: true, launch: "leader first", markDirective: false }), 31_315);
});

test("three forks of a warm 100K parent, all at once, cost 33,000", async () => {
  assert.equal(await childrensBill(three, { warm: true, launch: "at once" }), 33_000);
});

test("three forks of a cold 100K parent cost 146,390 leader first and 378,000 at once", async () => {
  assert.equal(await childrensBill(three, { warm: false, launch: "leader first" }), 146_390);
  assert.equal(await childrensBill(three, { warm: false, launch: "at once" }), 378_000);
});

test("five forks of a warm 46K parent cost 28,375 leader first and 39,875 at once", async () => {
  assert.equal(await childrensBill(five, { warm: true, launch: "leader first" }), 28_375);
  assert.equal(await childrensBill(five, { warm: true, launch: "at once" }), 39_875);
});

test("five forks of a cold 46K parent cost 81,275 leader first and 304,375 at once", async () => {
  assert.equal(await childrensBill(five, { warm: false, launch: "leader first" }), 81_275);
  assert.equal(await childrensBill(five, { warm: false, launch: "at once" }), 304_375);
});
