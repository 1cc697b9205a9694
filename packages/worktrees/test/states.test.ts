/** Checkouts with files of every kind. Repositories of every shape are in states-repository.test.ts. */

import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { heldFiles } from "./ground.ts";
import { assertLife, type State, usualEdit } from "./laws.ts";

/** A name that is not valid UTF-8. */
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
];

/** Merging again and pruning work the same in every state, so only some states test it. */
const WHOLE = 4;

for (const [at, state] of states.entries())
  test(`a task branches off from, and is merged into: ${state.name}`, () => assertLife(state, at % WHOLE === 0));
