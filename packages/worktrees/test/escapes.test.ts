import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import type { Worktrees } from "../src/index.ts";
import { commitUsual, type Files, filesIn, type Ground, openGround, photograph, photographFiles } from "./ground.ts";

test("a task name that would lead elsewhere, or that git does not accept, is refused before anything is created", async () => {
  using ground = openGround();
  commitUsual(ground);
  const worktrees = await ground.open();
  const snapshot = await worktrees.snapshot();
  const before = photographFiles(ground.state);
  const names = [
    "../x",
    "a/b",
    "a..b",
    "x.lock",
    ".x",
    "x.",
    "-x",
    "",
    "x y",
    "x\n",
    "@{",
    "ä",
    "x".repeat(101),
    "x\0",
  ];
  for (const task of names)
    await assert.rejects(worktrees.create({ task, label: "", snapshot }), /cannot be the name of a worktree/, task);
  assert.deepEqual(photographFiles(ground.state), before);
});

test("a tree that was made past git, with names that lead out of it, is not merged", async () => {
  using ground = openGround();
  commitUsual(ground);
  const worktrees = await ground.open();
  const created = await worktrees.create({ task: "one", label: "", snapshot: await worktrees.snapshot() });
  const { path } = created;
  const { git } = ground;
  const raw = (kind: string, content: Buffer): Buffer => {
    writeFileSync(ground.at("raw"), content);
    return Buffer.from(git("hash-object", "-t", kind, "-w", "--literally", ground.at("raw")).trim(), "hex");
  };
  const entry = (mode: string, name: string, id: Buffer): Buffer =>
    Buffer.concat([Buffer.from(`${mode} ${name}\0`), id]);
  const file = raw("blob", Buffer.from("out\n"));
  const hooks = raw("tree", entry("100755", "post-checkout", file));
  const before = photograph(ground);
  const base = git("rev-parse", "prefork/one").trim();
  for (const name of ["..", ".git", ".GIT"]) {
    const tree = raw("tree", entry("40000", name, hooks)).toString("hex");
    git("update-ref", "refs/prefork/tip/one", git("commit-tree", tree, "-p", base, "-m", "forged").trim());
    if (existsSync(path)) {
      rmSync(path, { recursive: true });
      await worktrees.finish("one", { message: "m\n", end: "reported" });
    }
    const [outcome] = await (await ground.open()).merge(["one"]);
    assert.match(
      outcome?.kind === "failed" ? outcome.reason : "",
      /which cannot be a file of a checkout; nothing was merged/,
      name,
    );
  }
  assert.deepEqual(photograph(ground), before);
});

type Escape = {
  readonly name: string;
  /** What the task has done to its worktree when it ends. */
  readonly flee: (facts: { readonly copy: Files; readonly ground: Ground; readonly records: string }) => void;
  /** What is still known about the work. */
  readonly files: readonly string[];
};

const COMMITTED = ["committed"];

const escapes: readonly Escape[] = [
  {
    name: "its .git leads to the checkout's repository",
    flee: ({ copy, ground }) => writeFileSync(join(copy.path, ".git"), `gitdir: ${ground.path}/.git\n`),
    files: ["b", "committed", "made"],
  },
  {
    name: "its .git leads to a repository of its own, with a filter",
    flee: ({ copy, ground }) => {
      const other = join(copy.path, "../other");
      ground.git("init", "-q", other);
      filesIn(other, ground.home).git("config", "filter.evil.clean", `${ground.touch} cat`);
      copy.put(".gitattributes", "* filter=evil\n");
      writeFileSync(join(copy.path, ".git"), `gitdir: ${other}/.git\n`);
    },
    files: [".gitattributes", "b", "committed", "made"],
  },
  {
    name: "its .git is gone",
    flee: ({ copy }) => rmSync(join(copy.path, ".git")),
    files: ["b", "committed", "made"],
  },
  {
    name: "its .git is a repository of its own",
    flee: ({ copy }) => {
      rmSync(join(copy.path, ".git"));
      copy.git("init", "-q");
      copy.git("add", "-A");
      copy.git("commit", "-qm", "own");
    },
    files: ["b", "committed", "made"],
  },
  {
    name: "its folder is a link to the checkout",
    flee: ({ copy, ground }) => {
      renameSync(copy.path, `${copy.path}-moved`);
      symlinkSync(ground.path, copy.path);
    },
    files: COMMITTED,
  },
  {
    name: "its folder is a link to itself elsewhere",
    flee: ({ copy }) => {
      renameSync(copy.path, `${copy.path}-moved`);
      symlinkSync(`${copy.path}-moved`, copy.path);
    },
    files: COMMITTED,
  },
  {
    name: "its records lead to the checkout's head and index",
    flee: ({ ground, records }) => {
      for (const name of ["HEAD", "index"]) {
        rmSync(join(records, name));
        symlinkSync(join(ground.path, ".git", name), join(records, name));
      }
    },
    files: COMMITTED,
  },
  {
    name: "its records say that it lies in the checkout",
    flee: ({ ground, records }) => writeFileSync(join(records, "gitdir"), `${ground.path}/.git\n`),
    files: COMMITTED,
  },
  {
    name: "its records share another repository",
    flee: ({ ground, records }) => {
      ground.git("init", "-q", ground.at("other"));
      writeFileSync(join(records, "commondir"), `${ground.at("other")}/.git\n`);
    },
    files: ["b", "committed", "made"],
  },
  {
    name: "its head is on the user's branch",
    flee: ({ records }) => writeFileSync(join(records, "HEAD"), "ref: refs/heads/main\n"),
    files: ["b", "committed", "made"],
  },
];

