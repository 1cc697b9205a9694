import assert from "node:assert/strict";
import { test } from "node:test";
import { type ImageBlock, text } from "@prefork/wire";
import fc from "fast-check";
import {
  type Budget,
  budgetFor,
  decideBatch,
  decideReplacement,
  type IncomingResult,
  ReplacementState,
  tokensOfBlocks,
} from "../../src/context/index.ts";

const picture: ImageBlock = { type: "image", source: { kind: "base64", mediaType: "image/png", data: "AA==" } };

const result = (toolUseId: string, bytes: number, tool = "Bash"): IncomingResult => ({
  ...{ toolUseId, tool, file: `/state/${toolUseId}.txt` },
  blocks: [text("0123456789abcde\n".repeat(bytes / 16))],
});

test("a result within its budget stays whole; a longer one becomes head, tail, counts and the path of the whole", () => {
  const budget: Budget = { result: 10_000, batch: 50_000 };
  assert.deepEqual(decideReplacement({ ...result("a", 35_008), budget: { ...budget, result: 10_003 } }), {
    kind: "whole",
  });
  const lines = Array.from({ length: 10_000 }, (_, line) => `line ${line}`).join("\n");
  const head = Array.from({ length: 456 }, (_, line) => `line ${line}`).join("\n");
  const tail = Array.from({ length: 200 }, (_, line) => `line ${9_800 + line}`).join("\n");
  assert.deepEqual(
    decideReplacement({ toolUseId: "a", tool: "Bash", blocks: [text(lines), picture], file: "/state/a.txt", budget }),
    {
      kind: "replaced",
      preview: [
        text(
          `[Too long to show whole: 98,889 bytes, 10,000 lines. All of it is in /state/a.txt: read parts of that file, or search it.]\n${head}\n[… 92,896 bytes, 9,344 lines left out …]\n${tail}`,
        ),
        picture,
      ],
      bytes: 98_889,
      file: "/state/a.txt",
    },
  );
});

test("a result that could not be kept in a file says so", () => {
  const { file: _, ...unkept } = result("a", 64_000);
  const decision = decideReplacement({ ...unkept, budget: budgetFor() });
  const [block] = decision.kind === "replaced" ? decision.preview : [];
  assert.match(
    block?.type === "text" ? block.text : "",
    /^\[Too long to show whole: 64,000 bytes, 4,000 lines\. The rest could not be kept; ask for less at a time\.\]\n/,
  );
});

test("images are counted and kept, and never replaced on their own", () => {
  assert.equal(tokensOfBlocks([picture, text("1234567")]), 1_602);
  const blocks = Array.from({ length: 20 }, () => picture);
  assert.deepEqual(decideReplacement({ toolUseId: "a", tool: "Read", blocks, budget: budgetFor() }), { kind: "whole" });
});

test("Read may return more than others, and a small window gives everybody less", () => {
  const kindOf = (tool: string, window?: number): string =>
    decideReplacement({ ...result("a", 64_000, tool), budget: budgetFor(window) }).kind;
  assert.deepEqual(
    [kindOf("Bash"), kindOf("Read"), kindOf("Read", 32_000), budgetFor(32_000)],
    ["replaced", "whole", "replaced", { result: 8_000, batch: 8_000, byTool: { Read: 8_000 } }],
  );
});

test("if a turn's results are too long together, the largest are replaced first, and of equal ones the earlier", () => {
  const budget: Budget = { result: 10_000, batch: 15_000 };
  const sizes = [16_000, 32_000, 24_000, 32_000, 1_600];
  const batch = sizes.map((bytes, at) => result(`id${at}`, bytes));
  const kinds = (limit: number): readonly string[] =>
    decideBatch(batch, { budget: { ...budget, batch: limit } }).map(({ kind }) => kind);
  const [whole, replaced] = ["whole", "replaced"];
  assert.deepEqual(
    [kinds(31_000), kinds(24_000), kinds(17_000), kinds(12_000), kinds(0)],
    [
      [whole, whole, whole, whole, whole],
      [whole, replaced, whole, whole, whole],
      [whole, replaced, whole, replaced, whole],
      [whole, replaced, replaced, replaced, whole],
      [replaced, replaced, replaced, replaced, whole], // a preview of the last one would be longer than itself
    ],
  );
});

