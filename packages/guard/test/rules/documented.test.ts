/** Every example in the document is a test: its tables are read by their headings. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { contextOf, place, ROOT } from "@prefork/testing/policies";
import type { ToolCall } from "../../src/rules/call.ts";
import { decide } from "../../src/rules/decide.ts";
import { notesFor } from "../../src/rules/notes.ts";
import type { Mode } from "../../src/rules/policy.ts";
import { describeProblem, parseSettings } from "../../src/rules/settings.ts";

const lines = readFileSync(new URL("../../../../docs/permissions.md", import.meta.url), "utf8").split("\n");

const cellsOf = (line: string): readonly string[] =>
  line
    .split(/(?<!\\)\|/)
    .slice(1, -1)
    .map((cell) => cell.trim().replaceAll("\\|", "|"));

/** The rows below every heading row with exactly these cells. */
const rowsUnder = (...heading: readonly string[]): readonly (readonly string[])[] => {
  const rows = lines.flatMap((line, at) => {
    if (cellsOf(line).join("|") !== heading.join("|")) return [];
    const end = lines.findIndex((next, index) => index > at && !next.startsWith("|"));
    return lines.slice(at + 2, end).map(cellsOf);
  });
  assert.ok(rows.length > 0, `the document has no table ${heading.join(", ")}`);
  return rows;
};

const code = (cell: string | undefined): string => /^`(.*)`$/s.exec(cell ?? "")?.[1] ?? (cell as string);

const SUBJECTS: Readonly<Record<string, string>> = { Bash: "command", WebFetch: "url", Grep: "path", Glob: "path" };

const callOf = (cell: string | undefined): ToolCall => {
  const [, tool = "", subject] = /^(\S+)(?: (.*))?$/s.exec(code(cell)) ?? [];
  return { tool, args: subject === undefined ? {} : { [SUBJECTS[tool] ?? "file_path"]: subject } };
};

test("each mode answers as its table says", () => {
  for (const [mode, call, answer] of rowsUnder("mode", "call", "answer")) {
    const decision = decide(callOf(call), contextOf({}, { mode: mode as Mode }));
    assert.equal(decision.kind, answer, `${mode}: ${call}: ${decision.reason}`);
  }
});

test("each rule answers as its table says", () => {
  for (const [rules = "", call, answer] of rowsUnder("rules", "call", "answer")) {
    const flags: Record<"allow" | "ask" | "deny", string[]> = { allow: [], ask: [], deny: [] };
    for (const [, list, rule = ""] of rules.matchAll(/(\w+) `([^`]+)`/g)) flags[list as "allow"].push(rule);
    const decision = decide(callOf(call), contextOf(flags));
    assert.equal(decision.kind, answer, `${rules}: ${call}: ${decision.reason}`);
  }
});

test("each question suggests the rule of its table, and that rule then allows the call", () => {
  for (const [cell, suggested] of rowsUnder("call", "suggested rule")) {
    const call = callOf(cell);
    const decision = decide(call, contextOf());
    assert.equal(decision.kind, "ask", `${cell}: ${decision.reason}`);
    const rule = decision.kind === "ask" ? decision.rule : undefined;
    assert.equal(rule, suggested === "none" ? undefined : code(suggested), cell);
    if (rule !== undefined) assert.equal(decide(call, contextOf({ allow: [rule] })).kind, "allow", rule);
  }
});

test("each command has the warning of its table", () => {
  for (const [cell, warning = ""] of rowsUnder("command", "warning")) {
    const notes = notesFor(code(cell), { roots: [ROOT] });
    if (warning === "none") assert.deepEqual(notes, [], cell);
    else assert.ok(notes.includes(warning), `${cell}: ${notes.join("; ")}`);
  }
});

test("each broken file has the error of its table", () => {
  for (const [file, error] of rowsUnder("file", "error")) {
    const read = parseSettings(code(file), { ...place, name: "settings.json", layer: "user" });
    assert.deepEqual(read.kind === "broken" ? read.problems.map(describeProblem) : read, [code(error)], file);
  }
});

test("the settings file in the documentation is valid", () => {
  const text = lines.join("\n");
  const blocks = [...text.matchAll(/```jsonc\n(.*?)```/gs)].map(([, block = ""]) => block);
  assert.ok(blocks.length > 0);
  for (const block of blocks) {
    const read = parseSettings(block, { ...place, name: "settings.json", layer: "user" });
    assert.equal(read.kind, "settings", JSON.stringify(read));
  }
});
