import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  existsSync,
  linkSync,
  lutimesSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { basename } from "node:path";
import { test } from "node:test";
import { scratch, treeOf } from "@prefork/testing/scratch";
import { Folder, type FolderAccess, openRoot, RootError } from "../../src/files/index.ts";
import { newDraftName, noteDraft, removeAbandonedDrafts } from "../../src/files/replace.ts";
import { draftsIn } from "../../src/trust/index.ts";

/** Both access methods run here; systems without /proc use the second. */
const WAYS: readonly FolderAccess[] = process.platform === "linux" ? ["descriptors", "names"] : ["names"];

const reasonOf = (result: { readonly ok: boolean; readonly reason?: string }): string => {
  assert.equal(result.ok, false, "expected a refusal");
  return result.reason ?? "";
};

test("a root must be an existing folder", async () => {
  using place = scratch();
  place.put("file");
  for (const [folder, reason] of [
    [place.at("missing"), /no such file or folder/],
    [place.at("file"), /is not a folder/],
    ["/proc/self", /not an ordinary folder/],
    ["/", /not an ordinary folder/],
    [place.at("a\nb"), /control characters/],
  ] as const)
    await assert.rejects(openRoot(folder), (error: Error) => error instanceof RootError && reason.test(error.message));
  symlinkSync(place.at("missing"), place.at("dangling"));
  await assert.rejects(openRoot(place.at("dangling")), RootError);
});