const batches = fc.array(
  fc.array(
    fc.record({
      toolUseId: fc.constantFrom(..."abcdefghij".split(""), "__proto__"),
      tool: fc.constantFrom("Bash", "Read", "toString"),
      blocks: fc.array(
        fc.oneof(
          fc.constant(picture),
          fc
            .tuple(fc.string({ unit: "grapheme" }), fc.nat({ max: 3_000 }))
            .map(([unit, times]) => text(unit.repeat(times))),
        ),
        { maxLength: 3 },
      ),
    }),
    { maxLength: 6 },
  ),
  { maxLength: 5 },
);
const budgets = fc.record({ result: fc.nat({ max: 5_000 }), batch: fc.nat({ max: 8_000 }) });

test("a decision never changes: when repeated, in another batch, under another budget, in a clone", () => {
  fc.assert(
    fc.property(batches, budgets, budgets, (all, budget, other) => {
      const state = new ReplacementState();
      const first = new Map<string, unknown>();
      for (const batch of all) {
        const decisions = state.decide(batch, budget);
        for (const [at, { toolUseId }] of batch.entries()) {
          if (!first.has(toolUseId)) first.set(toolUseId, decisions[at]);
          assert.deepEqual(decisions[at], first.get(toolUseId));
        }
      }
      for (const asked of [state, state.clone()])
        for (const batch of all)
          assert.deepEqual(
            asked.decide(batch, other),
            batch.map(({ toolUseId }) => first.get(toolUseId)),
          );
    }),
    { numRuns: 60 },
  );
});

test("the same batch and budget give the same decisions, and a preview is never longer than what it replaces", () => {
  fc.assert(
    fc.property(batches, budgets, (all, budget) => {
      for (const batch of all) {
        const decisions = decideBatch(batch, { budget });
        assert.deepEqual(decideBatch(structuredClone(batch), { budget }), decisions);
        for (const [at, decision] of decisions.entries())
          if (decision.kind === "replaced")
            assert.ok(tokensOfBlocks(decision.preview) <= tokensOfBlocks(batch[at]?.blocks ?? []));
      }
    }),
    { numRuns: 60 },
  );
});

test("a clone knows what was decided before it, and later decisions stay separate", () => {
  const budget = budgetFor();
  const parent = new ReplacementState();
  parent.decide([result("before", 64_000)], budget);
  const clones = Array.from({ length: 12 }, (_, at) => {
    const child = parent.clone();
    parent.decide([result(`parent${at}`, 16)], budget);
    child.decide([result(`child${at}`, 64_000)], budget);
    return child;
  });
  const kindsIn = (state: ReplacementState, ids: readonly string[]): readonly (string | undefined)[] =>
    ids.map((id) => state.get(id)?.kind);
  const none = undefined;
  assert.deepEqual(kindsIn(parent, ["before", "parent0", "parent11", "child0", "child11"]), [
    ...["replaced", "whole", "whole", none, none],
  ]);
  assert.deepEqual(
    clones.slice(-1).map((clone) => kindsIn(clone, ["before", "parent10", "parent11", "child10", "child11"])),
    [["replaced", "whole", none, none, "replaced"]],
  );
});

test("what must be kept in a file is known before the decision, and only once", () => {
  const state = new ReplacementState();
  const batch = [result("a", 64_000), result("b", 1_600), result("c", 64_000)];
  assert.deepEqual(state.idsToKeep(batch, budgetFor()), ["a", "c"]);
  state.decide(batch, budgetFor());
  assert.deepEqual(state.idsToKeep([...batch, result("d", 64_000)], budgetFor()), ["d"]);
});
