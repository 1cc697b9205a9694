import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { run } from "../src/main.ts";
import { KEYS } from "../src/tui/commands/help.ts";
import { captured } from "./captured.ts";

const readme = readFileSync(new URL("../../../README.md", import.meta.url), "utf8");
const rows = [...readme.matchAll(/^\| (\d+) \| (warm|cold) \| ([\d,]+) \| ([\d,]+) \| ([\d,]+) \| ([\d.]+) × \|$/gm)];

test("the README's measured table is what the demo prints", async () => {
  assert.equal(rows.length, 5);
  for (const [line, forks = "", state, ...cells] of rows) {
    const io = captured();
    await run(["demo", "--json", "--forks", forks, ...(state === "cold" ? ["--cold"] : [])], io);
    const { bills } = JSON.parse(io.text()) as {
      bills: { family: { units: number }; overCheapest: number; others: { id: string; bill: { units: number } }[] };
    };
    const planned = (id: string): number => bills.others.find((other) => other.id === id)?.bill.units ?? Number.NaN;
    const figure = (units: number): string => Math.round(units).toLocaleString("en-US");
    const printed = [figure(bills.family.units), figure(planned("no-cache")), figure(planned("cold-at-once"))];
    assert.deepEqual(cells, [...printed, bills.overCheapest.toFixed(3)], line);
  }
});

test("docs/terminal.md lists the keys of the terminal's help page", () => {
  const page = readFileSync(new URL("../../../docs/terminal.md", import.meta.url), "utf8");
  const table = /^\| keys \| what they do \|\n\|---\|---\|\n((?:\|.*\n)+)/m.exec(page)?.[1] ?? "";
  assert.deepEqual(
    table.trimEnd().split("\n"),
    KEYS.map(([keys, what]) => `| ${keys} | ${what} |`),
    "copy the list KEYS of packages/cli/src/tui/commands/help.ts into the table of docs/terminal.md",
  );
});
