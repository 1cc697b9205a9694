/** Miss reasons that a running session does not produce, from handwritten journals. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { addUsage, noUsage, toolResult } from "@prefork/wire";
import fc from "fast-check";
import { replay } from "../../src/journal/index.ts";
import { ledgerOf } from "../../src/observe/index.ts";
import { head, Sketch, used } from "./handwritten.ts";

const rowsOf = (...sketches: readonly Sketch[]) =>
  ledgerOf(sketches.map(({ session, entries }, at) => ({ agent: at === 0 ? "main" : `task-${at}`, session, entries })));

test("a fork with its own head is explained by the first difference from its parent's", () => {
  const parent = new Sketch("parent")
    .begin()
    .say("user", "Look.")
    .ask()
    .answer(used(0, 5_000))
    .say("assistant", "I do.");
  const child = new Sketch("child", { at: 2_000, parent: parent.pointer });
  child.begin(head("Reads a whole file.")).say("user", "Look.").say("assistant", "I do.").say("user", "Part one.");
  const [, first] = rowsOf(parent, child.ask().answer(used(0, 5_100)));
  assert.deepEqual(
    [first?.expected, first?.cause],
    [5_000, { kind: "changed-bytes", segment: 1, path: "tools[0].description" }],
  );
});

test("an entry more than twenty blocks before the next marker is out of reach", () => {
  const results = Array.from({ length: 24 }, (_, at) => toolResult(`call-${at}`, "done"));
  const calls = results.map(({ toolUseId: id }) => ({ type: "tool_use", id, name: "Read", input: "{}" }) as const);
  const sketch = new Sketch("main").begin().say("user", "Go.").ask().answer(used(0, 5_000));
  sketch.say("assistant", ...calls).say("user", ...results);
  const tail = sketch.prefix.tip?.index ?? 0;
  sketch.ask([{ segment: tail, role: "tail", ttl: "5m" }]).answer(used(0, 6_000));
  const [, second] = rowsOf(sketch);
  assert.deepEqual([second?.expected, second?.cause], [5_000, { kind: "look-back-exceeded", positions: 48 }]);
});

test("siblings sent at once, where waiting would not pay, do not count as raced", () => {
  const parent = new Sketch("parent").begin().say("user", "Look.").ask().answer(used(0, 100_000));
  parent.say("assistant", "I do.");
  const child = (name: string): Sketch => {
    const from = parent.prefix;
    const sketch = new Sketch(name, { at: 2_000, parent: parent.pointer, from });
    const shared = from.tip?.index ?? 0;
    sketch.say("user", `Part ${name}.`);
    return sketch.ask([
      { segment: shared - 1, role: "inherited", ttl: "5m" },
      { segment: shared, role: "shared", ttl: "5m" },
      { segment: shared + 1, role: "tail", ttl: "5m" },
    ]);
  };
  const read = used(100_000, 120);
  const rows = rowsOf(parent, child("one").answer(read), child("two").answer(read));
  assert.deepEqual(
    rows.map(({ expected, cause, family }) => [expected, cause.kind, family?.role]),
    [
      [0, "first-request", undefined],
      [100_000, "none", "at-once"],
      [100_000, "none", "at-once"],
    ],
  );
});

test("an answer whose request can no longer be read is billed all the same", () => {
  const sketch = new Sketch("main").begin().say("user", "Go.").ask().answer(used(0, 5_000));
  const damaged = sketch.entries.filter(({ entry }) => entry.kind !== "request");
  const rows = ledgerOf([{ agent: "main", session: "main", entries: damaged }]);
  assert.deepEqual(
    rows.map(({ turn, usage, isAnswered }) => [turn, usage, isAnswered]),
    [[1, used(0, 5_000), true]],
  );
});

test("an interrupted request costs nothing that is known, and the next one expects what was there before", () => {
  const sketch = new Sketch("main").begin().say("user", "Go.").ask().answer(used(0, 5_000)).say("assistant", "Yes.");
  const rows = rowsOf(sketch.say("user", "On.").ask().say("user", "Again.").ask().answer(used(5_000, 40)));
  assert.deepEqual(
    rows.map(({ turn, isAnswered, expected, usage, cause }) => [turn, isAnswered, expected, usage, cause.kind]),
    [
      [1, true, 0, used(0, 5_000), "first-request"],
      [2, false, 5_000, noUsage, "none"],
      [3, true, 5_000, used(5_000, 40), "none"],
    ],
  );
});

test("a keep-alive is listed as a side request, and the entry it read lives on from there", () => {
  const sketch = new Sketch("main").begin().say("user", "Go.").ask().answer(used(0, 5_000)).say("assistant", "Yes.");
  sketch.later(4 * 60_000).answer(used(5_000, 0, { output: 0 }), { aside: true });
  const rows = rowsOf(
    sketch
      .later(4 * 60_000)
      .say("user", "On.")
      .ask()
      .answer(used(5_000, 40)),
  );
  assert.deepEqual(
    rows.map(({ kind, expected, cause }) => [kind, expected, cause.kind]),
    [
      ["turn", 0, "first-request"],
      ["aside", 5_000, "none"],
      ["turn", 5_000, "none"],
    ],
  );
});

const usage = fc.record({
  plain: fc.nat(9_999),
  read: fc.nat(99_999),
  written: fc.record({ "5m": fc.nat(9_999), "1h": fc.nat(9_999) }, { requiredKeys: [] }),
  output: fc.nat(999),
});

type Step =
  | { readonly kind: "turn" | "aside"; readonly usage: typeof noUsage }
  | { readonly kind: "broken-off" | "epoch" }
  | { readonly kind: "pause"; readonly ms: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ kind: fc.constantFrom("turn" as const, "aside" as const), usage }),
  fc.record({ kind: fc.constantFrom("broken-off" as const, "epoch" as const) }),
  fc.record({ kind: fc.constant("pause" as const), ms: fc.nat(900_000) }),
);

const written = (sketch: Sketch, steps: readonly Step[]): Sketch => {
  for (const [at, each] of steps.entries()) {
    if (each.kind === "pause") sketch.later(each.ms);
    else if (each.kind === "epoch") sketch.begin(head(), "compaction");
    else if (each.kind === "aside") sketch.answer(each.usage, { aside: true });
    else {
      sketch.say("user", `Words ${at}.`).ask();
      if (each.kind === "turn") sketch.answer(each.usage).say("assistant", `Answer ${at}.`);
    }
  }
  return sketch;
};

test("whatever journals say, the rows add up to exactly what they were billed, and none expects what nobody wrote", () => {
  fc.assert(
    fc.property(
      fc.array(step, { maxLength: 12 }),
      fc.array(fc.array(step, { maxLength: 6 }), { maxLength: 3 }),
      (main, forks) => {
        const parent = written(new Sketch("parent").begin(), main);
        const children = forks.map((steps, at) =>
          written(new Sketch(`child-${at}`, { parent: parent.pointer, from: parent.prefix }), steps),
        );
        const rows = rowsOf(parent, ...children);
        const billed = [parent, ...children].map(({ entries }) => replay(entries).usage).reduce(addUsage, noUsage);
        assert.deepEqual(rows.map((row) => row.usage).reduce(addUsage, noUsage), billed);
        for (const { expected, estimated, writtenBefore } of rows) {
          assert.ok(expected >= 0 && expected <= writtenBefore, "what is expected had been written");
          assert.ok(estimated >= 0 && estimated <= expected);
        }
      },
    ),
    { numRuns: 100 },
  );
});

test("a total miss after a request that wrote nothing has an expectation and a reason", () => {
  const sketch = new Sketch("main")
    .begin()
    .say("user", "Go.")
    .ask()
    .answer(used(0, 0, { plain: 5_000 }));
  sketch
    .say("assistant", "Yes.")
    .say("user", "On.")
    .later(1_000)
    .ask()
    .answer(used(0, 0, { plain: 5_100 }));
  sketch
    .say("assistant", "Yes.")
    .say("user", "On.")
    .later(900_000)
    .ask()
    .answer(used(0, 0, { plain: 5_200 }));
  sketch.say("assistant", "Yes.").say("user", "On.").later(1_000).ask().answer(used(5_200, 100));
  assert.deepEqual(
    rowsOf(sketch).map(({ expected, estimated, cause }) => [expected, estimated, cause]),
    [
      [0, 0, { kind: "first-request" }],
      [5_000, 5_000, { kind: "not-written", tokens: 5_000 }],
      [0, 0, { kind: "not-written", tokens: 5_100 }],
      [5_200, 5_200, { kind: "none" }],
    ],
  );
});

test("what another endpoint had cached, or a rehearsal that has ended, is not blamed on the provider", () => {
  const sketch = new Sketch("main", { address: "rehearsal:1" }).begin().say("user", "Go.").ask().answer(used(0, 5_000));
  const go = (): Sketch => sketch.say("assistant", "Yes.").say("user", "On.").later(1_000);
  go().ask().answer(used(5_000, 100));
  go().moved("rehearsal:2").ask().answer(used(0, 5_200));
  go().moved("https://one.example").ask().answer(used(0, 5_300));
  go().moved("https://two.example").ask().answer(used(0, 5_400));
  go().ask().answer(used(0, 5_500));
  assert.deepEqual(
    rowsOf(sketch).map(({ expected, cause }) => [expected, cause]),
    [
      [0, { kind: "first-request" }],
      [5_000, { kind: "none" }],
      [0, { kind: "rehearsal-ended" }],
      [0, { kind: "other-address", from: "the rehearsal engine", to: "https://one.example" }],
      [0, { kind: "other-address", from: "https://one.example", to: "https://two.example" }],
      [5_400, { kind: "unexplained" }],
    ],
  );
});
