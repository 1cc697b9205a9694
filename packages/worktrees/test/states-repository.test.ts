/** Repositories of every shape: heads, indexes, marks, formats, nested and borrowed ones. Files of every kind are in
 *  states.test.ts. */

import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { filesIn } from "./ground.ts";
import { assertLife, type State, usualEdit } from "./laws.ts";

const states: readonly State[] = [
  {
    name: "a repository in the repository",
    prepare: ({ put, path, home, git }) => {
      mkdirSync(join(path, "nested"));
      const nested = filesIn(join(path, "nested"), home);
      nested.git("init", "-q");
      nested.put("inside", "i\n");
      nested.git("add", "-A");
      nested.git("commit", "-qm", "nested");
      put("beside", "b\n");
      git("status");
    },
    copyHolds: ({ path }, checkout) => {
      assert.equal(existsSync(join(path, "nested")), false);
      assert.equal(existsSync(join(path, "beside")), true);
      assert.equal(existsSync(join(checkout.path, "nested/inside")), true);
    },
    mergedHolds: ({ path }) => assert.equal(readFileSync(join(path, "b"), "utf8"), "b of the task\n"),
    also: ({ snapshot }) => assert.deepEqual(snapshot.leftOut, ["nested/"]),
  },
  {
    name: "a detached head",
    prepare: ({ git, put }) => {
      git("checkout", "-q", "--detach");
      put("b", "changed\n");
    },
  },
  {
    name: "a worktree of a worktree",
    prepare: ({ git, at, put }) => {
      git("worktree", "add", "-q", at("second"));
      put("b", "changed in the first\n");
    },
    from: ({ at, home }) => {
      const second = filesIn(at("second"), home);
      second.put("b", "changed in the second\n");
      second.put("untracked", "u\n");
      return second;
    },
  },
  { name: "no commit yet, and nothing added", withoutUsual: true, prepare: ({ put }) => put("b", "b\n") },
  {
    name: "no commit yet, with an index",
    withoutUsual: true,
    prepare: ({ put, git }) => {
      put("b", "b\n");
      git("add", "b");
      put("b", "b2\n");
      put("c", "c\n");
    },
  },
  { name: "no commit yet, and no file", withoutUsual: true, prepare: () => {} },
  {
    name: "files marked assume-unchanged and skip-worktree, changed all the same",
    prepare: ({ put, git }) => {
      git("update-index", "--assume-unchanged", "a.txt");
      git("update-index", "--skip-worktree", "b", "tool.sh");
      put("a.txt", "changed\n");
      put("b", "changed here\n");
    },
    edit: ({ put }) => {
      put("a.txt", "changed\nby the task\n");
      put("b", "changed here\nby the task\n");
      put("tool.sh", "#!/bin/bash\n");
    },
  },
  {
    name: "a file marked skip-worktree that is not there",
    prepare: ({ drop, git }) => {
      git("update-index", "--skip-worktree", "b");
      drop("b");
    },
    copyHolds: ({ path }) => assert.equal(readFileSync(join(path, "b"), "utf8"), "b\n"),
    edit: ({ put }) => {
      put("b", "b of the task\n");
      put("new", "n\n");
    },
  },
  {
    name: "intent to add",
    prepare: ({ put, git }) => {
      put("intended", "i\n");
      git("add", "-N", "intended");
    },
    edit: (copy) => {
      usualEdit(copy);
      copy.put("intended", "changed\n");
    },
  },
  {
    name: "a split index",
    prepare: ({ git, put }) => {
      git("update-index", "--split-index");
      put("b", "changed\n");
      git("add", "b");
      put("c", "c\n");
    },
  },
  {
    name: "names of objects by SHA-256",
    init: ["--object-format=sha256"],
    prepare: ({ put }) => put("b", "changed\n"),
  },
  {
    name: "files that the user ignores everywhere",
    prepare: ({ home, put }) => {
      writeFileSync(join(home, ".gitconfig"), "[core]\n\texcludesFile = ~/ignored\n");
      writeFileSync(join(home, "ignored"), "*.mine\n");
      put("x.mine", "mine\n");
    },
    also: ({ created }) => assert.equal(existsSync(join(created.path, "x.mine")), false),
  },
  {
    name: "large untracked files that are left out",
    limit: { bytes: 1_000, over: "leave-out" },
    prepare: ({ put }) => {
      put("large", "l".repeat(2_000));
      put("small", "s".repeat(500));
    },
    copyHolds: ({ path }) => {
      assert.equal(existsSync(join(path, "large")), false);
      assert.equal(existsSync(join(path, "small")), true);
    },
    mergedHolds: ({ path }) => assert.equal(readFileSync(join(path, "large"), "utf8"), "l".repeat(2_000)),
    also: ({ snapshot }) => assert.deepEqual(snapshot.leftOut, ["large"]),
  },
  {
    name: "an index.lock that another git has left",
    prepare: ({ path, put }) => {
      writeFileSync(join(path, ".git/index.lock"), "");
      put("b", "changed\n");
    },
    edit: usualEdit,
  },
  {
    name: "a file changed in the same moment and to the same size as the index has it",
    prepare: ({ git, put, path }) => {
      const at = new Date(1_700_000_000_000);
      put("racy", "one\n");
      utimesSync(join(path, "racy"), at, at);
      git("add", "racy");
      put("racy", "two\n");
      utimesSync(join(path, "racy"), at, at);
      utimesSync(join(path, ".git/index"), at, at);
    },
    also: ({ created }) => assert.equal(readFileSync(join(created.path, "racy"), "utf8"), "two\n"),
  },
  {
    name: "submodules",
    prepare: ({ at, home, git }) => {
      mkdirSync(at("module"));
      const module = filesIn(at("module"), home);
      module.git("init", "-q");
      module.put("m", "m\n");
      module.git("add", "-A");
      module.git("commit", "-qm", "module");
      git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", at("module"), "module");
      git("commit", "-qm", "with a module");
    },
    copyHolds: ({ path }) => assert.equal(existsSync(join(path, "module/m")), false),
    mergedHolds: ({ path }) => assert.equal(readFileSync(join(path, "module/m"), "utf8"), "m\n"),
  },
  {
    name: "a sparse checkout",
    prepare: ({ git, put }) => {
      put("far/away", "far\n");
      put("far/off", "off\n");
      put("near/by", "near\n");
      git("add", "-A");
      git("commit", "-qm", "wide");
      git("sparse-checkout", "set", "--cone", "near");
      put("near/by", "changed\n");
    },
    edit: ({ put, path }) => {
      assert.equal(existsSync(join(path, "far/away")), false);
      put("near/by", "changed by the task\n");
      put("far/off", "changed far off\n");
    },
  },
  {
    name: "objects that another repository lends",
    prepare: ({ at, git, put }) => {
      git("clone", "-q", "--shared", ".", at("borrower"));
      put("b", "changed in the lender\n");
    },
    from: ({ at, home }) => {
      const borrower = filesIn(at("borrower"), home);
      borrower.put("b", "changed\n");
      return borrower;
    },
  },
];

/** Merging again and pruning work the same in every state, so only some states test it. */
const WHOLE = 4;

for (const [at, state] of states.entries())
  test(`a task branches off from, and is merged into: ${state.name}`, () => assertLife(state, at % WHOLE === 0));
