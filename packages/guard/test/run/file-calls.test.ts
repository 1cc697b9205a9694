import assert from "node:assert/strict";
import { linkSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { scratch, treeOf } from "@prefork/testing/scratch";
import { openRoot, type Root } from "../../src/files/index.ts";
import type { JsonObject } from "../../src/json.ts";
import { classify } from "../../src/rules/index.ts";
import { checkFileCall, performFileCall } from "../../src/run/file-calls.ts";

const perform = (root: Root, tool: string, args: JsonObject) => performFileCall(root, { tool, args }, { classify });
const check = (root: Root, tool: string, args: JsonObject) => checkFileCall(root, { tool, args }, { classify });

test("Write makes and replaces a file; checking it changes nothing", async () => {
  using place = scratch();
  await using root = await openRoot(place.path);
  const args = { file_path: place.at("a/notes.md"), content: "one" };
  assert.deepEqual(await check(root, "Write", args), { allowed: true, reason: `inside ${place.path}` });
  assert.deepEqual(treeOf(place.path), {});
  assert.deepEqual(await perform(root, "FileWrite", args), { allowed: true, reason: `made inside ${place.path}` });
  assert.deepEqual(await perform(root, "Write", { ...args, content: "two" }), {
    allowed: true,
    reason: `written inside ${place.path}`,
  });
  assert.deepEqual(treeOf(place.path), { "a/": "700", "a/notes.md": "600 two" });
  assert.deepEqual(await perform(root, "Write", { file_path: args.file_path }), {
    allowed: false,
    reason: '"content" is missing',
  });
});

test("Edit replaces the one occurrence, or explains why it cannot", async () => {
  using place = scratch();
  const file_path = place.put("notes", "\ufeffa $& b a");
  await using root = await openRoot(place.path);
  const reason = async (args: JsonObject, tool = "Edit"): Promise<string> =>
    (await perform(root, tool, { file_path, ...args })).reason;
  assert.match(await reason({ old_string: "a", new_string: "c" }), /occurs in the file 2 times/);
  assert.match(await reason({ old_string: "x", new_string: "c" }), /does not occur in the file/);
  assert.match(await reason({ old_string: "", new_string: "c" }), /is empty/);
  assert.match(await reason({ old_string: "b", new_string: "b" }), /are equal/);
  assert.match(await reason({ old_string: "b" }), /needs old_string and new_string/);
  assert.match(await reason({ edits: [] }, "MultiEdit"), /needs old_string and new_string/);
  assert.match(
    await reason(
      {
        edits: [
          { old_string: "b", new_string: "c" },
          { old_string: "none", new_string: "" },
        ],
      },
      "MultiEdit",
    ),
    /does not occur/,
  );
  assert.equal(readFileSync(file_path, "utf8"), "\ufeffa $& b a", "all or nothing");
  assert.match(await reason({ old_string: "b", new_string: "$&$1" }), /^edited/);
  assert.match(
    await reason({ edits: [{ old_string: "a", new_string: "z", replace_all: true }] }, "MultiEdit"),
    /^edited/,
  );
  assert.equal(readFileSync(file_path, "utf8"), "\ufeffz $& $&$1 z");
  writeFileSync(file_path, Buffer.from([0x61, 0xff]));
  assert.equal(await reason({ old_string: "a", new_string: "b" }), "the file is not text");
  assert.match(await reason({ file_path: place.at("none"), old_string: "a", new_string: "b" }), /no such file/);
});

test("edits cannot make a file that is larger than what can be read", async () => {
  using place = scratch();
  const file_path = place.put("notes", "s");
  await using root = await openRoot(place.path);
  const edits = [
    { old_string: "s", new_string: "t".repeat(1_000), replace_all: true },
    { old_string: "t", new_string: "u".repeat(1_000), replace_all: true },
    { old_string: "u", new_string: "v".repeat(1_000), replace_all: true },
  ];
  assert.deepEqual(await perform(root, "MultiEdit", { file_path, edits }), {
    allowed: false,
    reason: "the file would grow to 1,000,000,000 characters; the limit is 32 MiB",
  });
  assert.equal(readFileSync(file_path, "utf8"), "s");
});

test("the disk is checked for what the text of a path hides", async () => {
  using place = scratch();
  using outside = scratch();
  outside.put("secret", "untouched");
  await using root = await openRoot(place.path);
  symlinkSync(outside.path, place.at("out"));
  symlinkSync(outside.at("secret"), place.at("link"));
  linkSync(outside.at("secret"), place.at("hard"));
  for (const name of ["out/secret", "out/new", "link", "hard", ".git/config"])
    for (const judge of [check, perform]) {
      const args = { file_path: place.at(name), content: "x" };
      assert.equal((await judge(root, "Write", args)).allowed, false, name);
      assert.equal(
        (await judge(root, "Edit", { file_path: args.file_path, old_string: "u", new_string: "x" })).allowed,
        false,
      );
    }
  assert.deepEqual(treeOf(outside.path), { secret: "644 untouched" });
});

test("a bare repository is neither changed nor assembled piece by piece", async () => {
  using place = scratch();
  place.put("bare/HEAD", "ref: refs/heads/main");
  place.put("bare/objects/info/x", "");
  place.put("bare/refs/heads/main", "");
  await using root = await openRoot(place.path);
  const before = treeOf(place.path);
  const write = (judge: typeof check, name: string) =>
    judge(root, "Write", { file_path: place.at(name), content: "x" });
  for (const name of ["bare/config", "bare/HEAD", "bare/hooks/post-checkout", "bare/info/attributes"])
    for (const judge of [check, perform])
      assert.match((await write(judge, name)).reason, /treats its folder as a repo/);
  assert.deepEqual(treeOf(place.path), before);
  assert.equal((await write(perform, "bare/notes.md")).allowed, true);
  assert.equal((await write(perform, "made/HEAD")).allowed, true);
  assert.equal((await write(perform, "made/config")).allowed, true);
  assert.equal((await write(perform, "made/commondir")).allowed, false);
  assert.equal((await write(perform, "made/refs/x")).allowed, true);
  assert.equal((await write(perform, "made/objects/x")).allowed, false);
  assert.deepEqual(Object.keys(treeOf(place.at("made"))), ["HEAD", "config", "refs/", "refs/x"]);
});

test("several edits of one file are one change, by either tool's name", async () => {
  using place = scratch();
  const file_path = place.put("notes", "a b");
  await using root = await openRoot(place.path);
  const edits = [
    { old_string: "a", new_string: "c" },
    { old_string: "c b", new_string: "d" },
  ];
  assert.equal((await perform(root, "Edit", { file_path, edits })).allowed, true);
  assert.equal(readFileSync(file_path, "utf8"), "d");
  const elsewhere = { edits: [{ old_string: "d", new_string: "e", file_path: "/etc/hosts" }] };
  for (const tool of ["Edit", "MultiEdit"])
    for (const judge of [check, perform])
      assert.match((await judge(root, tool, { file_path, ...elsewhere })).reason, /does not belong in "edits"/);
});

test("reading calls pass, others are denied with what may be done instead", async () => {
  using place = scratch();
  await using root = await openRoot(place.path);
  assert.deepEqual(await perform(root, "Read", { file_path: "/etc/hosts" }), { allowed: true, reason: "only reads" });
  assert.deepEqual(await perform(root, "Bash", { command: "git log --oneline" }), {
    allowed: true,
    reason: "only reads",
  });
  assert.match((await perform(root, "Bash", { command: "touch x" })).reason, /not provably read-only/);
  assert.match((await perform(root, "Agent", {})).reason, new RegExp(`write only files inside ${place.path}$`));
});