const begun = async (ground: Ground): Promise<{ worktrees: Worktrees; copy: Files; records: string }> => {
  commitUsual(ground);
  ground.put("b", "not committed\n");
  const worktrees = await ground.open();
  const created = await worktrees.create({ task: "t", label: "", snapshot: await worktrees.snapshot() });
  const copy = ground.copy(created);
  copy.put("committed", "c\n");
  copy.git("add", "committed");
  copy.git("commit", "-qm", "by the task");
  copy.put("b", "of the task\n");
  copy.put("made", "m\n");
  return { worktrees, copy, records: join(ground.path, ".git/worktrees/t") };
};

for (const { name, flee, files } of escapes)
  test(`a task gets at nothing but its copy when ${name}`, async () => {
    using ground = openGround();
    const { worktrees, copy, records } = await begun(ground);
    const before = photograph(ground);
    flee({ copy, ground, records });
    const work = await worktrees.finish("t", { message: "m\n", end: "reported" });
    assert.deepEqual(work.files, files);
    assert.deepEqual(photograph(ground), before, "finish");
    const moved = existsSync(`${copy.path}-moved`) ? photographFiles(`${copy.path}-moved`) : {};
    assert.equal((await worktrees.merge(["t"]))[0]?.kind, "merged");
    assert.equal(readFileSync(join(ground.path, "committed"), "utf8"), "c\n");
    const merged = photograph(ground);
    await worktrees.prune({ forced: ["t"] });
    assert.deepEqual(photograph(ground), merged, "prune");
    await worktrees.undo(1);
    assert.deepEqual(photograph(ground), before, "undo");
    if (existsSync(`${copy.path}-moved`)) assert.deepEqual(photographFiles(`${copy.path}-moved`), moved);
    assert.equal(existsSync(ground.canary), false);
    ground.git("fsck", "--connectivity-only");
  });

type Wandering = {
  readonly name: string;
  readonly wander: (copy: Files) => void;
  /** The files that its work consists of. */
  readonly files: readonly string[];
  /** The number of commits that no merge would recover: then it is not pruned without asking. */
  readonly behind: number;
  /** Branches that the task created. */
  readonly branches?: readonly string[];
};

const wanderings: readonly Wandering[] = [
  {
    name: "makes another branch and works there",
    wander: ({ git, put }) => {
      git("checkout", "-qb", "mine");
      put("on mine", "o\n");
      git("add", "-A");
      git("commit", "-qm", "mine");
      put("later", "l\n");
    },
    files: ["b", "committed", "later", "made", "on mine"],
    behind: 0,
    branches: ["refs/heads/mine"],
  },
  {
    name: "detaches its head",
    wander: ({ git, put }) => {
      git("checkout", "-q", "--detach");
      put("later", "l\n");
    },
    files: ["b", "committed", "later", "made"],
    behind: 0,
  },
  {
    name: "rewrites its history",
    wander: ({ git }) => git("commit", "-q", "--amend", "-am", "again"),
    files: ["b", "committed", "made"],
    behind: 1,
  },
  {
    name: "begins a history of its own",
    wander: ({ git }) => {
      git("checkout", "-q", "--orphan", "fresh");
      git("add", "-A");
      git("commit", "-qm", "fresh");
    },
    files: ["b", "committed", "made"],
    behind: 1,
    branches: ["refs/heads/fresh"],
  },
  {
    name: "deletes its branch",
    wander: ({ git }) => git("update-ref", "-d", "refs/heads/prefork/t"),
    files: ["b", "committed", "made"],
    behind: 1,
  },
  {
    name: "makes commits and resets them away",
    wander: ({ git, put }) => {
      put("lost", "l\n");
      git("add", "-A");
      git("commit", "-qm", "lost");
      git("reset", "-q", "--hard", "HEAD~1");
    },
    files: ["committed"],
    behind: 1,
  },
  {
    name: "leaves a merge with conflicts behind",
    wander: ({ git, put }) => {
      git("checkout", "-qb", "side", "HEAD~1");
      put("committed", "another\n");
      git("add", "committed");
      git("commit", "-qm", "side");
      git("stash", "-qu");
      git("checkout", "-q", "prefork/t");
      try {
        git("merge", "side");
      } catch {
        // it stops at the conflict
      }
    },
    files: ["committed"],
    behind: 1,
    branches: ["refs/heads/side", "refs/stash"],
  },
  {
    name: "is killed in the middle of a git of its own",
    wander: ({ path }) => {
      const records = readFileSync(join(path, ".git"), "utf8").slice(8).trim();
      writeFileSync(join(records, "index.lock"), "half");
    },
    files: ["b", "committed", "made"],
    behind: 0,
  },
];

