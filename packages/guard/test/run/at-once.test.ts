/** Many plans and reads at the same time: processes, memory and the event loop stay bounded. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { ByteBudget } from "../../src/files/byte-budget.ts";
import { nextTurn } from "../../src/run/in-turns.ts";
import { RunningPipes } from "../../src/run/run-pipe.ts";

test("pipes wait until there is room for their processes, and an abort ends the wait", async () => {
  const running = new RunningPipes(10);
  const { signal } = new AbortController();
  const first = await running.enter(99, signal); // alone, it may be larger than the limit
  const entered: string[] = [];
  const later = ["a", "b", "c"].map(async (name) => {
    const place = await running.enter(5, signal);
    entered.push(`${name} beside ${place.others}`);
    return place;
  });
  const stop = new AbortController();
  const aborted = running.enter(5, stop.signal);
  stop.abort();
  (await aborted)[Symbol.dispose]();
  assert.deepEqual(entered, []);
  first[Symbol.dispose]();
  const [a, b] = await Promise.all(later.slice(0, 2));
  assert.deepEqual(entered, ["a beside 0", "b beside 1"]);
  a?.[Symbol.dispose]();
  (await later[2])?.[Symbol.dispose]();
  b?.[Symbol.dispose]();
  assert.deepEqual(entered, ["a beside 0", "b beside 1", "c beside 1"]);
});

test("everybody who waits for a turn of the event loop gets one of their own", async () => {
  let turns = 0;
  let isOver = false;
  const counting = (async () => {
    for (; !isOver; turns += 1) await turn();
  })();
  const seen = await Promise.all(
    [1, 2, 3, 4].map(async () => {
      await nextTurn();
      return turns;
    }),
  );
  isOver = true;
  await counting;
  assert.equal(new Set(seen).size, seen.length, seen.join(", "));
});

test("large files are read one after another where they do not fit into memory together; small ones never wait", async () => {
  const budget = new ByteBudget(50_000_000);
  const order: string[] = [];
  const take = async (name: string, bytes: number): Promise<Disposable> => {
    const room = await budget.take(bytes);
    order.push(name);
    return room;
  };
  const first = await take("first", 60_000_000); // alone, it may be larger than the limit
  const second = take("second", 30_000_000);
  const third = take("third", 20_000_000);
  const fourth = take("fourth", 30_000_000);
  (await take("small", 1_000))[Symbol.dispose]();
  assert.deepEqual(order, ["first", "small"]);
  first[Symbol.dispose]();
  (await second)[Symbol.dispose]();
  (await third)[Symbol.dispose]();
  (await fourth)[Symbol.dispose]();
  assert.deepEqual(order, ["first", "small", "second", "third", "fourth"]);
});
