import assert from "node:assert/strict";
import { mkdirSync, readFileSync, statSync, symlinkSync } from "node:fs";
import { test } from "node:test";
import { scratch, treeOf } from "@prefork/testing/scratch";
import { openToolFiles } from "../../src/tools/index.ts";

test("new files get the umask's modes, existing ones keep theirs", async () => {
  using place = scratch();
  const before = process.umask(0o027);
  try {
    await using files = await openToolFiles({ roots: [place.path], cwd: place.path });
    await files.write("a/new", "1");
    const made = await files.look("a/new");
    assert.ok(made.ok && made.facts);
    await files.write("a/new", "2", { expected: made.facts.version });
    assert.deepEqual(treeOf(place.path), { "a/": "750", "a/new": "640 2" });
  } finally {
    process.umask(before);
  }
});

test("a path means the same by every name of its root, and relative paths start in the working directory", async () => {
  using place = scratch();
  mkdirSync(place.at("real/sub"), { recursive: true });
  symlinkSync("real", place.at("alias"));
  await using files = await openToolFiles({ roots: [place.at("alias")], cwd: place.at("real/sub") });
  const wanted = { ok: true, path: place.at("real/sub/x") };
  for (const name of ["x", "./x", place.at("alias/sub/x"), place.at("real/sub//x"), "../sub/x"])
    assert.deepEqual(files.locate(name), wanted, name);
  for (const name of ["~/x", "", "a\0b", "https://x"]) assert.equal(files.locate(name).ok, false, name);
});

test("a file outside the workspace is opened through the nearest folder, and never through a link", async () => {
  using place = scratch();
  using outside = scratch();
  outside.put("here/file", "x");
  symlinkSync("here", outside.at("link"));
  await using files = await openToolFiles({ roots: [place.path], cwd: place.path });
  const read = await files.read(outside.at("here/file"));
  assert.equal(read.ok && read.bytes.toString(), "x");
  assert.equal((await files.write(outside.at("here/deep/er/new"), "y")).ok, true);
  assert.equal(readFileSync(outside.at("here/deep/er/new"), "utf8"), "y");
  const listed = await files.list(outside.at("here"));
  assert.deepEqual(listed.ok && listed.entries.map(({ name }) => name), ["deep", "file"]);
  for (const reached of [await files.read(outside.at("link/file")), await files.write(outside.at("link/new"), "z")])
    assert.deepEqual(reached, {
      ok: false,
      reason: `${outside.at("link")} is reached through a link, and links are not followed; it is ${outside.at("here")}`,
    });
});

test("links that lead out of the workspace are not written through", async () => {
  using place = scratch();
  using outside = scratch();
  outside.put("kept", "x");
  symlinkSync(outside.path, place.at("out"));
  symlinkSync(outside.at("kept"), place.at("one"));
  await using files = await openToolFiles({ roots: [place.path], cwd: place.path });
  for (const name of ["out/kept", "out/new", "one"]) assert.equal((await files.write(name, "y")).ok, false, name);
  assert.deepEqual(treeOf(outside.path), { kept: "644 x" });
});

test("files that are executed later need a person's approval", async () => {
  using place = scratch();
  await using files = await openToolFiles({ roots: [place.path], cwd: place.path });
  const refused = await files.write(".git/hooks/post-commit", "x");
  assert.equal(refused.ok, false);
  assert.deepEqual(treeOf(place.path), {});
  assert.equal((await files.write(".git/hooks/post-commit", "x", { approved: true })).ok, true);
  assert.equal(statSync(place.at(".git/hooks/post-commit")).isFile(), true);
});

test("a note is shown once by each instance", async () => {
  using place = scratch();
  await using one = await openToolFiles({ roots: [place.path], cwd: place.path });
  await using other = await openToolFiles({ roots: [place.path], cwd: place.path });
  assert.deepEqual([one.noteOnce("n"), one.noteOnce("n"), other.noteOnce("n")], ["n", "", "n"]);
});