for (const { name, wander, files, behind, branches = [] } of wanderings)
  test(`nothing is lost when a task ${name}`, async () => {
    using ground = openGround();
    const { worktrees, copy } = await begun(ground);
    const before = photograph(ground);
    wander(copy);
    const own = (ref: string): boolean => !branches.some((branch) => ref.startsWith(branch));
    const without = (now: ReturnType<typeof photograph>): unknown => ({
      ...now,
      refs: now.refs.filter(own),
      logs: Object.fromEntries(Object.entries(now.logs).filter(([log]) => own(log))),
    });
    const branch = branches[0]?.startsWith("refs/heads/") ? ground.git("rev-parse", branches[0]) : "";
    const work = await worktrees.finish("t", { message: "m\n", end: "reported" });
    assert.deepEqual({ files: work.files, behind: work.leftOut.length }, { files, behind });
    assert.deepEqual(without(photograph(ground)), before);
    assert.deepEqual(await worktrees.work("t"), { tip: work.tip, files, leftOut: work.leftOut }, "the same again");
    if (branch !== "") assert.equal(ground.git("rev-parse", branches[0] ?? ""), branch, "its branch is its own");
    assert.equal((await worktrees.merge(["t"]))[0]?.kind, "merged");
    const [pruned] = await worktrees.prune();
    assert.equal(pruned?.kind, behind > 0 ? "kept" : "removed");
    await worktrees.undo(1);
    assert.deepEqual(without(photograph(ground)), before);
  });

test("a second task of the same name is refused, and the first one keeps its copy", async () => {
  using ground = openGround();
  const { worktrees, copy } = await begun(ground);
  const before = photographFiles(copy.path);
  const snapshot = await worktrees.snapshot();
  await assert.rejects(worktrees.create({ task: "t", label: "", snapshot }), /t already has a worktree/);
  const several = ["x", "x", "x"].map((task) => worktrees.create({ task, label: "", snapshot }));
  const ended = await Promise.allSettled(several);
  assert.equal(ended.filter(({ status }) => status === "fulfilled").length, 1);
  assert.deepEqual(photographFiles(copy.path), before);
  assert.deepEqual(readdirSync(join(ground.path, ".git/worktrees")).sort(), ["t", "x"]);
  assert.equal((await worktrees.find("x")).state.kind, "working");
});

test("a folder or a branch that is there already is left as it is", async () => {
  using ground = openGround();
  commitUsual(ground);
  const worktrees = await ground.open();
  const snapshot = await worktrees.snapshot();
  ground.git("branch", "prefork/taken");
  await assert.rejects(
    worktrees.create({ task: "taken", label: "", snapshot }),
    /the branch prefork\/taken already exists/,
  );
  assert.match(ground.git("branch"), /prefork\/taken/);
  const folder = ground.at("trees");
  ground.git("worktree", "add", "-q", join(folder, "other"));
  await assert.rejects(worktrees.create({ task: "other", label: "", snapshot, folder }), /already exists/);
  assert.equal(readFileSync(join(folder, "other/b"), "utf8"), "b\n");
});

test("worktrees of the user whose folders are away for a while stay known to git", async () => {
  using ground = openGround();
  commitUsual(ground);
  ground.git("worktree", "add", "-q", ground.at("on-a-stick"));
  renameSync(ground.at("on-a-stick"), ground.at("away"));
  const worktrees = await ground.open();
  const snapshot = await worktrees.snapshot();
  const stopped = AbortSignal.abort();
  await assert.rejects(
    worktrees.create({ task: "t", label: "", snapshot, signal: stopped }),
    /no worktree could be created/,
  );
  renameSync(ground.at("away"), ground.at("on-a-stick"));
  assert.match(filesIn(ground.at("on-a-stick"), ground.home).git("status"), /nothing to commit/);
  assert.equal(ground.git("for-each-ref", "refs/prefork", "refs/heads/prefork"), "");
});
