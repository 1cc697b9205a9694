import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { filesIn, heldFiles } from "./ground.ts";
import { assertLife, type State, usualEdit } from "./laws.ts";

/** A name that is no text in UTF-8. */
const NO_TEXT = Buffer.from("caf\xe9 \xff", "latin1");

const states: readonly State[] = [
  { name: "nothing but what is committed", prepare: () => {} },
  {
    name: "staged, unstaged, untracked and ignored files side by side",
    prepare: ({ put, git }) => {
      put("staged", "staged\n");
      put("both", "staged\n");
      put("b", "b staged\n");
      git("add", "staged", "both", "b");
      put("both", "and changed again\n");
      put("a.txt", "1\n2 changed\n3\n4\n5\n6\n7\n8\n9\n");
      put("untracked", "u\n");
      put("x.log", "ignored\n");
      put("build/out", "ignored\n");
      put(".env", "SECRET=1\n", 0o600);
      git("stash", "list");
    },
    copyIgnored: [".env"],
    also: ({ created }) => {
      assert.equal(readFileSync(join(created.path, ".env"), "utf8"), "SECRET=1\n");
      assert.equal(existsSync(join(created.path, "x.log")), false);
    },
  },
  {
    name: "a stash and branches with their logs",
    prepare: ({ put, git }) => {
      put("b", "stashed\n");
      git("stash");
      git("branch", "other");
      git("tag", "v1");
      put("b", "now\n");
    },
  },
  {
    name: "renames, staged and not",
    prepare: ({ git, put, drop }) => {
      git("mv", "a.txt", "renamed.txt");
      put("moved", "b\n");
      drop("b");
    },
  },
  {
    name: "deletions, staged and not, and a file deleted only in the index",
    prepare: ({ git, drop }) => {
      git("rm", "-q", "a.txt");
      drop("d/e/f");
      git("rm", "-q", "--cached", "tool.sh");
    },
  },
  {
    name: "mode bits, and private files",
    prepare: ({ put, git }) => {
      put("b", "b\n", 0o755);
      put("tool.sh", "#!/bin/sh\n", 0o600);
      put("private", "p\n", 0o600);
      git("add", "private");
      put("private too", "p\n", 0o600);
    },
    edit: (copy) => {
      usualEdit(copy);
      copy.put("private", "changed\n");
      copy.put("private too", "changed\n");
    },
    mergedHolds: ({ path }, copy) => {
      assert.deepEqual(
        ["private", "private too", "b"].map((name) => (statSync(join(path, name)).mode & 0o777).toString(8)),
        ["600", "600", "755"],
      );
      assert.equal(readFileSync(join(path, "private"), "utf8"), readFileSync(join(copy.path, "private"), "utf8"));
    },
  },
  {
    name: "modes that git was told not to look at",
    prepare: ({ put, git }) => {
      git("config", "core.fileMode", "false");
      put("b", "b\n", 0o755);
    },
    copyHolds: () => {},
    edit: ({ put }) => put("b", "b of the task\n"),
    mergedHolds: ({ path }) => {
      assert.equal(readFileSync(join(path, "b"), "utf8"), "b of the task\n");
      assert.equal(statSync(join(path, "b")).mode & 0o777, 0o755);
    },
  },
  {
    name: "links, dangling ones and ones that lead out",
    prepare: ({ link, git }) => {
      link("to-b", "b");
      link("dangling", "nowhere/at all");
      link("out", "/etc");
      git("add", "to-b", "out");
    },
    edit: ({ link, drop, put }) => {
      drop("to-b");
      link("to-b", "a.txt");
      drop("dangling");
      put("dangling", "a file now\n");
      drop("b");
      link("b", "tool.sh");
    },
  },
  {
    name: "binary files",
    prepare: ({ put, git }) => {
      put("binary", Buffer.from(Array.from({ length: 4_096 }, (_, at) => (at * 7) % 256)));
      git("add", "binary");
      put("binary", Buffer.from(Array.from({ length: 4_096 }, (_, at) => (at * 11) % 256)));
    },
    edit: ({ put }) => put("binary", Buffer.from([0, 255, 10, 13, 0])),
  },
  {
    name: "line ends by core.autocrlf",
    prepare: ({ git, put, drop }) => {
      git("config", "core.autocrlf", "true");
      drop("a.txt");
      git("checkout", "a.txt");
      put("crlf", "one\r\ntwo\r\n");
      put("b", "b\nwith plain ends\n");
    },
    copyHolds: ({ path }) => {
      assert.match(readFileSync(join(path, "a.txt"), "latin1"), /^1\r\n2\r\n/);
      assert.equal(readFileSync(join(path, "crlf"), "latin1"), "one\r\ntwo\r\n");
    },
    edit: ({ put }) => {
      put("crlf", "one\r\ntwo\r\nthree\r\n");
      put("new", "n\r\n");
    },
    mergedHolds: ({ path }) => {
      assert.equal(readFileSync(join(path, "crlf"), "latin1"), "one\r\ntwo\r\nthree\r\n");
      assert.equal(readFileSync(join(path, "new"), "latin1"), "n\r\n");
      assert.equal(readFileSync(join(path, "b"), "latin1"), "b\nwith plain ends\n");
    },
  },
  {
    name: "line ends by a setting of the user's, which the repository overrules",
    prepare: ({ home, git, put }) => {
      writeFileSync(join(home, ".gitconfig"), "[core]\n\tautocrlf = true\n");
      git("config", "core.autocrlf", "false");
      put("crlf", "one\r\ntwo\r\n");
    },
    edit: ({ put }) => put("b", "plain\nends\n"),
  },
  {
    name: "line ends by .gitattributes",
    prepare: ({ git, put }) => {
      put(".gitattributes", "*.win text eol=crlf\n*.raw -text\n");
      put("x.win", "one\r\ntwo\r\n");
      put("x.raw", "one\r\ntwo\n");
      git("add", "-A");
      git("commit", "-qm", "ends");
    },
    edit: ({ put }) => {
      put("x.win", "one\r\n2\r\n");
      put("x.raw", "1\r\ntwo\n");
    },
  },
  {
    name: "names beyond ASCII, with newlines, quotes and blanks, and names that are no text",
    prepare: ({ put, git }) => {
      put("näme", "ä\n");
      put('new\nline "quoted"', "n\n");
      put(" blank ", "b\n");
      git("add", "-A");
      put("ünt/r äcked", "u\n");
      put(NO_TEXT, "no text\n");
    },
    edit: ({ put, drop }) => {
      put("näme", "changed\n");
      put(NO_TEXT, "no text, changed\n");
      drop('new\nline "quoted"');
      put("other\nline", "o\n");
    },
    copyHolds: ({ path }, checkout) => {
      const files = (folder: string): unknown => heldFiles({ ...checkout, path: folder });
      assert.deepEqual(files(path), files(checkout.path));
    },
  },
  {
    name: "empty folders, one in the way of a new file",
    prepare: ({ path }) => {
      for (const name of ["empty/er", "d/e/empty", "in the way"])
        mkdirSync(join(path, name), { recursive: true, mode: 0o700 });
    },
    edit: (copy) => {
      usualEdit(copy);
      copy.put("in the way", "a file\n");
    },
  },
  {
    name: "a folder with its own mode loses its only file and gets another",
    prepare: ({ path, put }) => {
      mkdirSync(join(path, "own"), { mode: 0o700 });
      put("own/one", "1\n");
    },
    edit: ({ drop, put }) => {
      drop("own/one");
      put("own/two", "2\n");
    },
    mergedHolds: ({ path }) => {
      assert.equal(statSync(join(path, "own")).mode & 0o777, 0o700);
      assert.equal(existsSync(join(path, "own/one")), false);
    },
  },
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
    name: "files become folders and folders become files, in the checkout and in the copy",
    prepare: ({ drop, put }) => {
      drop("d");
      put("d", "a file now\n");
      drop("a.txt");
      put("a.txt/inside", "a folder now\n");
    },
    edit: ({ drop, put }) => {
      drop("d");
      put("d/again/a", "folder\n");
      drop("a.txt");
      put("a.txt", "a file again\n");
      drop("b");
      put("b/c", "c\n");
    },
  },
  {
    name: "a deep folder becomes a file",
    prepare: ({ put, git }) => {
      put("deep/er/est/x", "x\n");
      put("deep/er/y", "y\n");
      git("add", "-A");
    },
    edit: ({ drop, put }) => {
      drop("deep");
      put("deep", "flat\n");
    },
  },
  {
    name: "files become links to folders and back",
    prepare: ({ drop, link, git, put }) => {
      put("e/g", "g\n");
      git("add", "-A");
      drop("d");
      link("d", "e");
    },
    edit: ({ drop, link, put }) => {
      drop("d");
      put("d/e/f", "a folder again\n");
      drop("e");
      link("e", "d");
    },
  },
  {
    name: "a folder became a link through which its old file is still found",
    prepare: ({ drop, link, put, git }) => {
      put("lib/x", "x\n");
      git("add", "-A");
      drop("lib");
      put("x", "x\n");
      link("lib", ".");
    },
    edit: ({ put }) => put("x", "x of the task\n"),
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

/** Merging again and pruning is the same in every state: some show it. */
const WHOLE = 4;

for (const [at, state] of states.entries())
  test(`a task branches off from, and is merged into: ${state.name}`, () => assertLife(state, at % WHOLE === 0));