for (const way of WAYS) {
  test(`${way}: a written file can be read, and missing folders are created, all private whatever the umask`, async () => {
    using place = scratch();
    await using root = await openRoot(place.path, { way });
    assert.equal(root.way, way);
    const umask = process.umask(0o000);
    try {
      const made = await root.write(place.at("a", "b", "note.md"), "one");
      assert.equal(made.ok && made.created, true);
      process.umask(0o177);
      const again = await root.write(place.at("c", "note.md"), "two");
      assert.equal(again.ok && again.created, true);
    } finally {
      process.umask(umask);
    }
    assert.deepEqual(treeOf(place.path), {
      "a/": "700",
      "a/b/": "700",
      "a/b/note.md": "600 one",
      "c/": "700",
      "c/note.md": "600 two",
    });
    const read = await root.read(place.at("a/b/note.md"));
    assert.equal(read.ok && read.bytes.toString(), "one");
  });

  test(`${way}: a root that is not private leaves modes to the umask; an existing file keeps its own`, async () => {
    using place = scratch();
    await using root = await openRoot(place.path, { way, private: false });
    place.put("run.sh", "old");
    chmodSync(place.at("run.sh"), 0o4751);
    const umask = process.umask(0o027);
    try {
      assert.equal((await root.write(place.at("src/new.ts"), "new")).ok, true);
      assert.equal((await root.write(place.at("run.sh"), "new")).ok, true);
    } finally {
      process.umask(umask);
    }
    assert.deepEqual(treeOf(place.path), { "run.sh": "751 new", "src/": "750", "src/new.ts": "640 new" });
  });

  test(`${way}: links, hard links, pipes, sockets and folders are refused, and nothing behind them is touched`, async () => {
    using place = scratch();
    using outside = scratch();
    outside.put("secret", "untouched");
    mkdirSync(place.at("root/folder"), { recursive: true });
    symlinkSync(outside.at("secret"), place.at("root/link"));
    symlinkSync(outside.at("new"), place.at("root/dangling"));
    symlinkSync(outside.path, place.at("root/out"));
    symlinkSync("folder", place.at("root/in"));
    symlinkSync("/proc/self", place.at("root/self"));
    linkSync(outside.at("secret"), place.at("root/hard"));
    execFileSync("mkfifo", [place.at("root/pipe")]);
    const server = createServer().listen(place.at("root/socket"));
    await once(server, "listening");
    const before = treeOf(place.path);
    await using root = await openRoot(place.at("root"), { way });
    const write = async (name: string): Promise<string> => reasonOf(await root.write(place.at("root", name), "x"));
    assert.equal(await write("link"), "this is a link, and links are not followed");
    assert.equal(await write("dangling"), "this is a link, and links are not followed");
    assert.match(await write("out/secret"), /^out is a link, and links are not followed$/);
    assert.match(await write("out/new"), /^out is a link/);
    assert.match(await write("in/new"), /^in is a link/);
    assert.match(await write("self/root/x"), /^self is a link/);
    assert.match(await write("hard"), /further names \(hard links\)/);
    assert.match(await write("pipe"), /a device, a pipe or a socket/);
    assert.match(await write("socket"), /a device, a pipe or a socket/);
    assert.match(await write("folder"), /a folder, not a file/);
    assert.match(await write("folder/"), /names a folder/);
    assert.match(await write("pipe/x"), /^pipe is not a folder$/);
    assert.equal(reasonOf(await root.write(place.at("root"), "x")), "this is the folder itself, not a file in it");
    assert.match(reasonOf(await root.write(outside.at("secret"), "x")), /^the path is outside /);
    assert.match(reasonOf(await root.write(place.at("root-sibling"), "x")), /^the path is outside /);
    for (const name of ["link", "pipe", "socket", "folder", "dangling", "out/secret"])
      assert.equal((await root.read(place.at("root", name))).ok, false, name);
    for (const name of ["link", "hard", "folder", "out/secret", "nothing"])
      assert.equal((await root.remove(place.at("root", name))).ok, false, name);
    for (const name of ["link", "dangling", "out/x", "hard", "pipe", "folder"])
      assert.equal((await root.mayWrite(place.at("root", name))).ok, false, name);
    assert.deepEqual(treeOf(place.path), before, "nothing changed");
    server.close();
    await once(server, "close");
    assert.deepEqual(treeOf(outside.path), { secret: "644 untouched" });
  });

  test(`${way}: protected names are refused before they exist; reading them is not`, async () => {
    using place = scratch();
    place.put(".git/config", "[core]");
    await using root = await openRoot(place.path, { way });
    for (const name of [
      ".git/config",
      ".git/hooks/post-checkout",
      ".PREFORK/settings.json",
      "sub/.bashrc",
      ".mcp.json",
    ]) {
      assert.match(reasonOf(await root.write(place.at(name), "x")), / is protected: /);
      assert.match(reasonOf(await root.mayWrite(place.at(name))), / is protected: /);
      assert.match(reasonOf(await root.remove(place.at(name))), / is protected: /);
    }
    assert.deepEqual(treeOf(place.path), { ".git/": "755", ".git/config": "644 [core]" });
    const read = await root.read(place.at(".git/config"));
    assert.equal(read.ok && read.bytes.toString(), "[core]");
  });

  test(`${way}: a write-protected file is not replaced`, async () => {
    using place = scratch();
    place.put("note", "keep");
    chmodSync(place.at("note"), 0o444);
    await using root = await openRoot(place.path, { way });
    assert.equal(reasonOf(await root.write(place.at("note"), "x")), "this file is write-protected");
    assert.equal(reasonOf(await root.mayWrite(place.at("note"))), "this file is write-protected");
    assert.deepEqual(treeOf(place.path), { note: "444 keep" });
  });

  test(`${way}: the root stays the pinned folder, whatever its name refers to later`, async () => {
    using place = scratch();
    using outside = scratch();
    mkdirSync(place.at("mem"));
    symlinkSync("mem", place.at("alias"));
    await using root = await openRoot(place.at("alias"), { way });
    assert.deepEqual(root.names, [place.at("mem"), place.at("alias")]);
    assert.equal((await root.write(place.at("alias/a"), "by the name that was given")).ok, true);
    rmSync(place.at("alias"));
    symlinkSync(outside.path, place.at("alias"));
    assert.equal((await root.write(place.at("alias/b"), "still in the pinned folder")).ok, true);
    renameSync(place.at("mem"), place.at("moved"));
    symlinkSync(outside.path, place.at("mem"));
    const third = await root.write(place.at("mem/c"), "third");
    if (way === "names") assert.match(reasonOf(third), /replaced meanwhile/);
    else assert.equal(third.ok, true);
    assert.deepEqual(treeOf(outside.path), {});
    assert.equal(existsSync(place.at("moved/c")), way === "descriptors");
  });

  test(`${way}: a folder swapped for a link between the walk and the write does not redirect the write`, async () => {
    using place = scratch();
    using outside = scratch();
    mkdirSync(place.at("root/sub"), { recursive: true });
    await using top = await Folder.open(place.at("root"), way);
    await using held = await top.enter("sub");
    renameSync(place.at("root/sub"), outside.at("stolen"));
    symlinkSync(outside.path, place.at("root/sub"));
    await assert.rejects(held.verify(), /meanwhile/);
    await assert.rejects(top.enter("sub"));
  });

  test(`${way}: passing the version that was read protects a write against changes in between`, async () => {
    using place = scratch();
    place.put("note", "one");
    await using root = await openRoot(place.path, { way });
    const read = await root.read(place.at("note"));
    assert.ok(read.ok);
    writeFileSync(place.at("note"), "two");
    const late = await root.write(place.at("note"), "three", { expected: read.facts.version });
    assert.equal(reasonOf(late), "the file was changed since it was read; read it again");
    assert.equal(readFileSync(place.at("note"), "utf8"), "two");
    const fresh = await root.read(place.at("note"));
    assert.ok(fresh.ok);
    assert.equal((await root.write(place.at("note"), "three", { expected: fresh.facts.version })).ok, true);
    assert.deepEqual(treeOf(place.path), { note: "644 three" }, "no draft is left");
  });

  test(`${way}: reads are bounded, listings are sorted, and look describes what is there`, async () => {
    using place = scratch();
    place.put("b", "12345");
    place.put("a/deep", "x");
    symlinkSync("b", place.at("c"));
    await using root = await openRoot(place.path, { way });
    assert.match(reasonOf(await root.read(place.at("b"), { maxBytes: 4 })), /has 5 bytes; at most 4 are read/);
    assert.equal((await root.read(place.at("b"), { maxBytes: 5 })).ok, true);
    assert.deepEqual(await root.list(place.path), {
      ok: true,
      entries: [
        { name: "a", kind: "folder" },
        { name: "b", kind: "file" },
        { name: "c", kind: "link" },
      ],
    });
    assert.deepEqual(await root.list(place.at("a")), { ok: true, entries: [{ name: "deep", kind: "file" }] });
    assert.equal((await root.list(place.at("c"))).ok, false);
    const kinds = ["", "a", "b", "c", "a/none", "none/none"].map(async (name) => {
      const looked = await root.look(place.at(name));
      return looked.ok ? looked.facts?.kind : looked.reason;
    });
    assert.deepEqual(await Promise.all(kinds), ["folder", "folder", "file", "link", undefined, undefined]);
    assert.match(reasonOf(await root.look(place.at("c/x"))), /is a link|not a folder/);
    assert.deepEqual(await root.remove(place.at("a/deep")), { ok: true });
    assert.equal(existsSync(place.at("a/deep")), false);
  });
}

