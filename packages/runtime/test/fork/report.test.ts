import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { readCommitClaims, readReport } from "../../src/children/report.ts";

test("a report in the requested form is parsed", () => {
  const text = `Scope: the database schema
Result: two tables are missing an index.
Both are small.
Key files: src/schema.ts, \`src/db.ts\` (the pool)
Files changed:
- migrations/001.sql (commit abc123)
- src/schema.ts
Issues: none`;
  assert.deepEqual(readReport(text), {
    kind: "report",
    text,
    report: {
      scope: "the database schema",
      result: "two tables are missing an index.\nBoth are small.",
      keyFiles: ["src/schema.ts", "src/db.ts"],
      filesChanged: ["migrations/001.sql", "src/schema.ts"],
      issues: "none",
    },
  });
});

test("headings in bold, as Markdown headings or in other cases are read; missing ones are empty", () => {
  const read = readReport("**Scope:** tests\n## Result: all pass\nkey FILES: none");
  assert.deepEqual(read.kind === "report" && read.report, {
    scope: "tests",
    result: "all pass",
    keyFiles: [],
    filesChanged: [],
    issues: "",
  });
});

test("the first of two headings with the same name counts", () => {
  const read = readReport("Scope: tests\nResult: all pass\nResult: or none");
  assert.equal(read.kind === "report" && read.report.result, "all pass");
});

test("an answer without the requested form is kept unchanged, with a note", () => {
  assert.deepEqual(readReport("I did it."), {
    kind: "text",
    text: "I did it.",
    note: "The report does not begin with Scope: and is given as it is.",
  });
});

test("the whole text is kept, whatever it is", () => {
  fc.assert(fc.property(fc.string(), (text) => assert.equal(readReport(text).text, text)));
  fc.assert(fc.property(fc.string(), (text) => assert.equal(readReport(`Scope: ${text}`).text, `Scope: ${text}`)));
});

test("regression: a report with hundreds of thousands of commas is parsed in linear time", () => {
  const filesOf = (text: string): readonly string[] => {
    const read = readReport(`Scope: x\nFiles changed: ${text}`);
    return read.kind === "report" ? read.report.filesChanged : [];
  };
  assert.deepEqual(filesOf(",".repeat(400_000)), []);
  assert.equal(filesOf(`a${",a".repeat(400_000)}(`).length, 400_001);
  assert.deepEqual(filesOf("a.ts (b, c), d.ts\nf.ts, g.ts (h"), ["a.ts", "d.ts", "f.ts", "g.ts"]);
});

test("commits are found in linear time, whatever the lines of a report end with", () => {
  const hash = "0123456789abcdef";
  for (const ending of ["\r", "\u2028", "\r\n"])
    assert.deepEqual(readCommitClaims(`${ending.repeat(40_000)}Files changed: ${hash}${ending}Issues: none`), [hash]);
});
