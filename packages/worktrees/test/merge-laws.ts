/** Random edits on both sides of a fork, and what must hold for their merge.
 *  Elsewhere: how often (merge.test.ts, worktrees-soak.ts). */

import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { chmodSync, lstatSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import fc from "fast-check";
import type { MergeOutcome, OnConflict } from "../src/index.ts";
import { type Files, type Ground, openGround, photograph } from "./ground.ts";

const PATHS = ["a", "b", "c.txt", "d/x", "d/y", "d/deep/z", "new", "other/new"] as const;

type Edit =
  | { readonly kind: "line"; readonly path: string; readonly line: number; readonly text: string }
  | { readonly kind: "drop" | "mode" | "link" | "folder" | "binary"; readonly path: string };

const OTHERS = ["drop", "mode", "link", "folder", "binary"] as const;
const path = fc.constantFrom(...PATHS);
const line = fc.record({
  kind: fc.constant("line" as const),
  path,
  line: fc.integer({ min: 0, max: 11 }),
  text: fc.constantFrom("x", "y"),
});
const edits = fc.array(
  fc.oneof(
    { weight: 5, arbitrary: line },
    { weight: 3, arbitrary: fc.record({ kind: fc.constantFrom(...OTHERS), path }) },
  ),
  { maxLength: 7 },
);

export type Case = {
  /** Uncommitted changes when the task branches off. */
  readonly loose: readonly Edit[];
  readonly own: readonly Edit[];
  readonly task: readonly Edit[];
  readonly onConflict: OnConflict;
};

export const cases: fc.Arbitrary<Case> = fc.record({
  loose: edits,
  own: edits,
  task: edits,
  onConflict: fc.constantFrom<OnConflict>("markers", "mine", "theirs", "skip", "stop"),
});

const isFile = (file: string): boolean => lstatSync(file, { throwIfNoEntry: false })?.isFile() ?? false;

const makeRoom = (top: string, name: string): void => {
  for (let at = name.indexOf("/"); at > 0; at = name.indexOf("/", at + 1)) {
    const above = join(top, name.slice(0, at));
    if (!lstatSync(above, { throwIfNoEntry: false })?.isDirectory()) rmSync(above, { force: true });
  }
  mkdirSync(dirname(join(top, name)), { recursive: true });
};

const apply = ({ path: top }: Files, edit: Edit): void => {
  const file = join(top, edit.path);
  const drop = (): void => rmSync(file, { recursive: true, force: true });
  if (edit.kind === "mode") {
    if (isFile(file)) chmodSync(file, 0o755);
    return;
  }
  if (edit.kind !== "drop") makeRoom(top, edit.path);
  if (edit.kind !== "line" || !isFile(file)) drop();
  switch (edit.kind) {
    case "drop":
      return;
    case "link":
      symlinkSync("c.txt", file);
      return;
    case "binary":
      writeFileSync(file, Buffer.from([0, 1, 2, edit.path.length]));
      return;
    case "folder":
      mkdirSync(file);
      writeFileSync(join(file, "inside"), `in ${edit.path}\n`);
      return;
    case "line": {
      const lines = isFile(file) ? readFileSync(file, "latin1").split("\n") : [];
      lines[edit.line] = `${edit.path} ${edit.text} ${edit.line}`;
      writeFileSync(file, lines.join("\n"), "latin1");
    }
  }
};

/** The test's git, with its own index. */
const gitWith = (files: Files, index: string, words: readonly string[]): string =>
  execFileSync("git", ["-c", "merge.renames=true", "-c", "merge.directoryRenames=false", ...words], {
    cwd: files.path,
    encoding: "utf8",
    env: { ...process.env, GIT_INDEX_FILE: index, GIT_CONFIG_GLOBAL: "/dev/null" },
  }).trim();

/** The content of a checkout, as a tree. */
const treeIn = (ground: Ground, files: Files): string => {
  const index = ground.at("index-of-the-test");
  rmSync(index, { force: true });
  gitWith(files, index, ["add", "-A"]);
  return gitWith(files, index, ["write-tree"]);
};

/** Paths with mode and blob. A commit id inside a name is removed, because our commits have other ids. */
const entriesOf = ({ git }: Files, tree: string): ReadonlyMap<string, string> =>
  new Map(
    git("ls-tree", "-r", "-z", tree)
      .split("\0")
      .filter(Boolean)
      .map((entry) => {
        const [facts = "", name = ""] = entry.split("\t");
        return [name.replace(/~[0-9a-f]{40}(_\d+)?/, "~"), facts] as const;
      }),
  );

type Expected = { readonly tree: string; readonly conflicted: ReadonlySet<string> };

const commit = ({ git }: Files, tree: string, ...parent: readonly string[]): string =>
  git("commit-tree", tree, ...parent.flatMap((id) => ["-p", id]), "-m", "m").trim();

/** The same merge with git alone. */
const expectedOf = (files: Files, trees: { base: string; mine: string; theirs: string }): Expected => {
  const base = commit(files, trees.base);
  const words = ["-c", "merge.renames=true", "-c", "merge.directoryRenames=false", "merge-tree", "--write-tree", "-z"];
  const sides = [commit(files, trees.mine, base), commit(files, trees.theirs, base)];
  const { stdout } = spawnSync("git", [...words, "--no-messages", ...sides], { cwd: files.path, encoding: "utf8" });
  const [tree = "", ...rest] = stdout.split("\0").filter(Boolean);
  return {
    tree,
    conflicted: new Set(rest.map((entry) => entry.slice(entry.indexOf("\t") + 1).replace(/~[0-9a-f]{40}(_\d+)?/, "~"))),
  };
};

const textOf = (entry: string | undefined): string | undefined => /^100\d{3} blob ([0-9a-f]+)$/.exec(entry ?? "")?.[1];

/** `git merge-file` of one path; undefined if it has no answer. */
const mergedFile = (
  ground: Ground,
  ids: readonly (string | undefined)[],
  side: readonly string[],
): Buffer | undefined => {
  const files = ids.map((id, at) => {
    const file = ground.at(`side-${at}`);
    writeFileSync(file, id === undefined ? "" : execFileSync("git", ["cat-file", "blob", id], { cwd: ground.path }));
    return file;
  });
  const { status, stdout } = spawnSync("git", ["merge-file", "-p", "-q", ...side, ...files]);
  return status === 0 ? stdout : undefined;
};

export const assertMerge = async ({
  loose,
  own,
  task,
  onConflict,
}: Case): Promise<MergeOutcome["kind"] | undefined> => {
  using ground = openGround();
  const { put, git } = ground;
  for (const name of PATHS.slice(0, 6)) put(name, Array.from({ length: 12 }, (_, at) => `${name} ${at}\n`).join(""));
  git("add", "-A");
  git("commit", "-qm", "one");
  for (const edit of loose) apply(ground, edit);
  const worktrees = await ground.open();
  const snapshot = await worktrees.snapshot();
  assert.equal(snapshot.tree, treeIn(ground, ground), "the snapshot is what git would add");
  const created = await worktrees.create({ task: "t", label: "", snapshot });
  const copy = ground.copy(created);
  for (const edit of task) apply(copy, edit);
  const theirs = treeIn(ground, copy);
  await worktrees.finish("t", { message: "m\n", end: "reported" });
  for (const edit of own) apply(ground, edit);
  if (!(await worktrees.table()).worktrees.get("t")?.files) return undefined; // it was empty and was removed
  const trees = { base: snapshot.tree, mine: treeIn(ground, ground), theirs };
  const expected = expectedOf(ground, trees);
  const before = photograph(ground);
  const [outcome] = await worktrees.merge(["t"], { onConflict });
  assert.ok(outcome && outcome.kind !== "failed", JSON.stringify(outcome));
  assert.deepEqual(
    new Set(outcome.conflicts.map(({ path: name }) => name.replace(/~[0-9a-f]{40}(_\d+)?/, "~"))),
    expected.conflicted,
  );
  assertKept(ground, Object.values(trees));
  if (outcome.kind === "conflicts") {
    assert.equal(outcome.isSkipped, onConflict === "skip");
    assert.deepEqual(photograph(ground), before, "nothing is merged");
    return outcome.kind;
  }
  assertResult(ground, { trees, expected, onConflict });
  assert.deepEqual({ ...photograph(ground), files: {} }, { ...before, files: {} });
  await worktrees.undo(1);
  assert.deepEqual(photograph(ground), before, "undo restores exactly");
  return outcome.kind;
};

type Result = {
  readonly trees: { readonly base: string; readonly mine: string; readonly theirs: string };
  readonly expected: Expected;
  readonly onConflict: OnConflict;
};

const assertResult = (ground: Ground, { trees, expected, onConflict }: Result): void => {
  const now = entriesOf(ground, treeIn(ground, ground));
  const clean = [...entriesOf(ground, expected.tree)].filter(([name]) => !expected.conflicted.has(name));
  const stands = [...now].filter(([name]) => !expected.conflicted.has(name));
  assert.deepEqual(new Map(stands), new Map(clean), "as git merges the trees");
  const [base, mine, theirs] = [trees.base, trees.mine, trees.theirs].map((tree) => entriesOf(ground, tree));
  for (const name of new Set([...now.keys(), ...expected.conflicted])) {
    const sides = [mine, base, theirs].map((side) => textOf(side?.get(name)));
    const isConflict = expected.conflicted.has(name);
    const side = onConflict === "mine" ? ["--ours"] : onConflict === "theirs" ? ["--theirs"] : [];
    if (sides.every((id) => id !== undefined) && (!isConflict || side.length > 0)) {
      const content = mergedFile(ground, sides, isConflict ? side : []);
      const id = textOf(now.get(name));
      if (content && id)
        assert.deepEqual(execFileSync("git", ["cat-file", "blob", id], { cwd: ground.path }), content, name);
    } else if (
      isConflict &&
      side.length > 0 &&
      !sides
        .slice(0, 1)
        .concat(sides[2])
        .every((id) => id !== undefined)
    )
      assert.equal(now.get(name), (onConflict === "mine" ? mine : theirs)?.get(name), name);
  }
};

/** Every content that any side had is reachable from a ref, or is among the files. */
const assertKept = (ground: Ground, trees: readonly string[]): void => {
  const reachable = new Set(
    ground
      .git("rev-list", "--objects", "--all", "--no-object-names", "--reflog")
      .concat(ground.git("ls-tree", "-r", "--format=%(objectname)", treeIn(ground, ground)))
      .split("\n"),
  );
  for (const tree of trees)
    for (const [name, entry] of entriesOf(ground, tree))
      assert.ok(reachable.has(entry.split(" ")[2] ?? ""), `the content of ${name} is lost`);
};
