import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import {
  appendFileSync,
  chmodSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { scratch, treeOf } from "@prefork/testing/scratch";
import { type Watch, type WatchOptions, watchTrees } from "../../src/run/audit.ts";

const onLinux = { skip: process.platform === "linux" ? false : "elsewhere a folder is held by its name" };

const watching = async (options: WatchOptions): Promise<Watch> => {
  const started = await watchTrees(options);
  assert.ok(started.ok, started.ok ? "" : started.reason);
  return started.watch;
};

const breachesOf = async (watch: Watch, base: string): Promise<readonly string[]> => {
  const compared = await watch.compare();
  assert.ok(compared.ok, compared.ok ? "" : compared.reason);
  return compared.breaches.map(({ path, change }) => `${change} ${path.slice(base.length + 1)}`);
};

/** Modification times to the millisecond, of everything but links. */
const timesOf = (folder: string, below = ""): Readonly<Record<string, number>> =>
  Object.assign(
    {},
    ...readdirSync(join(folder, below)).map((name) => {
      const stats = lstatSync(join(folder, below, name));
      const path = join(below, name);
      if (stats.isSymbolicLink()) return {};
      return { [path]: Math.round(stats.mtimeMs), ...(stats.isDirectory() ? timesOf(folder, path) : {}) };
    }),
  );

const workspace = () => {
  const place = scratch();
  place.put("ws/src/main.ts", "main");
  place.put("ws/src/deep/er/x.ts", "x");
  place.put("ws/run.sh", "#!/bin/sh");
  place.put("ws/gone/a", "a");
  place.put("ws/gone/b/c", "c");
  place.put("ws/becomes-folder", "file");
  place.put("ws/becomes-link", "file");
  place.put("ws/becomes-file/inside", "inside");
  place.put("ws/read-only", "keep");
  place.put("ws/memory/notes.md", "notes");
  chmodSync(place.at("ws/run.sh"), 0o755);
  chmodSync(place.at("ws/read-only"), 0o444);
  symlinkSync("src/main.ts", place.at("ws/link"));
  symlinkSync("/nowhere", place.at("ws/dangling"));
  for (const name of ["src/main.ts", "src", "run.sh", "gone/b", "gone"])
    utimesSync(place.at("ws", name), 1_600_000_000, 1_600_000_000);
  return place;
};

test("a tree that nobody touched outside the allowed folder has no breach", async () => {
  using place = workspace();
  await using watch = await watching({ folders: [place.at("ws")], allowed: [place.at("ws/memory")] });
  place.put("ws/memory/new/note.md", "written");
  rmSync(place.at("ws/memory/notes.md"));
  execFileSync("cat", [place.at("ws/src/main.ts")]);
  assert.deepEqual(await breachesOf(watch, place.at("ws")), []);
});

test("every kind of change outside is found by its outcome and undone exactly", async () => {
  using place = workspace();
  const [before, times] = [treeOf(place.at("ws")), timesOf(place.at("ws"))];
  await using watch = await watching({ folders: [place.at("ws")], allowed: [place.at("ws/memory")] });
  appendFileSync(place.at("ws/src/main.ts"), "// more");
  writeFileSync(place.at("ws/src/deep/er/x.ts"), "y");
  chmodSync(place.at("ws/run.sh"), 0o700);
  rmSync(place.at("ws/gone"), { recursive: true });
  rmSync(place.at("ws/becomes-folder"));
  place.put("ws/becomes-folder/x/y", "new");
  rmSync(place.at("ws/becomes-link"));
  symlinkSync("/etc/hostname", place.at("ws/becomes-link"));
  rmSync(place.at("ws/becomes-file"), { recursive: true });
  place.put("ws/becomes-file", "now a file");
  rmSync(place.at("ws/link"));
  symlinkSync("/etc/hostname", place.at("ws/link"));
  rmSync(place.at("ws/dangling"));
  rmSync(place.at("ws/read-only"));
  writeFileSync(place.at("ws/read-only"), "sneaked");
  chmodSync(place.at("ws/read-only"), 0o444);
  chmodSync(place.at("ws/src/deep"), 0o777);
  place.put("ws/made/deep/file", "new");
  symlinkSync("/", place.at("ws/made/link"));
  execFileSync("mkfifo", [place.at("ws/made/pipe")]);
  linkSync(place.at("ws/src/main.ts"), place.at("ws/hard"));
  assert.deepEqual(await breachesOf(watch, place.at("ws")), [
    "changed becomes-file",
    "removed becomes-file/inside",
    "changed becomes-folder",
    "created becomes-folder/x",
    "created becomes-folder/x/y",
    "changed becomes-link",
    "removed dangling",
    "removed gone",
    "removed gone/a",
    "removed gone/b",
    "removed gone/b/c",
    "created hard",
    "changed link",
    "created made",
    "created made/deep",
    "created made/deep/file",
    "created made/link",
    "created made/pipe",
    "changed read-only",
    "changed run.sh",
    "changed src/deep",
    "changed src/deep/er/x.ts",
    "changed src/main.ts",
  ]);
  const reverted = await watch.revert();
  assert.deepEqual(
    reverted.filter((each) => !each.reverted),
    [],
  );
  assert.equal(reverted.length, 23);
  assert.deepEqual(treeOf(place.at("ws")), before);
  assert.deepEqual(timesOf(place.at("ws")), times);
  assert.deepEqual(await breachesOf(watch, place.at("ws")), [], "and compares equal afterwards");
});

test("a write through a name inside the allowed folder to a file outside it is a breach", async () => {
  using place = workspace();
  await using watch = await watching({ folders: [place.at("ws")], allowed: [place.at("ws/memory")] });
  linkSync(place.at("ws/src/main.ts"), place.at("ws/memory/hard"));
  assert.deepEqual(await breachesOf(watch, place.at("ws")), [], "a name in the allowed folder changes nothing outside");
  writeFileSync(place.at("ws/memory/hard"), "through the back door");
  assert.deepEqual(await breachesOf(watch, place.at("ws")), ["changed src/main.ts"]);
  assert.deepEqual(
    (await watch.revert()).map(({ reverted }) => reverted),
    [true],
  );
  assert.equal(treeOf(place.at("ws"))["src/main.ts"], "644 main");
});

test("the allowed folder stays the same one, whatever its name refers to later", async () => {
  using place = workspace();
  await using watch = await watching({ folders: [place.at("ws")], allowed: [place.at("ws/memory")] });
  renameSync(place.at("ws/memory"), place.at("ws/away"));
  symlinkSync("src", place.at("ws/memory"));
  writeFileSync(place.at("ws/memory/main.ts"), "through the new name");
  assert.deepEqual(await breachesOf(watch, place.at("ws")), ["created away", "changed memory", "changed src/main.ts"]);
});

test("what somebody else changed on purpose is accounted for, and left as it is", async () => {
  using place = workspace();
  await using watch = await watching({ folders: [place.at("ws")], allowed: [place.at("ws/memory")] });
  writeFileSync(place.at("ws/src/main.ts"), "edited by the user");
  place.put("ws/src/new/file.ts", "new");
  writeFileSync(place.at("ws/run.sh"), "breach");
  watch.accountFor(place.at("ws/src"));
  assert.deepEqual(await breachesOf(watch, place.at("ws")), ["changed run.sh"]);
  await watch.revert();
  const after = treeOf(place.at("ws"));
  assert.deepEqual(
    [after["src/main.ts"], after["src/new/file.ts"], after["run.sh"]],
    ["644 edited by the user", "644 new", "755 #!/bin/sh"],
  );
});

test("names that are not valid text are watched and restored like others", async () => {
  using place = scratch();
  const odd = Buffer.concat([Buffer.from(`${place.path}/`), Buffer.from([0x66, 0xff, 0xfe])]);
  writeFileSync(odd, "bytes");
  await using watch = await watching({ folders: [place.path], allowed: [] });
  rmSync(odd);
  writeFileSync(Buffer.concat([odd, Buffer.from([0xfd])]), "new");
  assert.equal((await breachesOf(watch, place.path)).length, 2);
  assert.ok((await watch.revert()).every(({ reverted }) => reverted));
  assert.deepEqual(readdirSync(place.path, { encoding: "buffer" }), [Buffer.from([0x66, 0xff, 0xfe])]);
});

test("a planted link is not followed during a restore", async () => {
  using place = workspace();
  using outside = scratch();
  outside.put("main.ts", "untouched");
  await using watch = await watching({ folders: [place.at("ws")], allowed: [] });
  renameSync(place.at("ws/src"), place.at("ws/moved"));
  symlinkSync(outside.path, place.at("ws/src"));
  assert.ok((await breachesOf(watch, place.at("ws"))).includes("changed src"));
  assert.ok((await watch.revert()).every(({ reverted }) => reverted));
  assert.deepEqual(treeOf(outside.path), { "main.ts": "644 untouched" });
  assert.equal(treeOf(place.at("ws"))["src/main.ts"], "644 main");
});

test("beyond its limit, it reports that it cannot watch, or watches and reports what it could not undo", async () => {
  using place = workspace();
  const refusal = async (options: Partial<WatchOptions>): Promise<string> => {
    const started = await watchTrees({ folders: [place.at("ws")], allowed: [], ...options });
    return started.ok ? "watched" : started.reason;
  };
  assert.match(await refusal({ maxFiles: 5 }), /^the watched trees have over 5 files$/);
  assert.match(await refusal({ maxBytes: 10 }), /has more than 10 bytes/);
  assert.match(await refusal({ folders: [place.at("none")] }), /no such file or folder/);
  assert.match(await refusal({ allowed: [place.at("none")] }), /no such file or folder/);
  await using watch = await watching({ folders: [place.at("ws")], allowed: [], maxBytes: 0, beyond: "report" });
  writeFileSync(place.at("ws/run.sh"), "changed");
  assert.deepEqual(await breachesOf(watch, place.at("ws")), ["changed run.sh"]);
  assert.deepEqual(await watch.revert(), [
    {
      path: place.at("ws/run.sh"),
      change: "changed",
      reverted: false,
      reason: "its bytes exceeded the limit and were not kept",
    },
  ]);
});

test("a folder without search permission is restored", async () => {
  using place = scratch();
  mkdirSync(place.at("closed"));
  place.put("closed/inside", "x");
  chmodSync(place.at("closed"), 0o500);
  await using watch = await watching({ folders: [place.path], allowed: [] });
  chmodSync(place.at("closed"), 0o700);
  rmSync(place.at("closed"), { recursive: true });
  assert.deepEqual(await breachesOf(watch, place.path), ["removed closed", "removed closed/inside"]);
  assert.ok((await watch.revert()).every(({ reverted }) => reverted));
  assert.deepEqual(treeOf(place.path), { "closed/": "500", "closed/inside": "644 x" });
  chmodSync(place.at("closed"), 0o700);
});

test("renaming and replacing a watched folder is a breach, and the watched one is restored", onLinux, async () => {
  using place = workspace();
  const ws = place.at("ws");
  await using watch = await watching({ folders: [ws], allowed: [place.at("ws/memory")] });
  place.put("ws/src/main.ts", "evil");
  renameSync(ws, place.at("moved"));
  place.put("ws/src/main.ts", "evil");
  const reverted = await watch.compare().then(() => watch.revert());
  assert.deepEqual(reverted, [
    { path: ws, change: "changed", reverted: false, reason: "the watched folder itself is gone" },
    { path: join(ws, "src/main.ts"), change: "changed", reverted: true },
  ]);
  assert.equal(readFileSync(place.at("moved/src/main.ts"), "utf8"), "main");
});

test("a changed file is kept and restored, however many copies of its name exist", async () => {
  using place = workspace();
  for (let at = 0; at <= 1_001; at += 1) place.put(`kept/run-${at}-main.ts`, "");
  await using watch = await watching({ folders: [place.at("ws")], allowed: [] });
  place.put("ws/src/main.ts", "theirs");
  const compared = await watch.compare();
  assert.ok(compared.ok);
  const [put] = await watch.revertSome(compared.breaches, { folder: place.at("kept"), prefix: "run" });
  assert.deepEqual([put?.reverted, readFileSync(put?.copy ?? "", "utf8")], [true, "theirs"]);
  assert.equal(readFileSync(place.at("ws/src/main.ts"), "utf8"), "main");
});
