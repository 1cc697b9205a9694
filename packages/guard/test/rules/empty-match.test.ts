/** A pattern that could match nothing is told from one that always takes something. */

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { mayMatchEmpty } from "../../src/bash/programs/empty-match.ts";

test("patterns that never match the empty string", () => {
  const taking = [
    "x",
    "x+",
    "[0-9]+",
    "\\d",
    "a|b",
    "^a",
    "a$",
    "(a|b)+",
    "a{2}",
    "a{1,}",
    "(?:a)b?",
    "[[:space:]]+",
    "\\.",
    "[]x]",
    "x*y",
  ];
  assert.deepEqual(taking.filter(mayMatchEmpty), []);
});

test("patterns that may match the empty string, or that are not understood", () => {
  const empty = [
    "",
    "^",
    "$",
    "x*",
    "x?",
    "a|",
    "|a",
    "a*|b",
    "(a*)+",
    "(a|b?)",
    "a{0}",
    "a{0,3}",
    "a{,3}",
    "[[:space:]]*",
    "\\b",
    "\\<",
    "(?=a)",
    "(?<!a)",
    "(a)?",
    "(",
    "a)b",
    "*",
    "[a",
    "()",
  ];
  assert.deepEqual(
    empty.filter((pattern) => !mayMatchEmpty(pattern)),
    [],
  );
});

test("a pattern that is reported as never empty does not match the empty string in JavaScript", () => {
  const piece = fc.constantFrom(
    "a",
    "b",
    ".",
    "[ab]",
    "[^a]",
    "(",
    ")",
    "(?:",
    "|",
    "*",
    "+",
    "?",
    "{0}",
    "{2}",
    "^",
    "$",
    "\\b",
    "\\d",
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 8 }), (pieces) => {
      const pattern = pieces.join("");
      if (mayMatchEmpty(pattern)) return;
      const made = compiled(pattern);
      if (made) for (const text of ["", "a", "ab 1", "b\n"]) assert.notEqual(made.exec(text)?.[0], "", pattern);
    }),
    { numRuns: 5_000, seed: 3 },
  );
});

const compiled = (pattern: string): RegExp | undefined => {
  try {
    return new RegExp(pattern);
  } catch {
    return undefined;
  }
};
