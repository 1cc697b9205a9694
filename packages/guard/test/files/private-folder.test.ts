import assert from "node:assert/strict";
import { chmodSync, chownSync, mkdirSync, statSync, symlinkSync } from "node:fs";
import { test } from "node:test";
import { scratch, treeOf } from "@prefork/testing/scratch";
import { inspectPrivateFolder, openPrivateFolder } from "../../src/files/index.ts";

const refusal = async (folder: string): Promise<string> => {
  const [opened, inspected] = [await openPrivateFolder(folder), await inspectPrivateFolder(folder)];
  assert.equal(opened.ok, false);
  assert.deepEqual(inspected, opened, "looking says the same as opening");
  return opened.ok ? "" : opened.reason;
};

for (const umask of [0o000, 0o002, 0o022, 0o077, 0o777]) {
  test(`a missing folder and its parents are created with mode 0700 under umask ${umask.toString(8)}`, async (context) => {
    if (umask === 0o777 && process.getuid?.() !== 0)
      return context.skip("only the superuser enters a folder without bits");
    using place = scratch();
    const before = process.umask(umask);
    try {
      assert.deepEqual(await inspectPrivateFolder(place.at("a/b/state")), {
        ok: true,
        path: place.at("a/b/state"),
        mode: undefined,
      });
      const opened = await openPrivateFolder(place.at("a/b/state"));
      assert.ok(opened.ok);
      await using root = opened.root;
      await root.write(place.at("a/b/state/file"), "x");
    } finally {
      process.umask(before);
    }
    assert.equal(statSync(place.at("a/b/state")).mode & 0o777, 0o700);
    assert.equal(statSync(place.at("a/b/state/file")).mode & 0o777, 0o600);
    assert.equal(statSync(place.at("a")).mode & 0o077, 0, "nobody else was let in");
  });
}

test("a folder that others can read is closed; one that others can change is refused", async () => {
  using place = scratch();
  mkdirSync(place.at("state"));
  chmodSync(place.at("state"), 0o755);
  const opened = await openPrivateFolder(place.at("state"));
  assert.ok(opened.ok);
  await opened.root.close();
  assert.deepEqual(treeOf(place.path), { "state/": "700" });
  for (const mode of [0o720, 0o702, 0o777]) {
    chmodSync(place.at("state"), mode);
    assert.match(await refusal(place.at("state")), /can be changed by others \(mode 0[0-7]{3}\)$/);
    assert.deepEqual(treeOf(place.path), { "state/": mode.toString(8) }, "not repaired behind anybody's back");
  }
});

test("a parent folder that others can change is refused; a sticky one is not", async () => {
  using place = scratch();
  mkdirSync(place.at("shared"));
  chmodSync(place.at("shared"), 0o777);
  assert.match(await refusal(place.at("shared/state")), /shared can be changed by others \(mode 0777\)/);
  assert.match(await refusal(place.at("shared/deep/er/state")), /shared can be changed by others/);
  chmodSync(place.at("shared"), 0o1777);
  const opened = await openPrivateFolder(place.at("shared/state"));
  assert.ok(opened.ok);
  await opened.root.close();
});

test("a link or file in its place, and a dangling link, are refused", async () => {
  using place = scratch();
  mkdirSync(place.at("real"), { mode: 0o700 });
  symlinkSync("real", place.at("planted"));
  symlinkSync("nowhere", place.at("dangling"));
  place.put("file");
  assert.match(await refusal(place.at("planted")), /planted is a link$/);
  assert.match(await refusal(place.at("dangling")), /dangling is a link$/);
  assert.match(await refusal(place.at("dangling/state")), /dangling is a dangling link$/);
  assert.match(await refusal(place.at("file")), /file is not a folder$/);
  assert.match(await refusal(place.at("file/state")), /not a folder/);
  assert.deepEqual(treeOf(place.at("real")), {});
  const through = await openPrivateFolder(place.at("planted/state"));
  assert.ok(through.ok, "a link of our own further up is how some home folders are made");
  await through.root.close();
});

test("folders of other users are refused, as the folder itself and above it", async (context) => {
  if (process.getuid?.() !== 0) return context.skip("giving a folder away needs root");
  using place = scratch();
  mkdirSync(place.at("theirs/state"), { recursive: true, mode: 0o700 });
  chownSync(place.at("theirs/state"), 12_345, 12_345);
  assert.match(await refusal(place.at("theirs/state")), /state belongs to another user \(12345\)/);
  chownSync(place.at("theirs"), 12_345, 12_345);
  chownSync(place.at("theirs/state"), 0, 0);
  assert.match(await refusal(place.at("theirs/state")), /theirs belongs to another user \(12345\)/);
});
