/** Tables and figures as people read them, on terminals of every width. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { run } from "../src/main.ts";
import { formatMoney } from "../src/numbers.ts";
import { prose, renderTable, type Table } from "../src/table.ts";
import { widthOf } from "../src/width.ts";
import { captured } from "./captured.ts";

const table: Table = {
  columns: [
    { title: "task" },
    { title: "state" },
    { title: "label" },
    { title: "tokens", align: "right" },
    { title: "cost", align: "right" },
  ],
  rows: [
    { cells: ["0a1b2c3d4e", "running", "統計の計算を直して、テストを追加する", "31,390", "$0.0829"], mark: "best" },
    { cells: ["5f60718293", "done", "rewrite the parser and its tests in one go", "7", "$0.0001"] },
  ],
};

test("a table without a terminal is as wide as its texts, and wide letters take two columns", () => {
  assert.equal(
    renderTable(table),
    `  task        state    label                                       tokens     cost
  ────────────────────────────────────────────────────────────────────────────────
▸ 0a1b2c3d4e  running  統計の計算を直して、テストを追加する        31,390  $0.0829
  5f60718293  done     rewrite the parser and its tests in one go       7  $0.0001
`,
  );
});

test("on a narrow terminal texts are cut and figures are not", () => {
  assert.equal(
    renderTable({ ...table, width: 60 }),
    `  task        state    label                 tokens     cost
  ──────────────────────────────────────────────────────────
▸ 0a1b2c3d4e  running  統計の計算を直して…   31,390  $0.0829
  5f60718293  done     rewrite the parser …       7  $0.0001
`,
  );
});

test("where cutting is not enough, each row is a list of its cells", () => {
  assert.equal(
    renderTable({ ...table, width: 40 }),
    `▸
task    0a1b2c3d4e
state   running
label   統計の計算を直して、テストを追加
        する
tokens  31,390
cost    $0.0829

task    5f60718293
state   done
label   rewrite the parser and its tests
        in one go
tokens  7
cost    $0.0001
`,
  );
});

test("on a narrow terminal the least important column is dropped first, and texts stay whole", () => {
  const columns = [
    { title: "agent" },
    { title: "at", dispensable: 1 },
    { title: "cost", align: "right" },
    { title: "reason", dispensable: 2 },
  ] as const;
  const rows = [{ cells: ["main", "0:00", "$0.02", "first request"] }];
  const rendered = (width: number): string => renderTable({ columns, rows, rule: false, width });
  assert.deepEqual(
    [rendered(33), rendered(32), rendered(12)],
    [
      "agent  at     cost  reason\nmain   0:00  $0.02  first request\n",
      "agent   cost  reason\nmain   $0.02  first request\n",
      "agent   cost\nmain   $0.02\n",
    ],
  );
});

test("every line of demo, cost and doctor fits into 80 and into 40 columns", async () => {
  const before = process.env.COLUMNS;
  try {
    for (const columns of [80, 40])
      for (const argv of [["demo"], ["cost", "--prefix", "100k", "--forks", "5"], ["doctor"]]) {
        process.env.COLUMNS = String(columns);
        const io = captured({ env: { HOME: "/家/統計の計算/とても長い名前のフォルダーがここにある" } });
        await run(argv, io);
        const lines = io.text().split("\n");
        const tooWide = lines.filter((line) => widthOf(line) > columns);
        assert.deepEqual(tooWide, [], `${argv.join(" ")} in ${columns} columns`);
        assert.ok(lines.length > 10, io.errors());
      }
  } finally {
    if (before === undefined) delete process.env.COLUMNS;
    else process.env.COLUMNS = before;
  }
});

test("a sentence is broken between words where there is a width, and styled line by line", () => {
  const text = "統計の計算を直して、 テストを追加する once more";
  assert.equal(prose(text, {}), text);
  assert.equal(prose(text, { width: 22, indent: "  " }), "統計の計算を直して、\n  テストを追加する\n  once more");
  assert.equal(
    prose("one two", { width: 4, style: "bold", colour: true }),
    "\u001b[1mone\u001b[22m\n\u001b[1mtwo\u001b[22m",
  );
});

test("money is rounded, with its sign first, and little is not nothing", () => {
  assert.deepEqual(
    [0.021937400000000003, 0, 12.3456, 1234.5, 0.1 + 0.2, -0.0012, 0.000_000_01].map((usd) => formatMoney(usd)),
    ["$0.0219", "$0.00", "$12.35", "$1,234.50", "$0.300", "-$0.00120", "<$0.000001"],
  );
});