test("device files are refused without being opened", async (context) => {
  if (process.getuid?.() !== 0) return context.skip("making a device file needs root");
  using place = scratch();
  try {
    execFileSync("mknod", [place.at("null"), "c", "1", "3"], { stdio: "ignore" });
  } catch {
    return context.skip("this system does not permit device files");
  }
  await using root = await openRoot(place.path);
  assert.match(reasonOf(await root.read(place.at("null"))), /a device, a pipe or a socket/);
  assert.match(reasonOf(await root.write(place.at("null"), "x")), /a device, a pipe or a socket/);
  assert.equal(statSync(place.at("null")).isCharacterDevice(), true);
});

test("no descriptor is left open, also after refusals", async (context) => {
  if (process.platform !== "linux") return context.skip("counts /proc/self/fd");
  using place = scratch();
  place.put("a/b/c/note", "x");
  symlinkSync("b", place.at("a/link"));
  const held = (): readonly string[] =>
    readdirSync("/proc/self/fd")
      .map((name) => (existsSync(`/proc/self/fd/${name}`) ? readlinkSync(`/proc/self/fd/${name}`) : ""))
      .filter((target) => target.startsWith(place.path));
  const root = await openRoot(place.path);
  assert.deepEqual(held(), [place.path]);
  for (let round = 0; round < 20; round++) {
    await root.read(place.at("a/b/c/note"));
    await root.write(place.at("a/b/c/note"), "y");
    await root.write(place.at("a/link/c/note"), "y");
    await root.read(place.at("a/b/none/note"));
    await root.list(place.at("a/b"));
  }
  assert.deepEqual(held(), [place.path]);
  await root.close();
  assert.deepEqual(held(), []);
});

/** Writes one file again and again until it is killed, or exits with a draft on the disk. */
const WRITER = `
import { writeFileSync } from "node:fs";
import { openRoot } from "${new URL("../../src/files/index.ts", import.meta.url)}";
import { newDraftName, noteDraft } from "${new URL("../../src/files/replace.ts", import.meta.url)}";
const [folder, drafts, how] = process.argv.slice(1);
if (how === "dies") {
  const draft = folder + "/" + newDraftName();
  await noteDraft(drafts, Buffer.from(draft));
  writeFileSync(draft, "half");
  process.kill(process.pid, "SIGKILL");
}
const root = await openRoot(folder, { drafts });
for (let at = 0; ; at++) {
  await root.write(folder + "/file", String(at).padEnd(500_000));
  if (at === 0) console.log("began");
}`;

test("the draft of a killed process is removed, and that of a running process is not", async () => {
  using place = scratch();
  place.put("work/.keep");
  mkdirSync(place.at("state"));
  const drafts = draftsIn(place.at("state"));
  const start = (how: string) =>
    spawn(process.execPath, ["--input-type=module", "-e", WRITER, place.at("work"), drafts, how], {
      stdio: ["ignore", "pipe", "inherit"],
    });
  const dying = start("dies");
  assert.deepEqual(await once(dying, "exit"), [null, "SIGKILL"]);
  const killed = start("writes");
  await once(killed.stdout, "data");
  killed.kill("SIGKILL");
  await once(killed, "exit");
  const mine = place.at(`work/${newDraftName()}`);
  const forget = await noteDraft(drafts, Buffer.from(mine));
  writeFileSync(mine, "half");
  // A note that a stranger could have written never causes another file to be removed.
  symlinkSync(place.at("work/.keep"), `${drafts}/1.1.${"0".repeat(8)}.${"0".repeat(12)}-00000000`);
  lutimesSync(`${drafts}/1.1.${"0".repeat(8)}.${"0".repeat(12)}-00000000`, 1, 1);
  await removeAbandonedDrafts(drafts);
  const left = readdirSync(place.at("work")).sort();
  assert.deepEqual(left, [basename(mine), ".keep", "file"].sort());
  await forget();
  assert.deepEqual(readdirSync(drafts), []);
  assert.match(readFileSync(place.at("work/file"), "utf8"), /^\d+ *$/);
});
