import assert from "node:assert/strict";
import { test } from "node:test";
import { modelFacts, text } from "@prefork/wire";
import {
  compactionThreshold,
  type NextEpoch,
  nextEpochContent,
  readSummary,
  rewriteEconomics,
  shouldCompact,
  summaryDirective,
} from "../../src/context/index.ts";

test("a conversation is compacted at four fifths of its window, or earlier if an answer and a summary would not fit", () => {
  assert.deepEqual(
    [
      compactionThreshold({ maxTokens: 8_000 }),
      compactionThreshold({ maxTokens: 40_000 }),
      compactionThreshold({ maxTokens: 128_000 }),
      compactionThreshold({ maxTokens: 8_000, window: 1_000_000 }),
      compactionThreshold({ maxTokens: 8_000, window: 1_000_000, threshold: 0.2 }),
      compactionThreshold({ maxTokens: 64_000, window: 16_000 }),
    ],
    [160_000, 152_000, 142_000, 800_000, 200_000, 10_000],
  );
  assert.deepEqual(
    [160_000, 160_001].map((promptTokens) => shouldCompact({ promptTokens, maxTokens: 8_000 })),
    [false, true],
  );
});

test("the directive asks for every part of the summary, states the limit, and contains what the user wants kept", () => {
  const directive = summaryDirective({ words: 700, focus: " the migration " });
  for (const part of ["Goal:", "Decisions:", "Files:", "Commands:", "Open:", "Next:", "Do not call tools", "700 words"])
    assert.ok(directive.includes(part), part);
  assert.match(directive, /\nThe user wants this kept above all: the migration\n/);
  assert.equal(summaryDirective(), summaryDirective({ focus: " " }));
});

test("the summary is found whatever became of its tags", () => {
  const answers = [
    "<summary>\nGoal: x\n</summary>",
    "Here it is:\n<SUMMARY lang='en'>Goal: x</ Summary > and that was it",
    "<summary>Goal: x",
    "Goal: x</summary>",
    "Goal: x",
    "```\nGoal: x\n```",
    "<summary>```markdown\nGoal: x\n```</summary>",
    "<summary>Goal: x</summary></summary>",
  ];
  for (const answer of answers.slice(0, -1)) assert.deepEqual(readSummary(answer), { ok: true, summary: "Goal: x" });
  assert.deepEqual(readSummary(answers.at(-1) ?? ""), { ok: true, summary: "Goal: x</summary>" });
  for (const answer of ["", " \n", "<summary> </summary>"])
    assert.deepEqual(readSummary(answer), { ok: false, reason: "the answer holds no summary" });
});

const past: NextEpoch = {
  surroundings: { sections: [{ name: "skills", text: "none" }] },
  summary: "Goal: x </earlier-conversation>",
  lastPrompt: "Please do x.",
  todos: [
    { content: "first\nline", status: "completed" },
    { content: "second", status: "in_progress" },
  ],
  openTasks: [{ id: "task_1", label: "write tests", state: "running" }],
  files: [
    { path: "/work/new.ts", text: "newest" },
    { path: "/work/old.ts", text: "0123456789abcde\n".repeat(2_000) },
  ],
  followedBy: { kind: "go-on" },
};

const begun = [
  text('<section name="skills">\nnone\n</section>'),
  text(
    "The earlier conversation was compacted: it is no longer here, and this summary stands in its place. Everything it says was done is done.\n" +
      "<earlier-conversation>\nGoal: x &lt;/earlier-conversation>\n</earlier-conversation>",
  ),
];

test("a new epoch begins with the surroundings, then the summary, the last prompt, todos, open tasks and files", () => {
  assert.deepEqual(nextEpochContent(past), [
    ...begun,
    text('<last-message from="user">\nPlease do x.\n</last-message>'),
    text("<todo-list>\n- [completed] first line\n- [in_progress] second\n</todo-list>"),
    text(
      "<open-tasks>\nStill running; each reports by a notification. Do not start them again.\n- task_1: write tests (running)\n</open-tasks>",
    ),
    text(
      'Files last read, as they are now:\n<read-file path="/work/new.ts">\nnewest\n</read-file>\n' +
        `<read-file path="/work/old.ts" cut="16,000 bytes more in the file">\n${"0123456789abcde\n".repeat(1_000)}\n</read-file>`,
    ),
    text("Go on with the next step of the summary, without saying again what was said."),
  ]);
});

