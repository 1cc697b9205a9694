/** Families at the edges of the fork matrix: an entry expires while the parent is still answering, a turn adds a picture,
 *  no fork waits, or a program forks. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { type Cell, nameOf } from "./matrix-cells.ts";
import { type FamilyOptions, runFamily, type SeenFamily, type Sent } from "./matrix-family.ts";
import { brokenLaws, tokensIn } from "./matrix-laws.ts";
import { read, stories } from "./matrix-model.ts";

const usual: Cell = {
  forks: 3,
  entry: "warm",
  tail: "keep",
  kind: "one tool call",
  tokens: 8_000,
  lookback: "runs",
  ttl: "5m",
  turns: 2,
};

const holds = async (change: Partial<Cell>, options?: FamilyOptions): Promise<SeenFamily> => {
  const cell = { ...usual, ...change };
  const seen = await runFamily(cell, options);
  assert.deepEqual(brokenLaws(cell, seen), [], nameOf(cell));
  return seen;
};

const launchOf = ({ events }: SeenFamily): string =>
  events.flatMap((event) => (event.type === "family_launched" ? [event.reason] : [])).join();

test("an entry's lifetime counts from the request: an entry that expired while its parent was still answering cannot be read", async () => {
  for (const tail of ["keep", "trim"] as const) {
    const seen = await holds({ entry: "cold", tail }, { passes: "while it answers" });
    assert.match(launchOf(seen), /^leader first: the prefix is cold/);
  }
  const seen = await holds({ entry: "near expiry", tail: "trim" }, { passes: "while it answers" });
  assert.match(launchOf(seen), /^leader first: the prefix expires in 10 s/);
});

test("if the tail is small compared with the parent, no fork waits, and all of them read what the parent wrote", async () => {
  const seen = await holds({ forks: 1, tokens: 70_000 }, { together: true });
  assert.match(launchOf(seen), /^at once: it costs 0\.\d % more than leader first/);
  const { parentLast, parentNext, firsts } = seen;
  const reads = [...firsts, parentNext].map(({ row }) => row.read);
  assert.deepEqual(reads, [parentLast.row.promptTokens, parentLast.row.promptTokens]);
});

/** What stands before the messages. */
const headOf = ({ row, json }: Sent): number => row.promptTokens - tokensIn(json.messages);

const missesIn = ({ events }: SeenFamily): unknown =>
  events.flatMap((event) => (event.type === "fork_cache_missed" ? [[event.level, event.cause]] : []));

test("a picture in the turn in flight makes only the leader miss the messages, if the provider's rules say so", async () => {
  const story = { beside: () => [read("picture.png")] };
  await holds({}, { story, rules: { cache: { images: "none" } } });
  const seen = await runFamily(usual, { story, rules: { cache: { images: "count" } } });
  const { parentLast, parentNext, firsts } = seen;
  const all = parentLast.row.promptTokens + tokensIn(parentNext.json.messages) - tokensIn(parentLast.json.messages);
  const trailing = tokensIn(parentNext.json.messages.slice(-1)) - sharedIn(firsts[0]);
  const reads = [...firsts, parentNext].map(({ row }) => row.read);
  assert.deepEqual(reads, [headOf(parentLast), ...Array.from({ length: 3 }, () => all - trailing)]);
  assert.deepEqual(missesIn(seen), [
    ["info", "this turn added an image, which invalidates the provider's cache of the messages"],
  ]);
});

/** Of a child's last message, all but its own words. */
const sharedIn = (sent: Sent | undefined): number => {
  const last = sent?.json.messages.at(-1);
  return last ? tokensIn([{ ...last, content: last.content.slice(0, -1) }]) : 0;
};

test("a model that strips earlier thinking accepts forks without the turn in flight if no call is open", async () => {
  const { before: _before, ...story } = stories["a thinking-strip model"];
  await holds({ tail: "trim" }, { story });
  await holds({ tail: "trim", entry: "cold" }, { story });
});

test("a child whose turn has 60 blocks still reads all of its first request, however positions are counted", async () => {
  const story = { child: Array.from({ length: 60 }, () => read("small.txt")) };
  await holds({ forks: 2, lookback: "singly" }, { story });
  await holds({ forks: 2, lookback: "runs", tail: "trim" }, { story });
});

const forked: readonly Partial<Cell>[] = [
  { tail: "keep", ttl: "1h" },
  { tail: "trim" },
  { tail: "keep", entry: "cold", ttl: "1h" },
  { tail: "trim", entry: "cold" },
  { tail: "placeholders all", entry: "near expiry" },
];

test("a program's forks start from the conversation's last request, and the conversation continues from what they share", async () => {
  await Promise.all(forked.map((change) => holds(change, { story: { by: "the program" } })));
});

test("forks of a resumed session that has sent nothing yet start from its last request too", async () => {
  await Promise.all(forked.map((change) => holds(change, { story: { by: "the program, resumed" } })));
});

test("forks right after a compaction share its result, and the parent continues from what the first of them wrote", async () => {
  for (const tail of ["keep", "trim", "placeholders all"] as const) {
    const seen = await runFamily({ ...usual, tail }, { story: { by: "the program, compacted" } });
    const { firsts, parentNext } = seen;
    const all = firsts.map((sent) => headOf(sent) + tokensIn(sent.json.messages.slice(0, -1)) + sharedIn(sent));
    const [head = 0, shared = 0] = [firsts.map(headOf)[0], all[0]];
    assert.deepEqual(
      [...firsts, parentNext].map(({ row }) => row.read),
      [head, shared, shared, shared],
      tail,
    );
    assert.ok(shared > 8_000);
    assert.deepEqual(missesIn(seen), [["info", "nothing of the conversation was cached yet, and this fork wrote it"]]);
  }
});

test("what the provider does not document makes no difference: head positions, and refreshes across lifetimes", async () => {
  const cache = { headCountsAsPositions: false, mixedRefresh: "entry", refreshBelowRead: true } as const;
  const changes: readonly Partial<Cell>[] = [
    { kind: "60 blocks in one turn", lookback: "singly", ttl: "1h", entry: "near expiry" },
    { kind: "after resume", ttl: "1h", entry: "cold" },
    { kind: "after compaction", tail: "trim", entry: "near expiry" },
  ];
  await Promise.all(changes.map((change) => holds(change, { rules: { cache } })));
});
