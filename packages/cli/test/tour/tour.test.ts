/** `prefork tour` as a new user runs it: in its own process, with real tools, real forks, and nothing left behind. */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { statSync } from "node:fs";
import { test } from "node:test";
import type { Explanation, RequestRow } from "@prefork/runtime/observe";
import { addUsage, noUsage, promptTokens, type Usage, writtenTokens } from "@prefork/wire";
import { sampleOf } from "../../src/tour/sample.ts";
import type { Ran } from "../print/ground.ts";
import { openTourGround } from "./tour-ground.ts";

/** The parts of `--json` that the promises cover. */
type Tour = Explanation & {
  readonly engine: { readonly name: string; readonly isLanguageModel: boolean };
  readonly sample: { readonly seed: number; readonly facts: unknown };
  readonly repository: { readonly files: number };
  readonly session: string;
  readonly forks: readonly {
    readonly area: string;
    readonly task: string;
    readonly state: object;
    readonly tools: readonly string[];
    readonly firstRequest: { readonly expected: number; readonly read: number };
    readonly report: { readonly kind: string; readonly report: { readonly scope: string; readonly result: string } };
  }[];
  readonly answer: string;
  readonly spent: { readonly usage: Usage; readonly usd: number };
  readonly rows: readonly RequestRow[];
  readonly billed: { readonly requests: number; readonly usage: Usage };
  readonly kept: { readonly folder: string; readonly stateHome: string } | null;
};

const tourIn = ({ code, out, err }: Ran): Tour => {
  assert.deepEqual([code, err], [0, ""]);
  return JSON.parse(out) as Tour;
};

const AREAS = ["schema", "service", "router", "tests", "docs"];

const parts = (usage: Usage) => ({
  ...{ read: usage.read, written: writtenTokens(usage), plain: usage.plain, output: usage.output },
});

test("five forks report what was planted, read all they could, and every sum agrees", async () => {
  await using ground = await openTourGround();
  const tour = tourIn(await ground.tour("--json", "--seed", "3").ended);
  const { facts, files } = sampleOf(3);
  assert.deepEqual(
    [tour.engine.name, tour.engine.isLanguageModel, tour.sample.seed, tour.sample.facts, tour.repository.files],
    ["rehearsal", false, 3, facts, files.size],
  );
  assert.deepEqual(
    tour.forks.map(({ area, state, tools, report }) => ({ area, state, tools, kind: report.kind })),
    [
      ["Grep", "Grep"],
      ["Read", "Grep"],
      ["Grep", "Bash"],
      ["Glob", "Grep"],
      ["Bash", "Grep"],
    ].map((tools, at) => ({
      ...{ area: AREAS[at], state: { kind: "ended", end: "reported" }, tools, kind: "report" },
    })),
  );
  const results = tour.forks.map(({ report }) => report.report.result);
  const found: readonly (readonly string[])[] = [
    [`${facts.schema.tables} lines in`, facts.schema.deprecated],
    [`${facts.service.todos} matching lines in`, facts.service.failing],
    [`${facts.router.routes} lines in`, `"${facts.router.repeated.replace(" ", '", "')}"`, "1 match more than once"],
    [`${facts.tests.files} files`, facts.tests.skipped],
    ["32 files in 5 folders", facts.docs.unfinished],
  ];
  for (const [at, texts] of found.entries())
    for (const text of texts) assert.ok(results[at]?.includes(text), `${text} stands in\n${results[at]}`);
  for (const { report } of tour.forks) assert.match(report.report.scope, /no language model is behind this answer/);
  assert.match(tour.answer, /^\[rehearsal engine: no language model is behind this answer\]/);

  const [first] = tour.rows;
  assert.ok(first && promptTokens(first.usage) >= 8_000, "the parent's prompt is worth caching");
  assert.deepEqual(
    tour.forks.map(({ firstRequest }) => firstRequest.read),
    tour.forks.map(({ firstRequest }) => firstRequest.expected),
  );
  assert.ok(tour.forks.every(({ firstRequest }) => firstRequest.read >= promptTokens(first.usage)));
  const summed = tour.rows.reduce((sum, { usage }) => addUsage(sum, usage), noUsage);
  assert.deepEqual(
    [parts(summed), parts(tour.billed.usage), parts(tour.spent.usage)],
    Array(3).fill(parts(tour.total.usage)),
  );
  assert.deepEqual([tour.rows.length, tour.billed.requests, tour.total.requests], [18, 18, 18]);
  assert.equal(tour.total.usd?.toFixed(9), tour.spent.usd.toFixed(9));
  assert.deepEqual([tour.misses, tour.kept, ground.left()], [[], null, []]);
  assert.equal(ground.simulator.requests().length, 0, "no key and no endpoint of the user's is used");
});

