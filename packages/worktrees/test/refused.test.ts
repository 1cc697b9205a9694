import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
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
import { treeOf } from "@prefork/testing/scratch";
import { FileHistory, WorktreeError } from "../src/index.ts";
import { commitUsual, type Files, filesIn, type Ground, openGround, photograph } from "./ground.ts";

/** Two branches that cannot be merged; `main` is checked out. */
const diverge = ({ git, put }: Files): void => {
  git("checkout", "-qb", "other");
  put("b", "other\n");
  git("commit", "-qam", "other");
  git("checkout", "-q", "main");
  put("b", "main\n");
  git("commit", "-qam", "main");
};

const tryTo = (work: () => unknown): void => {
  try {
    work();
  } catch {
    // it stops at a conflict
  }
};

type Refusal = {
  readonly name: string;
  readonly prepare: (ground: Ground) => void;
  readonly reason: WorktreeError["reason"];
  readonly words: RegExp;
};

const refusals: readonly Refusal[] = [
  {
    name: "an index in conflict",
    prepare: (ground) => {
      diverge(ground);
      ground.put("b", "stashed\n");
      ground.git("stash");
      ground.put("b", "in the way\n");
      ground.git("commit", "-qam", "three");
      tryTo(() => ground.git("stash", "pop"));
    },
    reason: "not-ready",
    words: /^this checkout has unresolved conflicts: b; resolve and git add them first$/,
  },
  {
    name: "a merge",
    prepare: (ground) => {
      diverge(ground);
      tryTo(() => ground.git("merge", "other"));
    },
    reason: "not-ready",
    words: /^a merge is in progress .*git merge --abort/,
  },
  {
    name: "a rebase",
    prepare: (ground) => {
      diverge(ground);
      tryTo(() => ground.git("rebase", "other"));
    },
    reason: "not-ready",
    words: /^a rebase is in progress .*git rebase --continue or --abort/,
  },
  {
    name: "a cherry-pick",
    prepare: (ground) => {
      diverge(ground);
      tryTo(() => ground.git("cherry-pick", "other"));
    },
    reason: "not-ready",
    words: /^a cherry-pick is in progress/,
  },
  {
    name: "a revert",
    prepare: (ground) => {
      diverge(ground);
      ground.put("b", "more\n");
      ground.git("commit", "-qam", "more");
      tryTo(() => ground.git("revert", "--no-edit", "HEAD~1"));
    },
    reason: "not-ready",
    words: /^a revert is in progress/,
  },
  {
    name: "git am",
    prepare: (ground) => {
      diverge(ground);
      writeFileSync(ground.at("patch"), ground.git("format-patch", "--stdout", "main..other"));
      tryTo(() => ground.git("am", ground.at("patch")));
    },
    reason: "not-ready",
    words: /git am --abort/,
  },
  {
    name: "untracked files over the limit",
    prepare: ({ put }) => put("huge", Buffer.alloc(65 * 1024 * 1024)),
    reason: "too-large",
    words: /^untracked files take 65\.0 MiB, and the limit is 64\.0 MiB: huge \(65\.0 MiB\)\. Ignore or commit them/,
  },
];

for (const { name, prepare, reason, words } of refusals)
  test(`no task branches off from, and none is merged into, a checkout with ${name}`, async () => {
    using ground = openGround();
    commitUsual(ground);
    const worktrees = await ground.open();
    const created = await worktrees.create({ task: "before", label: "", snapshot: await worktrees.snapshot() });
    ground.copy(created).put("new", "n\n");
    await worktrees.finish("before", { message: "m\n", end: "reported" });
    prepare(ground);
    const before = photograph(ground);
    await assert.rejects(worktrees.snapshot(), (error: unknown) => {
      assert.ok(error instanceof WorktreeError);
      assert.equal(error.reason, reason);
      assert.match(error.message, words);
      return true;
    });
    if (reason === "not-ready") {
      const [outcome] = await worktrees.merge(["before"]);
      assert.ok(outcome?.kind === "failed");
      assert.match(outcome.reason, words);
    }
    assert.deepEqual(photograph(ground), before);
  });

