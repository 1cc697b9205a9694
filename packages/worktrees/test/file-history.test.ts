/** Snapshots of a session's files: what is in them, what is never touched, and what comes back byte for byte. */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { chmodSync, existsSync, mkdirSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { seededRandom } from "@prefork/testing/chance";
import { treeOf } from "@prefork/testing/scratch";
import { FileHistory, type FileHistoryOptions, type FileRestoration } from "../src/index.ts";
import { openRepository } from "../src/repository.ts";
import { listIndex } from "../src/snapshot.ts";
import { commitUsual, type Files, type Ground, openGround, photograph, type Tree } from "./ground.ts";

const historyOf = (ground: Ground, options: Partial<FileHistoryOptions> = {}): Promise<FileHistory> =>
  FileHistory.open({
    cwd: ground.path,
    session: "s1",
    folder: ground.at("private"),
    environment: { HOME: ground.home },
    ...options,
  });

const shown = ({ files, skipped }: FileRestoration): readonly string[] => [
  ...files.map(({ path, change, added, deleted }) => `${change} ${path} +${added} -${deleted}`),
  ...skipped.map((why) => `skipped ${why}`),
];

const nothing = (): void => {};

/** Without folders that lost their last file: git does not know empty ones. */
const filesOf = (files: Files): Tree => withoutFolders(photograph(files).files);

const withoutFolders = (tree: Tree): Tree =>
  Object.fromEntries(Object.entries(tree).filter(([name]) => !name.endsWith("/")));

test("files come back byte for byte, with modes and links, and nothing else of the user's changes", async () => {
  using ground = openGround();
  const { put, git, link, drop } = ground;
  commitUsual(ground);
  // Git would convert these, and store them otherwise than they are.
  put(".gitattributes", "*.txt text eol=lf\n*.bin filter=big\n");
  git("config", "filter.big.clean", ground.touch);
  git("config", "filter.big.smudge", ground.touch);
  put("a.txt", "mixed\r\nendings\n");
  put("staged", "staged\n");
  git("add", "staged");
  put("d/e/f", "changed\n");
  put("new/secret", "mine", 0o600);
  put("new/run", "#!/bin/sh\n", 0o755);
  put('odd "name"\n\\x', "odd");
  put(Buffer.from([0xff, 0x41]), "no text");
  put("raw.bin", "raw");
  put(".env", "ignored");
  link("pointer", "a.txt");
  const history = await historyOf(ground);
  const before = photograph(ground);
  const { commit, leftOut } = await history.take();
  assert.deepEqual(leftOut, []);
  assert.deepEqual(photograph(ground), before);
  assert.deepEqual(await history.take(), { commit, leftOut: [] }, "nothing changed: the same snapshot");

  put("a.txt", "other\n");
  put("b", "b2\n", 0o755);
  drop("new");
  put("new", "a file now");
  drop("d");
  put("odd/deep/down", "more");
  drop("pointer");
  put("pointer", "a file now");
  drop(Buffer.from([0xff, 0x41]));
  put(".env", "changed, ignored");
  const changed = photograph(ground);
  const preview = await history.preview(commit);
  assert.deepEqual(photograph(ground), changed);
  const begun: string[] = [];
  const result = await history.restore(commit, (saved) => begun.push(saved.commit));
  assert.deepEqual({ ...result, saved: 0 }, { ...preview, saved: 0 });
  assert.deepEqual(shown(result).toSorted(), [
    "removed new +0 -1",
    "removed odd/deep/down +0 -1",
    "restored a.txt +2 -1",
    "restored b +1 -1",
    "restored d/e/f +1 -0",
    "restored new/run +1 -0",
    "restored new/secret +1 -0",
    "restored pointer +1 -1",
    "restored \ufffdA +1 -0",
  ]);
  const { ".env": env, ...back } = photograph(ground).files;
  const { ".env": kept, ...files } = before.files;
  assert.deepEqual(back, files);
  assert.notEqual(env, kept, "an ignored file is not restored");
  assert.deepEqual({ ...photograph(ground), files: 0 }, { ...before, files: 0 });

  // What was replaced is in the snapshot that was taken first, also for another process.
  assert.deepEqual(begun, [result.saved.commit]);
  await (await historyOf(ground)).restore(result.saved.commit, nothing);
  assert.deepEqual(filesOf(ground), withoutFolders(changed.files));
  assert.equal(existsSync(ground.canary), false, "a filter ran");
});

test("a repository without a commit, and one with conflicts, a submodule and a nested repository", async () => {
  using empty = openGround();
  empty.put("a", "1\n");
  const first = await historyOf(empty);
  const { commit } = await first.take();
  empty.put("a", "2\n");
  empty.put("b", "new\n");
  assert.deepEqual(shown(await first.restore(commit, nothing)), ["restored a +1 -1", "removed b +0 -1"]);
  assert.deepEqual(Object.keys(filesOf(empty)), ["a"]);

  using ground = openGround();
  const { put, git } = ground;
  commitUsual(ground);
  git("init", "-q", "module");
  put("module/x", "x\n");
  git("-C", "module", "add", "x");
  git("-C", "module", "commit", "-qm", "module");
  git("add", "module");
  git("commit", "-qm", "with a module");
  git("init", "-q", "nested");
  put("nested/y", "y\n");
  put("b", "ours\n");
  git("commit", "-qam", "ours");
  git("checkout", "-q", "-b", "other", "HEAD~1");
  put("b", "theirs\n");
  git("commit", "-qam", "theirs");
  assert.throws(() => git("merge", "main"));
  const history = await historyOf(ground);
  const before = photograph(ground);
  const taken = await history.take();
  assert.deepEqual(taken.leftOut, ["nested/"]);
  put("b", "resolved\n");
  put("module/x", "changed\n");
  put("nested/y", "changed\n");
  assert.deepEqual(shown(await history.restore(taken.commit, nothing)), ["restored b +5 -1"]);
  put("module/x", "x\n");
  put("nested/y", "y\n");
  assert.deepEqual(photograph(ground), before);
});

test("files over the limit and files that git-lfs stores stay as they are, and are named", async () => {
  using ground = openGround();
  const { put, git } = ground;
  put("picture.bin", "a pointer\n");
  put(".gitattributes", "*.bin filter=lfs\n");
  git("add", "-A");
  git("commit", "-qm", "one");
  git("config", "filter.lfs.clean", ground.touch);
  const history = await historyOf(ground);
  const { commit } = await history.take();
  put("picture.bin", "what the pointer stands for\n");
  put("huge", Buffer.alloc(65 * 1024 * 1024));
  put("small", "small\n");
  const result = await history.restore(commit, nothing);
  assert.deepEqual(shown(result), ["removed small +0 -1", "skipped picture.bin: git stores it through a filter"]);
  assert.deepEqual(result.saved.leftOut, ["huge"]);
  assert.deepEqual(Object.keys(filesOf(ground)), [".gitattributes", "huge", "picture.bin"]);
  assert.equal(existsSync(ground.canary), false);
});

test("a restore that cannot finish puts everything back, and what would be overwritten unseen is saved first", async () => {
  using ground = openGround();
  const { put, git, drop } = ground;
  commitUsual(ground);
  const history = await historyOf(ground);
  const { commit } = await history.take();
  git("rm", "-q", "--cached", "b");
  put(".gitignore", "*\n");
  put("b", "ignored by now\n");
  const fresh = await historyOf(ground);
  const result = await fresh.restore(commit, nothing);
  assert.ok(shown(result).includes("restored b +1 -1"));
  assert.equal(git(`--git-dir=${ground.at("private/git")}`, "show", `${result.saved.commit}:b`), "ignored by now\n");

  drop("a.txt");
  put("a.txt/x.log", "an ignored file where a file was\n");
  put("d/e/f", "changed\n");
  const before = photograph(ground);
  await assert.rejects(fresh.restore(commit, nothing), { message: /^a\.txt: a folder that contains other files/ });
  assert.deepEqual(photograph(ground), before);
  drop("a.txt");
  const refused = new Error("the journal is full");
  await assert.rejects(
    fresh.restore(commit, () => {
      put("a.txt", "kept\n");
      throw refused;
    }),
    { message: /the journal is full/ },
  );
  drop("a.txt");
  // A file that changes while the rewind runs.
  await assert.rejects(
    fresh.restore(commit, () => put("d/e/f", "just now\n")),
    { message: "d/e/f changed during the rewind; nothing was restored" },
  );
  git("update-ref", "refs/prefork/rewind/s1", "HEAD"); // as earlier versions kept them
  await FileHistory.drop({ cwd: ground.path, session: "s1" });
  assert.equal(git("for-each-ref", "refs/prefork"), "");
});

test("a snapshot adds nothing to the repository, so a secret file is not copied to where anything reads it", async () => {
  for (const kind of [[], ["--object-format=sha256"]]) {
    using ground = openGround(...kind);
    commitUsual(ground);
    ground.git("config", "core.compression", "0");
    ground.put("id_rsa", "KEY of mine\n");
    ground.put("b", "changed\n");
    const before = treeOf(ground.path);
    const history = await historyOf(ground);
    const { commit } = await history.take();
    ground.drop("id_rsa");
    ground.put("b", "changed again\n");
    await history.take();
    await (await historyOf(ground)).restore(commit, nothing);
    assert.deepEqual(treeOf(ground.path), before);
  }
});

test("a checkout in which git would wait for a pipe is refused, or left when the caller stops waiting", {
  timeout: 60_000,
}, async () => {
  using ground = openGround();
  commitUsual(ground);
  const pipe = (name: string): void => {
    ground.put(`${name}/x`, "");
    assert.equal(spawnSync("mkfifo", [`${ground.path}/${name}/.gitignore`]).status, 0);
  };
  const waiting = (name: string): RegExp =>
    new RegExp(`/${name}/\\.gitignore is not a regular file, and git would wait`);
  const history = await historyOf(ground);
  pipe("sub");
  await assert.rejects(history.take(), { message: waiting("sub") });
  await assert.rejects(history.preview("0".repeat(40)), { message: waiting("sub") });
  const worktrees = await ground.open();
  await assert.rejects(worktrees.snapshot(), { message: waiting("sub") });
  ground.drop("sub/.gitignore");
  // Large folders are not searched for pipes.
  pipe("vendor");
  const stop = new AbortController();
  const reason = new Error("no longer needed");
  const taking = history.take(stop.signal);
  setTimeout(() => stop.abort(reason), 300);
  await assert.rejects(taking, { message: /no longer needed$/ });
  ground.drop("vendor/.gitignore");
  assert.match((await history.take()).commit, /^[0-9a-f]{40}$/);
});

test("an index that is too large to be read at every prompt is refused", async () => {
  using ground = openGround();
  commitUsual(ground);
  const { git } = await openRepository(ground.path);
  await assert.rejects(listIndex(git, { maxNames: 2 }), { message: "the index has more than 2 names" });
  await assert.rejects(listIndex(git, { maxBytes: 10 }), { message: /it printed more than/ });
  truncateSync(`${ground.path}/.git/index`, 65 * 1024 * 1024);
  await assert.rejects((await historyOf(ground)).take(), {
    message: /index is not a regular file, or is larger than 64 MiB$/,
  });
});

test("names of git's own files in a forged index are neither kept nor restored", async () => {
  using ground = openGround();
  commitUsual(ground);
  ground.put("xgit/config", "[core]\n\tfsmonitor = run me\n");
  ground.git("add", "xgit/config");
  ground.drop("xgit");
  const index = readFileSync(`${ground.path}/.git/index`);
  index.write(".git/config", index.indexOf("xgit/config"), "latin1");
  index.set(createHash("sha1").update(index.subarray(0, -20)).digest(), index.length - 20);
  writeFileSync(`${ground.path}/.git/index`, index);
  const config = readFileSync(`${ground.path}/.git/config`);
  const history = await historyOf(ground);
  const { commit } = await history.take();
  ground.put("b", "changed\n");
  await history.restore(commit, nothing);
  assert.deepEqual(readFileSync(`${ground.path}/.git/config`), config);
});

test("any sequence of changes comes back at every point", async () => {
  using ground = openGround();
  commitUsual(ground);
  const chance = seededRandom(3);
  const names = ["a.txt", "b", "d/e/f", "d/e/g", "d/h", "n1", "n2/x", "tool.sh"];
  const points: { readonly commit: string; readonly files: Tree }[] = [];
  let history = await historyOf(ground);
  for (let step = 0; step < 7; step += 1) {
    for (let count = 0; count < 3; count += 1) change(ground, chance.one(names), chance.below(5));
    if (chance.happens(0.3)) history = await historyOf(ground);
    if (chance.happens(0.3)) ground.git("add", "-A");
    points.push({ commit: (await history.take()).commit, files: filesOf(ground) });
    if (!chance.happens(0.6)) continue;
    const back = chance.one(points);
    await history.restore(back.commit, nothing);
    assert.deepEqual(filesOf(ground), back.files, `step ${step}`);
  }
});

const change = ({ put, drop, link, path }: Ground, name: string, how: number): void => {
  const folder = name.split("/").slice(0, -1).join("/");
  if (folder !== "" && !existsSync(`${path}/${folder}`)) mkdirSync(`${path}/${folder}`, { recursive: true });
  if (existsSync(`${path}/${name}`)) drop(name);
  if (how === 1) link(name, `to-${how}`);
  else if (how > 1) put(name, `${name} ${Math.imul(how, 7919)}\n`.repeat(how));
  if (how === 4) chmodSync(`${path}/${name}`, 0o700);
};

test("a restore that is killed half done is taken back from the snapshot that it took first", async () => {
  using ground = openGround();
  const { put, drop } = ground;
  commitUsual(ground);
  const { commit } = await (await historyOf(ground)).take();
  put("a.txt", "changed\n");
  put("new/file", "new\n");
  drop("d");
  const before = filesOf(ground);
  const words = [
    fileURLToPath(new URL("restore-process.ts", import.meta.url)),
    ground.path,
    ground.at("private"),
    commit,
  ];
  const { signal, stdout } = spawnSync(process.execPath, [...process.execArgv, ...words, "restore half done"], {
    encoding: "utf8",
    env: { ...process.env, HOME: ground.home },
  });
  assert.equal(signal, "SIGKILL");
  await (await historyOf(ground)).restore(stdout.trim(), nothing);
  assert.deepEqual(filesOf(ground), before);
  assert.deepEqual(
    photograph(ground).gitFolder.filter((name) => name.includes("stage")),
    [],
  );
});