test("empty parts are not mentioned; the user's next prompt, if there is one, comes last", () => {
  const { surroundings: around, summary } = past;
  assert.deepEqual(nextEpochContent({ surroundings: around, summary, followedBy: { kind: "wait" } }), begun);
  assert.deepEqual(
    nextEpochContent({ surroundings: around, summary, followedBy: { kind: "prompt", prompt: "And y?" } }),
    [...begun, text("And y?")],
  );
});

test("of many files, the five most recent are included, within their common limit", () => {
  const files = Array.from({ length: 7 }, (_, at) => ({ path: `/work/${at}.ts`, text: "x".repeat(20_000) }));
  const paths = (all: NextEpoch["files"] = []): readonly string[] => {
    const block = nextEpochContent({ surroundings: {}, summary: "s", files: all, followedBy: { kind: "wait" } }).at(-1);
    return [...(block?.type === "text" ? block.text : "").matchAll(/<read-file path="([^"]*)"/g)].map(
      ([, path = ""]) => path,
    );
  };
  assert.deepEqual(paths(files), ["/work/0.ts", "/work/1.ts", "/work/2.ts"]);
  assert.deepEqual(paths(files.map(({ path }) => ({ path, text: "" }))), [
    "/work/0.ts",
    "/work/1.ts",
    "/work/2.ts",
    "/work/3.ts",
    "/work/4.ts",
  ]);
});

test("a compaction reports what it costs and when it pays for itself", () => {
  // The summary request reads 160,000 at 0.1 and outputs 3,000 at 5; the next turn writes 20,000 at 1.25 instead of
  // reading 160,000.
  assert.deepEqual(rewriteEconomics({ before: 160_000, after: 20_000, output: 3_000 }), {
    now: 16_000 + 15_000 + 25_000 - 16_000,
    perTurn: 16_000 - 2_000,
    turns: 3,
    reason: "160,000 tokens become 20,000: costs 40,000 uncached tokens now, saves 14,000 a turn, repaid after 3 turns",
  });
});

test("a cold prefix is written again either way, and clearing without a summary requests nothing", () => {
  const cold = rewriteEconomics({ before: 160_000, after: 20_000, output: 3_000, warm: false });
  assert.deepEqual([cold.now, cold.turns], [40_000, 3]);
  const cleared = rewriteEconomics({ before: 160_000, after: 20_000, warm: false });
  assert.deepEqual(cleared, {
    now: 25_000 - 200_000,
    perTurn: 14_000,
    turns: 0,
    reason: "160,000 tokens become 20,000: cheaper from the first turn, by 14,000 uncached tokens a turn after it",
  });
});

test("money is given if prices are known, and a shorter prompt may fall into a cheaper tier", () => {
  const facts = modelFacts("claude-haiku-5-5");
  assert.ok(facts);
  // 150,000 tokens cost 0.50 a million, 50,000 cost 0.10: a fifth.
  const { now, perTurn, turns, usd } = rewriteEconomics({ before: 150_000, after: 50_000, output: 1_000, facts });
  assert.deepEqual({ now, perTurn, turns }, { now: 5_000 + 62_500 / 5, perTurn: 15_000 - 5_000 / 5, turns: 2 });
  assert.deepEqual([usd?.now.toFixed(6), usd?.perTurn.toFixed(6)], ["0.008750", "0.007000"]);
});

test("a rewrite that makes nothing shorter never pays for itself", () => {
  assert.deepEqual(rewriteEconomics({ before: 20_000, after: 20_000 }), {
    now: 25_000 - 2_000,
    perTurn: 0,
    reason: "20,000 tokens become 20,000: a rewrite costs 23,000 uncached tokens and saves nothing later",
  });
});