test("a repository whose folders lead elsewhere, or would keep us waiting, is not written to", async () => {
  using ground = openGround();
  commitUsual(ground);
  const git = (name: string): string => join(ground.path, ".git", name);
  const elsewhere = ground.at("elsewhere");
  mkdirSync(elsewhere);
  const linked = (name: string) => (): void => {
    mkdirSync(join(git(name), ".."), { recursive: true });
    symlinkSync(elsewhere, git(name));
  };
  const forms: Readonly<Record<string, () => void>> = {
    "refs/prefork": linked("refs/prefork"),
    "refs/heads/prefork": linked("refs/heads/prefork"),
    "logs/refs/heads/prefork": linked("logs/refs/heads/prefork"),
    "objects/00": linked("objects/00"),
    "refs/prefork/saved/1": () => {
      mkdirSync(git("refs/prefork/saved"), { recursive: true });
      writeFileSync(git("refs/prefork/saved/1"), "ref: refs/heads/main\n");
    },
    index: () => {
      renameSync(git("index"), git("index.kept"));
      execFileSync("mkfifo", [git("index")]);
    },
  };
  for (const [name, prepare] of Object.entries(forms)) {
    rmSync(git(name === "index" ? "none" : name), { recursive: true, force: true });
    prepare();
    await assert.rejects(
      async () => {
        const worktrees = await ground.open();
        await worktrees.create({ task: "t", label: "", snapshot: await worktrees.snapshot() });
      },
      (error: unknown) => error instanceof WorktreeError && error.message.includes(git(name)),
      name,
    );
    rmSync(git(name));
    if (name.startsWith("refs/prefork")) rmSync(git("refs/prefork"), { recursive: true, force: true });
  }
  assert.deepEqual(readdirSync(elsewhere), []);
  renameSync(git("index.kept"), git("index"));
  const worktrees = await ground.open();
  const created = await worktrees.create({ task: "t", label: "", snapshot: await worktrees.snapshot() });
  ground.copy(created).put("new", "n\n");
  // If one of our ref names points to a branch, the name is replaced and the branch stays.
  const tip = ground.git("rev-parse", "main").trim();
  mkdirSync(git("refs/prefork/tip"), { recursive: true });
  writeFileSync(git("refs/prefork/tip/t"), "ref: refs/heads/main\n");
  await worktrees.finish("t", { message: "m\n", end: "reported" });
  assert.equal(ground.git("rev-parse", "main").trim(), tip);
  assert.doesNotMatch(readFileSync(git("refs/prefork/tip/t"), "utf8"), /ref:/);
});

test("a bare repository and a folder in none are refused with the way out", async () => {
  using ground = openGround();
  commitUsual(ground);
  ground.git("clone", "-q", "--bare", ".", ground.at("bare.git"));
  mkdirSync(ground.at("none"));
  await assert.rejects(ground.open({ cwd: ground.at("bare.git") }), /bare and has no files/);
  await assert.rejects(ground.open({ cwd: join(ground.path, ".git") }), /bare and has no files|cannot read/);
  await assert.rejects(
    ground.open({ cwd: ground.at("none") }),
    /not in a git repository, which worktrees need \(git init\)/,
  );
});

test("a repository that says its files lie elsewhere is refused, wherever that is", async () => {
  for (const elsewhere of ["above", "beside", "/"] as const) {
    using ground = openGround();
    commitUsual(ground);
    mkdirSync(ground.at("beside"));
    const path = { above: ground.at(), beside: ground.at("beside"), "/": "/" }[elsewhere];
    ground.git("config", "core.worktree", path);
    await assert.rejects(ground.open(), /core\.worktree|not in a git repository|cannot read/);
  }
});

test("a .git that leads to a repository without a record of this folder is refused, and nothing is written there", async () => {
  using ground = openGround();
  using other = openGround();
  commitUsual(other);
  const before = treeOf(other.path);
  const refused = { message: /\.git leads to .*, which has no record of this folder/ };
  const dot = join(ground.path, ".git");
  const forms: Readonly<Record<string, () => void>> = {
    "a file": () => writeFileSync(dot, `gitdir: ${other.path}/.git\n`),
    "a link": () => symlinkSync(join(other.path, ".git"), dot),
    "a folder that shares another repository": () => {
      for (const name of ["objects", "refs"]) mkdirSync(join(dot, name), { recursive: true });
      writeFileSync(join(dot, "HEAD"), "ref: refs/heads/main\n");
      writeFileSync(join(dot, "commondir"), `${other.path}/.git\n`);
    },
  };
  for (const [name, prepare] of Object.entries(forms)) {
    rmSync(dot, { recursive: true });
    prepare();
    await assert.rejects(ground.open(), refused, name);
    const history = { cwd: ground.path, session: "s1", folder: ground.at("private") };
    await assert.rejects(FileHistory.open(history), refused, name);
  }
  assert.deepEqual(treeOf(other.path), before);
  // A worktree that the repository knows, and a repository that names the folder itself.
  other.git("worktree", "add", "-q", ground.at("linked"));
  await FileHistory.open({ cwd: ground.at("linked"), session: "s1", folder: ground.at("private") });
  other.git("clone", "-q", "--separate-git-dir", ground.at("apart"), ".", ground.at("files"));
  const apart = { cwd: ground.at("files"), session: "s1", folder: ground.at("private") };
  await assert.rejects(FileHistory.open(apart), refused);
  other.git("-C", ground.at("files"), "config", "core.worktree", ground.at("files"));
  await FileHistory.open(apart);
});

