import assert from "node:assert/strict";
import { test } from "node:test";
import { run } from "../src/main.ts";
import { captured } from "./captured.ts";

/** The parts of `demo --json` that the promises cover. */
type Row = {
  readonly label: string;
  readonly inheritable: number;
  readonly promptTokens: number;
  readonly read: number;
  readonly plain: number;
  readonly written: { readonly "5m": number; readonly "1h": number };
  readonly billed: { readonly inputUnits: number };
};
type Demo = {
  readonly prefix: number;
  readonly tail: number;
  readonly launch: { readonly launch: string };
  readonly children: readonly Row[];
  readonly parentNext: Row;
};

const demo = async (argv: readonly string[]): Promise<Demo> => {
  const io = captured();
  assert.equal(await run(["demo", "--json", ...argv], io), 0, io.errors());
  return JSON.parse(io.text()) as Demo;
};

const WRITE = 1.25;
const READ = 0.1;

/** The lowest possible bill for a family with these blocks, over both ways to launch it, calculated by hand: write 1.25,
 *  read 0.1, D uncached because each child answers once, the parent's note cached because its conversation continues. */
const cheapest = ({ prefix, tail, children, parentNext }: Demo, cold: boolean, trim: boolean): number => {
  const own = children.reduce((sum, { plain }) => sum + plain, 0);
  const note = parentNext.promptTokens - prefix - tail;
  const readers = children.length + 1;
  const shared = trim ? prefix : prefix + tail;
  const first = cold ? WRITE * shared : READ * prefix + WRITE * (shared - prefix);
  const parentsOwn = WRITE * (note + (trim ? tail : 0));
  const leaderFirst = first + (readers - 1) * READ * shared;
  const atOnce = readers * first;
  return own + parentsOwn + Math.min(leaderFirst, atOnce);
};

for (const forks of [1, 5, 20, 50]) {
  for (const cold of [false, true]) {
    for (const way of ["keep", "trim"]) {
      for (const lookback of ["runs", "singly"]) {
        const words = `${forks} ${cold ? "cold" : "warm"} ${way} ${lookback}`;
        test(`every request of a family reads what it can, at the cheapest plan's price: ${words}`, async () => {
          const trim = way === "trim";
          const result = await demo([
            ...["--forks", String(forks), "--in-flight", way, "--lookback", lookback],
            ...(cold ? ["--cold"] : []),
          ]);
          const { prefix, tail, children, parentNext } = result;
          assert.equal(children.length, forks);
          const afterLeader = trim ? prefix : prefix + tail;
          const waited = result.launch.launch === "leader-first";
          assert.equal(waited, cold || !trim, "at once only where there is nothing to wait for");
          const inheritable = children.map((_, index) => (waited && index > 0 ? afterLeader : cold ? 0 : prefix));
          children.forEach(({ read }, index) => {
            assert.ok(read >= 0.995 * (inheritable[index] ?? 0), `child ${index} read ${read}`);
          });
          assert.ok(parentNext.read >= 0.995 * (waited ? afterLeader : prefix), `the parent read ${parentNext.read}`);
          const paid = [...children, parentNext].reduce((sum, { billed }) => sum + billed.inputUnits, 0);
          const least = cheapest(result, cold, trim);
          assert.ok(paid <= 1.01 * least, `paid ${paid}, cheapest ${least}`);
        });
      }
    }
  }
}

test("the table names every request and the bills it is compared with", async () => {
  const io = captured();
  assert.equal(await run(["demo", "--forks", "2"], io), 0);
  const lines = io.text().split("\n");
  for (const label of [
    "fork 1 (leader)",
    "fork 2",
    "parent's next",
    "▸ this family",
    "  cheapest plan (warm, leader first)",
    "  cold, all at once",
    "  no cache",
  ]) {
    assert.equal(lines.filter((line) => line.startsWith(label)).length, 1, label);
  }
  assert.ok(!io.text().includes("\u001b"), "no colour where there is no terminal");
  assert.equal(io.errors(), "", "no progress line where there is no terminal");
});

test("on a terminal there are colours, and a progress line that is gone at the end", async () => {
  const io = captured({ colour: true, isTerminal: true });
  assert.equal(await run(["demo", "--forks", "2"], io), 0);
  assert.ok(io.text().includes("\u001b[32m"));
  assert.match(io.errors(), /parent: turn 5 of 5.*family: 3 of 3 requests answered/s);
  assert.ok(io.errors().endsWith("\r\u001b[2K"));
});

test("wrong flags are a usage error of one line", async () => {
  const wrong: readonly (readonly [readonly string[], RegExp])[] = [
    [["--forks", "0"], /option '--forks <n>' argument '0' is invalid\. Expected a whole number from 1 to 1000\.$/],
    [
      ["--in-flight", "drop"],
      /option '--in-flight <way>' argument 'drop' is invalid\. Allowed choices are keep, trim\.$/,
    ],
    [["--model", "gpt-2"], /option '--model': the prices of "gpt-2" are unknown$/],
    [["--frok"], /unknown option '--frok'/],
    [["extra"], /too many arguments/],
  ];
  for (const [argv, message] of wrong) {
    const io = captured();
    assert.equal(await run(["demo", ...argv], io), 2, argv.join(" "));
    assert.match(io.errors().trimEnd(), message);
    assert.equal(io.errors().trimEnd().split("\n").length, 1);
    assert.equal(io.text(), "");
  }
});