test("the text output is short, says what it is, and shows every request with the totals", async () => {
  await using ground = await openTourGround();
  const { code, out, err } = await ground.tour().ended;
  assert.deepEqual([code, err, ground.left()], [0, "", []]);
  const lines = out.split("\n").slice(0, -1);
  assert.ok(lines.length <= 85, `${lines.length} lines`);
  assert.deepEqual(
    lines.filter((line) => [...line].length > 100),
    [],
  );
  assert.ok(!out.includes("\u001b"));
  const order = [
    /^A real agent and five forks in a sample repository$/,
    / No language model/,
    / claude-sonnet-5, billed by a/,
    /^ {2}1\. Schema: Count /,
    /^ {2}Docs +reported after 3 turns: Bash, Grep$|^ {2}\w+ +reported after 3 turns: /,
    ...["Schema", "Service", "Router", "Tests", "Docs"].map(
      (name) => new RegExp(`^${name} reported: two calls, \\$0\\.`),
    ),
    /^The parent's last answer, in short: \[rehearsal engine: no language model is behind this answer\]/,
    /^agent +turn +at +expected +read +written +uncached +output +cost +miss reason$/,
    /^main +1 .* first request$/,
    /^Each fork's first request read from the cache all it could \(leader [\d,]+ of [\d,]+, followers [\d,]+$/,
    /^18 requests: .* the simulator's ledger$/,
    /^▸ five forks +18 +\d+\.\d s +\$0\.\d+ +1\.00 ×$/,
    /^ {2}a fresh sub-agent each +18 +\d+\.\d s +\$0\.\d+ +[12]\.\d\d ×$/,
    /^ {2}one part after another +11 +\d+\.\d s +\$0\.\d+ +0\.\d\d ×$/,
    /^ {2}forks without a cache +18 +\d+\.\d s +\$0\.\d+ +[3-9]\.\d\d ×$/,
    /^Next:$/,
    /^npx prefork -p "Count files per folder"$/,
    /^npx prefork explain$/,
    /^npx prefork demo$/,
  ];
  let from = 0;
  for (const pattern of order) {
    const at = lines.findIndex((line, index) => index >= from && pattern.test(line));
    assert.ok(at >= from, `${pattern} follows in\n${lines.slice(from).join("\n")}`);
    from = at + 1;
  }
  const table = lines.slice(lines.findIndex((line) => line.startsWith("────")) + 1);
  const agents = table.slice(0, table.indexOf("")).map((line) => line.split(" ", 1)[0]);
  assert.deepEqual(
    agents.toSorted(),
    ["Docs", "Router", "Schema", "Service", "Tests", "main"].flatMap((name) => [name, name, name]),
  );
});

test("a kept tour can be explained with the command that it prints", async () => {
  await using ground = await openTourGround();
  await using other = await openTourGround();
  const printed = other.tour("--keep", "--forks", "1").ended;
  const tour = tourIn(await ground.tour("--json", "--keep", "--forks", "2").ended);
  assert.deepEqual(
    tour.forks.map(({ area }) => area),
    ["schema", "service"],
  );
  assert.ok(tour.kept);
  const { folder, stateHome } = tour.kept;
  assert.deepEqual([ground.left().length, statSync(folder).mode & 0o777], [1, 0o700]);
  const explained = await ground.start(["explain", tour.session, "--json"], { env: { XDG_STATE_HOME: stateHome } })
    .ended;
  const { rows, total, cwd } = JSON.parse(explained.out) as Tour & { readonly cwd: string };
  assert.deepEqual([rows, total], [tour.rows, tour.total]);
  const status = execFileSync("git", ["status", "--short"], {
    cwd,
    env: { PATH: ground.env.PATH ?? "" },
    encoding: "utf8",
  });
  assert.deepEqual([status, cwd.startsWith(folder)], ["", true], "nothing was changed by looking");
  const { out } = await printed;
  assert.match(
    out,
    /^XDG_STATE_HOME=\/\S+ npx prefork explain [0-9a-f]+\n# forks.*\nnpx prefork demo\n\nKept in \/\S+: /m,
  );
  assert.match(out, /^A real agent and one fork in /);
});

test("a fork cannot start a tour, and wrong flags are a usage error of one line", async () => {
  await using ground = await openTourGround();
  const lineage = await ground.prefork(["tour"], { env: { PREFORK_LINEAGE: "fork:1" } });
  assert.deepEqual(lineage, {
    ...{
      code: 2,
      out: "",
      err: "prefork: a fork started this command, and a fork may not start agents: it does its work itself\n",
    },
  });
  const wrong: readonly (readonly [readonly string[], RegExp])[] = [
    [
      ["--forks", "6"],
      /^prefork: option '--forks <n>' argument '6' is invalid\. Expected a whole number from 1 to 5\.\n$/,
    ],
    [["--seed", "-1"], /^prefork: option '--seed <n>' argument '-1' is invalid\. .* from 0 to 4294967295\.\n$/],
    [["more"], /^prefork: too many arguments.*\n$/],
  ];
  for (const [flags, message] of wrong) {
    const { code, out, err } = await ground.prefork(["tour", ...flags]);
    assert.deepEqual([code, out], [2, ""]);
    assert.match(err, message);
  }
});
