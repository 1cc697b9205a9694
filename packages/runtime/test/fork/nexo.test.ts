/** Keeps the table of nexo.md up to date: every claim has a row, and every test that a row names exists. Also tests the few
 *  claims that belong to no other file. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { classify, memoryOnly } from "@prefork/guard";
import { scratch } from "@prefork/testing/scratch";
import { noUsage } from "@prefork/wire";
import { notificationOf, TASK_ENDS, type Task } from "../../src/tasks/index.ts";

const ROOT = new URL("../../../../", import.meta.url);

const range = (letter: string, last: number): readonly string[] =>
  Array.from({ length: last }, (_, at) => `${letter}${at + 1}`);

const CLAIMS = [...range("F", 62), ...range("N", 5), ...range("X", 15), "X21"];

type Row = { readonly id: string; readonly file: string; readonly named: string };

/** A bar inside a cell is escaped; double code marks stand around what is a row of a table. */
const rowsIn = (table: string): readonly Row[] =>
  table
    .split("\n")
    .filter((line) => /^\| [A-Z]\d+ \|/.test(line))
    .map((line) => {
      const [, id = "", , file = "", named = ""] = line.split(/(?<!\\)\|/).map((cell) => cell.trim());
      return { id, file: file.replaceAll("`", ""), named: named.replaceAll("\\|", "|") };
    });

const isIn = (source: string, named: string): boolean => {
  const row = /^`` (.*) ``$/.exec(named)?.[1];
  if (row !== undefined) return source.includes(row);
  return source.includes(`test(${JSON.stringify(named)}`) || source.includes(`test(\`${named}\``);
};

test("every claim has a row, in order, and every test that a row names exists in its file", () => {
  const rows = rowsIn(readFileSync(fileURLToPath(new URL("nexo.md", import.meta.url)), "utf8"));
  assert.deepEqual([...new Set(rows.map(({ id }) => id))], CLAIMS);
  const missing = rows.filter(({ file, named }) => !isIn(readFileSync(new URL(file, ROOT), "utf8"), named));
  assert.deepEqual(missing, []);
});

test("a denial in a memory run names the folder and what is allowed instead", () => {
  using place = scratch();
  const filter = memoryOnly(place.path);
  const instead = `Here you may read with Read, Glob, Grep and read-only Bash, and write only files inside ${place.path}`;
  const denied = (tool: string, args: Readonly<Record<string, string>>): string => {
    const verdict = filter({ tool, args }, { classify });
    return verdict.allowed ? "" : verdict.reason;
  };
  const reasons = [
    denied("Edit", { file_path: "/etc/hosts", old_string: "a", new_string: "b" }),
    denied("Bash", { command: "rm x" }),
    denied("SendMessage", { to: "x", message: "y" }),
  ];
  for (const reason of reasons) assert.ok(reason.endsWith(`. ${instead}`), reason);
});

test("each end is reported by its own name, and one without a duration reports no usage", () => {
  const result = { summary: "s", text: "t", usage: { ...noUsage, plain: 5 }, usd: 1, turns: 1, toolUses: 2, ms: 0 };
  const task: Omit<Task, "state"> = {
    ...{ id: "task-1", kind: "fork", label: "l", agentType: "fork", querySource: "q", family: "task-1", startedAt: 0 },
    result,
  };
  for (const end of TASK_ENDS)
    assert.deepEqual(notificationOf("notice-1", { ...task, state: { kind: "ended", end } }), {
      ...{ id: "notice-1", task: "task-1", label: "l", status: end, summary: "s", result: "t" },
    });
});
