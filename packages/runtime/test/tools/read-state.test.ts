import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { ReadState } from "../../src/tools/index.ts";

const bytes = (text: string): Buffer => Buffer.from(text);

test("a file is known as it was seen: unread, partly, whole, or changed since", () => {
  const reads = ReadState.empty();
  const content = bytes("a\nb\nc\n");
  const now = { version: "1", bytes: content };
  assert.deepEqual(reads.freshness("/f", now), { kind: "unread" });
  reads.recordRead("/f", { version: "1", bytes: content, lines: 3, range: [3, 3] });
  assert.deepEqual(reads.freshness("/f", now), { kind: "known", whole: false });
  reads.recordRead("/f", { version: "1", bytes: content, lines: 3, range: [1, 2] });
  assert.deepEqual(reads.freshness("/f", now), { kind: "known", whole: true });
  assert.deepEqual(reads.freshness("/f", { version: "2", bytes: content }), { kind: "known", whole: true });
  assert.deepEqual(reads.freshness("/f", { version: "2", bytes: bytes("x") }), { kind: "changed" });
});

test("what was seen of other content does not count for the new content", () => {
  const reads = ReadState.empty();
  reads.recordRead("/f", { version: "1", bytes: bytes("a\nb"), lines: 2, range: [1, 1] });
  reads.recordRead("/f", { version: "2", bytes: bytes("a\nc"), lines: 2, range: [2, 2] });
  assert.deepEqual(reads.get("/f")?.ranges, [[2, 2]]);
});

test("a partly known file stays partly known after an edit, however short it gets", () => {
  const reads = ReadState.empty();
  reads.recordRead("/f", { version: "1", bytes: bytes("long"), lines: 100, range: [1, 60] });
  reads.recordEdit("/f", { version: "2", bytes: bytes("short"), lines: 50 });
  assert.deepEqual(reads.freshness("/f", { version: "2", bytes: bytes("short") }), { kind: "known", whole: false });
  reads.recordEdit("/f", { version: "3", bytes: bytes("s"), lines: 1 });
  assert.deepEqual(reads.freshness("/f", { version: "3", bytes: bytes("s") }), { kind: "known", whole: false });
});

type Step = { readonly path: string; readonly text: string; readonly from: number; readonly length: number };

const steps = fc.array(
  fc.record({
    path: fc.constantFrom("/a", "/b", "/c"),
    text: fc.constantFrom("x", "y"),
    from: fc.integer({ min: 1, max: 9 }),
    length: fc.integer({ min: 0, max: 4 }),
  }),
);

const take = (reads: ReadState, { path, text, from, length }: Step): void =>
  reads.recordRead(path, { version: text, bytes: bytes(text), lines: 10, range: [from, from + length] });

test("clones share nothing that either can change, and JSON restores every state", () => {
  fc.assert(
    fc.property(steps, steps, steps, (before, ours, theirs) => {
      const parent = ReadState.empty();
      for (const step of before) take(parent, step);
      const fork = parent.clone();
      for (const step of ours) take(parent, step);
      const then = JSON.stringify(parent.toJson());
      for (const step of theirs) take(fork, step);
      assert.equal(JSON.stringify(parent.toJson()), then);
      const alone = ReadState.empty();
      for (const step of [...before, ...theirs]) take(alone, step);
      assert.deepEqual(fork.toJson(), alone.toJson());
      assert.deepEqual(ReadState.fromJson(JSON.parse(JSON.stringify(fork.toJson()))).toJson(), fork.toJson());
    }),
  );
});

test("ranges cover exactly the lines that were seen, sorted and joined", () => {
  fc.assert(
    fc.property(steps, (all) => {
      const reads = ReadState.empty();
      const same = all.map((step) => ({ ...step, path: "/a", text: "x" }));
      for (const step of same) take(reads, step);
      const ranges = reads.get("/a")?.ranges ?? [];
      const covered = ranges.flatMap(([from, to]) => Array.from({ length: to - from + 1 }, (_, at) => from + at));
      const seen = new Set(
        same.flatMap(({ from, length }) => Array.from({ length: length + 1 }, (_, at) => from + at)),
      );
      assert.deepEqual(
        covered,
        [...seen].sort((a, b) => a - b),
      );
      for (const [at, [from]] of ranges.entries()) assert.ok(at === 0 || from > (ranges[at - 1]?.[1] ?? 0) + 1);
    }),
  );
});

test("malformed entries of a journal are skipped", () => {
  const good = { path: "/f", version: "1", hash: "h", lines: 1, ranges: [[1, 1]] };
  const wrong = [null, 3, { path: "/g" }, { ...good, path: 1 }, { ...good, ranges: [[1]] }, { ...good, lines: -1 }];
  assert.deepEqual(ReadState.fromJson([...wrong, good]).toJson(), [good]);
  for (const value of [undefined, null, "x", {}]) assert.deepEqual(ReadState.fromJson(value).toJson(), []);
});
