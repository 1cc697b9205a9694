import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock, startSimulator, textOfTokens } from "@prefork/simulator";
import fc from "fast-check";
import { type Body, marked, marked1h, request, row } from "./sending.ts";

/** A conversation as numbers: each block is (tokens, seed); markers are chosen apart from it. */
const block = fc.record({ tokens: fc.integer({ min: 1, max: 900 }), seed: fc.integer({ min: 0, max: 2 }) });
const shape = fc.record({
  system: fc.array(block, { maxLength: 3 }),
  messages: fc.array(fc.array(block, { minLength: 1, maxLength: 4 }), { minLength: 1, maxLength: 5 }),
});
type Shape = typeof shape extends fc.Arbitrary<infer T> ? T : never;

/** At most four places, from 0 to 1 along the prompt; the long lifetimes first. */
const places = fc.record({
  at: fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 4 }),
  long: fc.integer({ min: 0, max: 4 }),
});
type Places = typeof places extends fc.Arbitrary<infer T> ? T : never;

const bodyOf = ({ system, messages }: Shape, { at, long }: Places): Body => {
  const turns = messages.length % 2 === 1 ? messages : messages.slice(0, -1);
  const count = system.length + turns.flat().length;
  const marks = [...new Set(at.map((share) => Math.floor(share * (count - 1))))].sort((a, b) => a - b);
  let index = -1;
  const text = ({ tokens, seed }: { tokens: number; seed: number }): Body => {
    index += 1;
    const nth = marks.indexOf(index);
    return { type: "text", text: textOfTokens(tokens, seed), ...(nth < 0 ? {} : nth < long ? marked1h : marked) };
  };
  return request({
    ...(system.length === 0 ? {} : { system: system.map(text) }),
    messages: turns.map((blocks, turn) => ({ role: turn % 2 === 0 ? "user" : "assistant", content: blocks.map(text) })),
  });
};

const steps = fc.array(
  fc.record({ shape, places, advanceMs: fc.integer({ min: 0, max: 400_000 }), tail: fc.boolean() }),
  {
    minLength: 2,
    maxLength: 6,
  },
);

test("parts sum to the prompt, and no read exceeds what was written before on the same chain", async () => {
  await using sim = await startSimulator({ clock: new ManualClock() });
  await fc.assert(
    fc.asyncProperty(steps, async (sequence) => {
      sim.reset();
      let previous: Shape | undefined;
      for (const step of sequence) {
        const current: Shape =
          step.tail && previous !== undefined
            ? {
                system: previous.system,
                messages: [...previous.messages, ...step.shape.messages, ...step.shape.messages],
              }
            : step.shape;
        const each = await row(sim, bodyOf(current, step.places));
        const { read, written, plain, promptTokens, expectedRead } = each;
        assert.equal(read + written["5m"] + written["1h"] + plain, promptTokens);
        assert.ok(read <= expectedRead && expectedRead <= promptTokens);
        assert.equal(each.missCause !== null && read < expectedRead, read < expectedRead);
        sim.clock.advance(step.advanceMs);
        previous = current;
      }
    }),
    { numRuns: 60, seed: 7 },
  );
});

test("markers are not in the key: however they move, nothing diverges", async () => {
  await using sim = await startSimulator({ clock: new ManualClock() });
  await fc.assert(
    fc.asyncProperty(shape, places, places, async (conversation, first, second) => {
      sim.reset();
      const before = await row(sim, bodyOf(conversation, first));
      const after = await row(sim, bodyOf(conversation, second));
      assert.equal(after.promptTokens, before.promptTokens);
      assert.equal(after.firstDivergence, null);
    }),
    { numRuns: 60, seed: 8 },
  );
});

test("the same request at once again reads exactly what the first one left in the cache", async () => {
  await using sim = await startSimulator({ clock: new ManualClock() });
  await fc.assert(
    fc.asyncProperty(shape, places, async (conversation, where) => {
      sim.reset();
      const first = await row(sim, bodyOf(conversation, where));
      const again = await row(sim, bodyOf(conversation, where));
      assert.equal(again.read, first.read + first.written["5m"] + first.written["1h"]);
      assert.deepEqual(again.written, { "5m": 0, "1h": 0 });
    }),
    { numRuns: 60, seed: 9 },
  );
});
