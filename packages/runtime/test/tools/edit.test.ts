import assert from "node:assert/strict";
import { chmodSync, readFileSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import type { JsonObject } from "@prefork/wire";
import fc from "fast-check";
import { applyEdits } from "../../src/tools/edit.ts";
import { decodeText, encodeText } from "../../src/tools/file-content.ts";
import { type Bench, bench, textOf } from "./tool-bench.ts";

const edit = async (b: Bench, args: JsonObject): Promise<string> => {
  const { content, fault } = await b.call("Edit", { file_path: b.at("f"), ...args });
  return `${fault ?? "ok"} ${String(content).replaceAll(b.at("f"), "f")}`;
};

const opened = async (b: Bench, content: string): Promise<void> => {
  b.put("f", content);
  await b.call("Read", { file_path: "f" });
};

const now = (b: Bench): string => readFileSync(b.at("f"), "utf8");

test("an edit replaces the one matching text and keeps the mode and everything else", async () => {
  await using b = await bench();
  await opened(b, "one\ntwo $& three\nfour\n");
  chmodSync(b.at("f"), 0o751);
  await b.call("Read", { file_path: "f" });
  assert.equal(await edit(b, { old_string: "two $&", new_string: "$1 2" }), "ok Edited f: 1 place, at line 2.");
  assert.equal(now(b), "one\n$1 2 three\nfour\n");
  assert.equal(statSync(b.at("f")).mode & 0o777, 0o751);
  assert.equal(await edit(b, { old_string: "four", new_string: "4" }), "ok Edited f: 1 place, at line 3.");
});

test("several edits are one change: in order, all or none", async () => {
  await using b = await bench();
  await opened(b, "a\nb\nc\na\n");
  assert.equal(
    await edit(b, {
      edits: [
        { old_string: "b", new_string: "x\ny" },
        { old_string: "y\nc", new_string: "z" },
        { old_string: "a", new_string: "A", replace_all: true },
      ],
    }),
    "ok Edited f: 4 places, at lines 2, 3, 1, 4.",
  );
  assert.equal(now(b), "A\nx\nz\nA\n");
  assert.equal(
    await edit(b, {
      edits: [
        { old_string: "x", new_string: "gone" },
        { old_string: "none of it", new_string: "" },
      ],
    }),
    "failed f: edit 2 of 2: old_string does not stand in the file, nor anything like it. Read the file again. Nothing was changed.",
  );
  assert.equal(now(b), "A\nx\nz\nA\n");
});

test("exactly one of the two forms is accepted", async () => {
  await using b = await bench();
  await opened(b, "a");
  const one = [{ old_string: "a", new_string: "b" }];
  const both = "bad-input Give either edits, or old_string and new_string, not both.";
  assert.equal(await edit(b, { old_string: "a", new_string: "b", edits: one }), both);
  assert.equal(await edit(b, { replace_all: true, edits: one }), both);
  const missing = (key: string): string => `bad-input ${key} is missing; give old_string and new_string, or edits.`;
  assert.equal(await edit(b, {}), missing("old_string"));
  assert.equal(await edit(b, { old_string: "a" }), missing("new_string"));
  assert.equal(now(b), "a");
});

test("text that is not found is answered with what the file contains instead", async () => {
  await using b = await bench();
  await opened(b, "function run() {\n\tconst total = sum(values);\n\treturn total;\n}\n");
  assert.equal(
    await edit(b, { old_string: "  const total = sum(values);\n  return total;", new_string: "x" }),
    "failed f: old_string does not stand in the file as given, but with other white space it does:\n" +
      "2\t\tconst total = sum(values);\n3\t\treturn total;\nCopy it from there exactly. Nothing was changed.",
  );
  assert.equal(
    await edit(b, { old_string: "const total = sum(value);", new_string: "x" }),
    "failed f: old_string does not stand in the file. The nearest lines are:\n" +
      "2\t\tconst total = sum(values);\n3\t\treturn total;\n4\t}\nNothing was changed.",
  );
  assert.equal(
    await edit(b, { old_string: "3\t\treturn total;\n4\t}", new_string: "x" }),
    "failed f: old_string holds the line numbers that Read puts before each line. Leave number and tab out. Nothing was changed.",
  );
  assert.equal(
    await edit(b, { old_string: "total", new_string: "sum" }),
    "failed f: old_string stands in the file 2 times, at lines 2, 3. Give more of the text around the one you mean, " +
      "or set replace_all. Nothing was changed.",
  );
  assert.equal(
    await edit(b, { old_string: "run", new_string: "run" }),
    "failed f: old_string and new_string are equal, so nothing would change. Nothing was changed.",
  );
  assert.equal(
    await edit(b, { old_string: "", new_string: "x" }),
    "failed f: old_string is empty. Give the text to replace; to make a file use Write. Nothing was changed.",
  );
});

test("line endings and the byte order mark stay, however the edit writes them", async () => {
  await using b = await bench();
  await opened(b, "\ufeffone\r\ntwo\r\nthree\r\n");
  assert.equal(await edit(b, { old_string: "one\ntwo", new_string: "1\n2" }), "ok Edited f: 1 place, at line 1.");
  assert.equal(await edit(b, { old_string: "three", new_string: "3\n4" }), "ok Edited f: 1 place, at line 3.");
  assert.equal(now(b), "\ufeff1\r\n2\r\n3\r\n4\r\n");
  await opened(b, "a\nb\n");
  assert.equal(await edit(b, { old_string: "a\r\nb", new_string: "c\r\nd" }), "ok Edited f: 1 place, at line 1.");
  assert.equal(now(b), "c\nd\n");
});

test("text that is not UTF-8, and binary content, is not edited", async () => {
  await using b = await bench();
  writeFileSync(b.at("f"), Buffer.from("caf\xe9", "latin1"));
  await b.call("Read", { file_path: "f" });
  assert.equal(
    await edit(b, { old_string: "caf", new_string: "x" }),
    "failed f is latin-1 text; only UTF-8 can be edited without harm to the rest. Nothing was changed.",
  );
  assert.equal(readFileSync(b.at("f"), "latin1"), "caf\xe9");
});

test("a file that was not read, or has changed since, is neither edited nor replaced", async () => {
  await using b = await bench();
  b.put("f", "one");
  const write = async (content: string): Promise<string> =>
    textOf(await b.call("Write", { file_path: b.at("f"), content })).replaceAll(b.at("f"), "f");
  const unread = "f exists and was not read in this session. Read it first.";
  assert.equal(await edit(b, { old_string: "one", new_string: "1" }), `failed ${unread} Nothing was changed.`);
  assert.equal(await write("1"), `${unread} Nothing was written.`);
  await b.call("Read", { file_path: "f" });
  b.put("f", "two");
  const stale = "f was changed since it was read. Read it again, then repeat the change on what it says now.";
  assert.equal(await edit(b, { old_string: "two", new_string: "2" }), `failed ${stale} Nothing was changed.`);
  assert.equal(await write("2"), `${stale} Nothing was written.`);
  await b.call("Read", { file_path: "f" });
  utimesSync(b.at("f"), 1, 1); // touched, but with the same content
  assert.equal(await edit(b, { old_string: "two", new_string: "2" }), "ok Edited f: 1 place, at line 1.");
  assert.equal(await write("3"), "Replaced f (1 line).");
  assert.equal(await edit(b, { old_string: "3", new_string: "4\n5" }), "ok Edited f: 1 place, at line 1.");
  assert.equal(now(b), "4\n5");
});

test("a file known only in part can be edited but not replaced", async () => {
  await using b = await bench();
  b.put("f", "one\ntwo\nthree\n");
  await b.call("Read", { file_path: "f", limit: 2 });
  const write = async (): Promise<string> =>
    textOf(await b.call("Write", { file_path: b.at("f"), content: "x\n" })).replaceAll(b.at("f"), "f");
  const partly =
    "f was read only in part. Read the rest of it first, or change the part you know with Edit. Nothing was written.";
  assert.equal(await write(), partly);
  assert.equal(await edit(b, { old_string: "one", new_string: "1" }), "ok Edited f: 1 place, at line 1.");
  assert.equal(await write(), partly);
  await b.call("Read", { file_path: "f", offset: 3 });
  assert.equal(await write(), "Replaced f (1 line).");
});

test("Write creates files and folders, fills empty files, and knows what it wrote", async () => {
  await using b = await bench();
  const write = (name: string, content: string) => b.call("Write", { file_path: b.at(name), content });
  assert.deepEqual(await write("a/b/c", "1\n2\n"), { content: `Made ${b.at("a/b/c")} (2 lines).` });
  assert.deepEqual(await write("a/b/c", ""), { content: `Replaced ${b.at("a/b/c")} (0 lines).` });
  b.put("touched");
  assert.deepEqual(await write("touched", "x"), { content: `Replaced ${b.at("touched")} (1 line).` });
  assert.deepEqual(await write("a", "x"), {
    content: `${b.at("a")}: this is a folder, not a file. Nothing was written.`,
    fault: "failed",
  });
});

test("two sessions each know their own files", async () => {
  await using one = await bench();
  await using other = await bench({ fileOptions: { roots: [one.work], cwd: one.work } });
  one.put("f", "a");
  await one.call("Read", { file_path: one.at("f") });
  const args = { file_path: one.at("f"), old_string: "a", new_string: "b" };
  assert.equal((await other.call("Edit", args)).fault, "failed");
  assert.equal((await one.call("Edit", args)).fault, undefined);
});

test("an edit changes its target and no other byte, in every text file", async () => {
  const line = fc.string({ unit: "grapheme", maxLength: 8 }).map((text) => text.replace(/[\r\n\ufeff]/g, ""));
  const file = fc.tuple(
    fc.array(line, { minLength: 1, maxLength: 6 }),
    fc.constantFrom("\n", "\r\n"),
    fc.constantFrom("", "\ufeff"),
  );
  await fc.assert(
    fc.asyncProperty(
      file,
      fc.nat(),
      fc.array(line, { minLength: 1, maxLength: 3 }),
      async ([lines, ending, mark], at, next) => {
        const place = at % lines.length;
        const marked = lines.map((text, index) => (index === place ? `${text}<place>` : text));
        const before = Buffer.from(mark + marked.join(ending));
        const text = decodeText(before);
        const edits = [{ old_string: "<place>", new_string: `<${next.join("\n")}>` }];
        const edited = await applyEdits(text, edits, new AbortController().signal);
        assert.ok(edited.ok);
        const after = marked.join(ending).replace("<place>", () => `<${next.join(lines.length > 1 ? ending : "\n")}>`);
        assert.equal(encodeText(text, edited.text).toString("utf8"), mark + after);
        assert.deepEqual(edited.lines, [place + 1]);
      },
    ),
  );
});

test("an edit that misses is explained in proportion to the file, whatever both contain", async () => {
  await using b = await bench();
  const miss = async (text: string, old_string: string): Promise<string> => {
    const file_path = b.put("f", text);
    await b.call("Read", { file_path, limit: 1 });
    const { content, fault } = await b.call("Edit", { file_path, old_string, new_string: "x" });
    assert.equal(fault, "failed");
    return String(content).replace(`${file_path}: `, "").slice(0, 60);
  };
  const missing = "old_string does not stand in the file. The nearest lines are";
  const nothing = "old_string does not stand in the file, nor anything like it.";
  assert.equal(await miss("a\n".repeat(400_000), `${"a\n".repeat(100_000)}b`), missing);
  assert.equal(await miss("a".repeat(1_000_000), `${"a".repeat(50_000)}b${"a".repeat(50_000)}`), nothing);
  assert.equal(await miss(`${"letters ".repeat(200)}\n`.repeat(2_000), "zz1yy2xx3"), nothing);
  assert.equal(await miss(`${"ab".repeat(100)}\n`.repeat(4_000), `${"cd".repeat(200_000)}`), nothing);
});

test("every occurrence is replaced, however many there are, unless the file would grow too large", async () => {
  await using b = await bench();
  const file_path = b.put("f", "a\n".repeat(200_000));
  await b.call("Read", { file_path });
  const edit = (new_string: string) => b.call("Edit", { file_path, old_string: "a", new_string, replace_all: true });
  assert.match(String((await edit("b".repeat(10_000))).content), /the file would grow to 2,000,200,000 characters/);
  assert.match(String((await edit("b")).content), /: 200000 places, at lines 1, 2, /);
  assert.equal(readFileSync(file_path, "utf8"), "b\n".repeat(200_000));
});