test("a submodule is a checkout like any other", async () => {
  using ground = openGround();
  commitUsual(ground);
  ground.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", ground.path, "module");
  const module = filesIn(join(ground.path, "module"), ground.home);
  const worktrees = await ground.open({ cwd: module.path });
  const before = photograph(module);
  const created = await worktrees.create({ task: "t", label: "", snapshot: await worktrees.snapshot() });
  ground.copy(created).put("b", "changed\n");
  await worktrees.finish("t", { message: "m\n", end: "reported" });
  assert.deepEqual(photograph(module), before);
  assert.equal((await worktrees.merge(["t"]))[0]?.kind, "merged");
  await worktrees.undo(1);
  assert.deepEqual(photograph(module), before);
});

test("work in a subfolder continues in the same subfolder of the worktree", async () => {
  using ground = openGround();
  commitUsual(ground);
  ground.put("build/out", "ignored\n");
  for (const folder of ["d/e", "build"]) {
    const worktrees = await ground.open({ cwd: join(ground.path, folder) });
    const task = folder.replace("/", "-");
    const created = await worktrees.create({ task, label: "", snapshot: await worktrees.snapshot() });
    assert.equal(created.cwd, join(created.path, folder));
    execFileSync("ls", { cwd: created.cwd });
  }
});

test("a tree that is far larger than the checkout is refused before anything is written", async () => {
  using ground = openGround();
  commitUsual(ground);
  ground.put("large", Buffer.alloc(40_000_000, "a")); // packs to 40 KB
  const blob = ground.git("hash-object", "-w", "large").trim();
  ground.drop("large");
  const names = Array.from({ length: 8 }, (_, at) => `claimed/${at}`);
  for (const name of names) ground.git("update-index", "--add", "--cacheinfo", `100644,${blob},${name}`);
  ground.git("update-index", "--skip-worktree", ...names); // so that git does not miss the files
  const worktrees = await ground.open();
  const snapshot = await worktrees.snapshot();
  await assert.rejects(
    worktrees.create({ task: "t", label: "", snapshot }),
    /a worktree would take 305\.2 MiB, and the same files take 0\.0 MiB in the checkout/,
  );
  assert.deepEqual(
    readdirSync(ground.at("state"), { recursive: true }).filter((name) => /claimed/.test(String(name))),
    [],
  );
});

test("an index that passes off another object as an unchanged file is not believed", async () => {
  using ground = openGround();
  commitUsual(ground);
  ground.put("f", "hi\n");
  ground.put("other", "ho\n");
  ground.git("add", "f");
  const [mine, other] = ["f", "other"].map((name) => ground.git("hash-object", "-w", name).trim());
  ground.git("config", "core.checkStat", "minimal");
  ground.git("config", "core.trustctime", "false");
  utimesSync(join(ground.path, "f"), 1_577_836_800, 1_577_836_800);
  ground.git("update-index", "--refresh");
  const index = join(ground.path, ".git/index");
  const forged = readFileSync(index).toString("latin1").slice(0, -20).replace(bytesIn(mine), bytesIn(other));
  const body = Buffer.from(forged, "latin1");
  writeFileSync(index, Buffer.concat([body, createHash("sha1").update(body).digest()]));
  rmSync(join(ground.path, "f"));
  ground.put("f", "hi\n"); // unpacked elsewhere, with the same size and time
  utimesSync(join(ground.path, "f"), 1_577_836_800, 1_577_836_800);
  assert.doesNotMatch(ground.git("diff-files", "--name-only"), /^f$/m); // git believes it
  const worktrees = await ground.open();
  const created = await worktrees.create({ task: "t", label: "", snapshot: await worktrees.snapshot() });
  assert.equal(readFileSync(join(created.path, "f"), "utf8"), "hi\n");
});

const bytesIn = (hash: string | undefined): string => Buffer.from(hash ?? "", "hex").toString("latin1");
