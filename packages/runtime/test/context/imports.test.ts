import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { findImports, looksLikeFile } from "../../src/context/conventions.ts";

test("names after @ are imports, each once, without the punctuation around them", () => {
  const text = "See @docs/style.md, @./a.md and (@~/b.md). Again @docs/style.md!\n@/abs/c.md\n- **@d.md**";
  assert.deepEqual(findImports(text), ["docs/style.md", "./a.md", "~/b.md", "/abs/c.md", "d.md"]);
});

test("e-mail addresses, and names in fences and code spans, are not imports", () => {
  const text = [
    "mail ada@example.com, run `@not/this.md` or ``a ` @nor/that.md``",
    "```sh",
    "@in/fence.md",
    "~~~",
    "@still/in/fence.md",
    "````",
    "@after.md and a lone ` mark @then.md",
    "~~~~ text",
    "@in/second.md",
    "~~~",
    "@yet/in/second.md",
  ].join("\n");
  assert.deepEqual(findImports(text), ["after.md", "then.md"]);
});

test("a fence that never ends contains the rest of the text, also with Windows line endings", () => {
  assert.deepEqual(findImports("@a.md\r\n```\r\n@b.md\r\n```\r\n@c.md\r\n```\r\n@d.md"), ["a.md", "c.md"]);
});

test("packages, people and decorators do not look like files", () => {
  const names = [
    "scope/package",
    "somebody",
    "app.route(",
    "pytest.fixture",
    "./x",
    "../x/y",
    "~/z",
    "/x",
    "a.md",
    "b.ts",
  ];
  assert.deepEqual(names.filter(looksLikeFile), ["./x", "../x/y", "~/z", "/x", "a.md", "b.ts"]);
});

test("any text can be read", () => {
  const marks = fc.constantFrom("@", "`", "``", "```", "~~~", "\n", " ", "a.md", "(", "\r");
  fc.assert(
    fc.property(fc.array(fc.oneof(marks, fc.string()), { maxLength: 40 }), (parts) => {
      const found = findImports(parts.join(""));
      assert.deepEqual(found, [...new Set(found)]);
    }),
  );
});

test("regression: a name followed by hundreds of thousands of brackets is read in linear time", () => {
  const brackets = ")".repeat(400_000);
  assert.deepEqual(findImports(`@a${brackets} @${brackets}b @c.md${brackets}`), ["a", `${brackets}b`, "c.md"]);
});
