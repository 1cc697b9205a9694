import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { importsIn, looksLikeFile } from "../../src/context/conventions.ts";

test("names after @ are imports, each once, without the marks of the sentence around them", () => {
  const text = "See @docs/style.md, @./a.md and (@~/b.md). Again @docs/style.md!\n@/abs/c.md\n- **@d.md**";
  assert.deepEqual(importsIn(text), ["docs/style.md", "./a.md", "~/b.md", "/abs/c.md", "d.md"]);
});

test("addresses, and what stands in fences and code spans, are none", () => {
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
  assert.deepEqual(importsIn(text), ["after.md", "then.md"]);
});

test("a fence that never ends holds the rest of the text, also with Windows line ends", () => {
  assert.deepEqual(importsIn("@a.md\r\n```\r\n@b.md\r\n```\r\n@c.md\r\n```\r\n@d.md"), ["a.md", "c.md"]);
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
      const found = importsIn(parts.join(""));
      assert.deepEqual(found, [...new Set(found)]);
    }),
  );
});

test("regression: a name behind which brackets stand by the hundred thousand is read in one go", () => {
  const brackets = ")".repeat(400_000);
  assert.deepEqual(importsIn(`@a${brackets} @${brackets}b @c.md${brackets}`), ["a", `${brackets}b`, "c.md"]);
});
