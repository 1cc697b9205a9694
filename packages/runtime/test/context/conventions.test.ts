import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { chmodSync, chownSync, linkSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { scratch } from "@prefork/testing/scratch";
import fc from "fast-check";
import { findImports, looksLikeFile } from "../../src/context/conventions.ts";
import { type Conventions, type ConventionsOptions, readConventions } from "../../src/context/index.ts";
import { type Ground, repository } from "./repository.ts";

const read = (ground: Ground, question: Partial<ConventionsOptions> = {}): Promise<Conventions> =>
  readConventions({ home: ground.home, workspace: ground.repo, cwd: ground.repo, ...question });

/** Paths below the test's folder, with the text and the importing file. */
const shown = ({ files }: Conventions, ground: { readonly path: string }): readonly string[] =>
  files.map(({ path, text, from }) => {
    const by = from === undefined ? "" : ` < ${from.replace(`${ground.path}/`, "")}`;
    return `${path.replace(`${ground.path}/`, "")}${by}: ${text}`;
  });

const notesOf = ({ notes }: Conventions, ground: { readonly path: string }): readonly string[] =>
  notes.map(({ path, text }) => `${path} ${text}`.replaceAll(`${ground.path}/`, ""));

test("the user's file comes first, then each folder from the repository's root down to the working folder", async () => {
  using ground = repository();
  ground.put("home/.prefork/AGENTS.md", "mine");
  ground.put("home/.prefork/CLAUDE.md", "not read beside AGENTS.md");
  ground.put("repo/AGENTS.md", "root");
  ground.put("repo/CLAUDE.md", "root, other");
  ground.put("repo/packages/CLAUDE.md", "packages");
  ground.put("repo/packages/api/AGENTS.md", "api");
  ground.put("repo/packages/web/AGENTS.md", "not on the way");
  ground.put("AGENTS.md", "above the repository");
  const found = await read(ground, { cwd: ground.at("repo/packages/api") });
  assert.deepEqual(shown(found, ground), [
    "home/.prefork/AGENTS.md: mine",
    "repo/AGENTS.md: root",
    "repo/CLAUDE.md: root, other",
    "repo/packages/CLAUDE.md: packages",
    "repo/packages/api/AGENTS.md: api",
  ]);
  assert.deepEqual(found.notes, []);
});

test("the result is plain data with the hash of each whole file", async () => {
  using ground = repository();
  ground.put("repo/AGENTS.md", "line\n".repeat(10));
  const found = await read(ground, { fileBytes: 20 });
  const hash = createHash("sha256").update("line\n".repeat(10)).digest("base64url");
  assert.deepEqual(JSON.parse(JSON.stringify(found)), {
    files: [{ path: ground.at("repo/AGENTS.md"), text: "line\n".repeat(4), hash }],
    notes: [{ path: ground.at("repo/AGENTS.md"), text: "was cut after 20 of 50 bytes: it is too long" }],
  });
});

test("CLAUDE.md is the user's file if there is no AGENTS.md, and their folder may be a link", async () => {
  using ground = repository();
  ground.put("home/dotfiles/prefork/CLAUDE.md", "linked folder, @~/more.md");
  ground.put("home/more.md", "more");
  symlinkSync("dotfiles/prefork", ground.at("home/.prefork"));
  const found = await read(ground);
  assert.deepEqual(shown(found, ground), [
    "home/dotfiles/prefork/CLAUDE.md: linked folder, @~/more.md",
    "home/more.md < home/dotfiles/prefork/CLAUDE.md: more",
  ]);
});

test("the user's file is skipped if somebody else could have written it", async () => {
  using ground = repository();
  ground.put("home/.prefork/AGENTS.md", "anybody's");
  chmodSync(ground.at("home/.prefork/AGENTS.md"), 0o666);
  const found = await read(ground);
  assert.deepEqual(shown(found, ground), []);
  assert.deepEqual(notesOf(found, ground), [
    "home/.prefork/AGENTS.md was left out: home/.prefork/AGENTS.md can be changed by others (mode 0666)",
  ]);
});

test("a linked worktree is its own root, and so is a repository inside another", async () => {
  using ground = repository();
  ground.put("repo/AGENTS.md", "outer");
  ground.put("repo/a/x", "");
  ground.git("add", "-A");
  ground.git("commit", "-q", "-m", "One");
  ground.git("worktree", "add", "-q", "trees/side");
  ground.git("init", "-q", "inner");
  ground.put("repo/inner/deep/AGENTS.md", "inner");
  assert.deepEqual(shown(await read(ground, { cwd: ground.at("repo/trees/side/a") }), ground), [
    "repo/trees/side/AGENTS.md: outer",
  ]);
  assert.deepEqual(shown(await read(ground, { cwd: ground.at("repo/inner/deep") }), ground), [
    "repo/inner/deep/AGENTS.md: inner",
  ]);
});

test("without a repository the workspace is the root", async () => {
  using base = scratch();
  base.put("home/x");
  base.put("work/AGENTS.md", "workspace");
  base.put("work/a/b/AGENTS.md", "b");
  base.put("AGENTS.md", "above");
  const question = { home: base.at("home"), workspace: base.at("work"), cwd: base.at("work/a/b") };
  assert.deepEqual(shown(await readConventions(question), base), [
    "work/AGENTS.md: workspace",
    "work/a/b/AGENTS.md: b",
  ]);
  assert.deepEqual(shown(await readConventions({ ...question, workspace: base.at("home") }), base), [
    "work/a/b/AGENTS.md: b",
  ]);
});

test("another user's repository above the working folder is ignored", { skip: notRoot() }, async () => {
  using base = scratch();
  base.put("home/x");
  base.put("shared/AGENTS.md", "planted");
  base.put("shared/mine/AGENTS.md", "mine");
  mkdirSync(base.at("shared/.git"));
  chownSync(base.at("shared/.git"), 12_345, 12_345);
  const cwd = base.at("shared/mine");
  assert.deepEqual(shown(await readConventions({ home: base.at("home"), workspace: cwd, cwd }), base), [
    "shared/mine/AGENTS.md: mine",
  ]);
});

test("a folder that is not trusted gives only the user's own file", async () => {
  using ground = repository();
  ground.put("home/.prefork/AGENTS.md", "mine");
  ground.put("repo/AGENTS.md", "root");
  assert.deepEqual(shown(await read(ground, { project: false }), ground), ["home/.prefork/AGENTS.md: mine"]);
});

test("a duplicate is included once: a link in either direction, a hard link, a copy, a link to the folder above", async () => {
  using ground = repository();
  ground.put("repo/AGENTS.md", "one");
  symlinkSync("AGENTS.md", ground.at("repo/CLAUDE.md"));
  ground.put("repo/b/CLAUDE.md", "two");
  symlinkSync("./CLAUDE.md", ground.at("repo/b/AGENTS.md"));
  ground.put("repo/b/c/AGENTS.md", "three");
  linkSync(ground.at("repo/b/c/AGENTS.md"), ground.at("repo/b/c/CLAUDE.md"));
  ground.put("repo/b/c/d/AGENTS.md", "four");
  ground.put("repo/b/c/d/CLAUDE.md", "four");
  mkdirSync(ground.at("repo/b/c/d/e"));
  symlinkSync("../AGENTS.md", ground.at("repo/b/c/d/e/AGENTS.md"));
  const found = await read(ground, { cwd: ground.at("repo/b/c/d/e") });
  assert.deepEqual(shown(found, ground), [
    "repo/AGENTS.md: one",
    "repo/b/CLAUDE.md: two",
    "repo/b/c/AGENTS.md: three",
    "repo/b/c/d/AGENTS.md: four",
  ]);
  assert.deepEqual(found.notes, []);
});

test("imports follow their file, relative to it, each file once, and a cycle ends", async () => {
  using ground = repository();
  ground.put("repo/AGENTS.md", "@docs/a.md @docs/b.md");
  ground.put("repo/CLAUDE.md", "@AGENTS.md");
  ground.put("repo/docs/a.md", "a: @b.md");
  ground.put("repo/docs/b.md", "b: @a.md @../AGENTS.md `@c.md`");
  ground.put("repo/docs/c.md", "only in a code span");
  const found = await read(ground);
  assert.deepEqual(shown(found, ground), [
    "repo/AGENTS.md: @docs/a.md @docs/b.md",
    "repo/docs/a.md < repo/AGENTS.md: a: @b.md",
    "repo/docs/b.md < repo/docs/a.md: b: @a.md @../AGENTS.md `@c.md`",
    "repo/CLAUDE.md: @AGENTS.md",
  ]);
  assert.deepEqual(found.notes, []);
});

test("imports are followed five levels deep", async () => {
  using ground = repository();
  ground.put("repo/AGENTS.md", "@1.md");
  for (const depth of [1, 2, 3, 4, 5, 6]) ground.put(`repo/${depth}.md`, `@${depth + 1}.md`);
  const found = await read(ground);
  assert.deepEqual(
    shown(found, ground).map((line) => line.split(" ")[0]),
    ["repo/AGENTS.md:", "repo/1.md", "repo/2.md", "repo/3.md", "repo/4.md", "repo/5.md"],
  );
  assert.deepEqual(notesOf(found, ground), [
    "repo/6.md was left out: imports go deeper than 5 (imported by repo/5.md)",
  ]);
});

test("a project file cannot import from outside, through a link, from home, or files that may contain secrets; notes say so", async () => {
  using ground = repository();
  ground.put("outside.md", "outside");
  ground.put("home/private.md", "private");
  ground.put("repo/.env", "KEY=1");
  ground.put("repo/real/x.md", "x");
  symlinkSync("real", ground.at("repo/linked"));
  symlinkSync("../outside.md", ground.at("repo/out.md"));
  writeFileSync(ground.at("repo/picture.md"), Buffer.from([0x89, 0, 1]));
  const names = [
    "../outside.md",
    ground.at("outside.md"),
    "~/private.md",
    "linked/x.md",
    "out.md",
    ".env",
    "picture.md",
  ];
  ground.put(
    "repo/AGENTS.md",
    [...names, "missing.md", "scope/package", "$(user)"].map((name) => `@${name}`).join("\n"),
  );
  const found = await read(ground);
  assert.deepEqual(
    found.files.map(({ path }) => path),
    [ground.at("repo/AGENTS.md")],
  );
  const by = "(imported by repo/AGENTS.md)";
  assert.deepEqual(notesOf(found, ground), [
    `../outside.md was left out: it leads outside ${by}`,
    `outside.md was left out: it leads outside ${by}`,
    `~/private.md was left out: only the user's own file may import from home ${by}`,
    `repo/linked/x.md was left out: linked is a link, and links are not followed ${by}`,
    "repo/out.md was left out: this is a link, and links are not followed",
    "repo/.env was left out: it may hold keys, or is no plain file",
    "repo/picture.md was left out: it is no text",
    `repo/missing.md was left out: there is no such file ${by}`,
  ]);
});

test("files that a rule keeps back are neither read as conventions nor imported; notes say so", async () => {
  using ground = repository();
  ground.put("home/.prefork/AGENTS.md", "mine @../private/a.md");
  ground.put("home/private/a.md", "private");
  ground.put("repo/AGENTS.md", "see @secrets/prod.txt and @docs/a.md");
  ground.put("repo/CLAUDE.md", "kept back");
  ground.put("repo/secrets/prod.txt", "the secret");
  ground.put("repo/docs/a.md", "a");
  const keptBack = (path: string): boolean => /\/(?:secrets|private)\/|CLAUDE\.md$/.test(path);
  const gathered = await read(ground, { keptBack });
  assert.deepEqual(shown(gathered, ground), [
    "home/.prefork/AGENTS.md: mine @../private/a.md",
    "repo/AGENTS.md: see @secrets/prod.txt and @docs/a.md",
    "repo/docs/a.md < repo/AGENTS.md: a",
  ]);
  assert.deepEqual(
    notesOf(gathered, ground),
    ["home/private/a.md", "repo/secrets/prod.txt", "repo/CLAUDE.md"].map(
      (name) => `${name} was left out: a rule denies reading it, or says to ask`,
    ),
  );
});

test("a home folder that is kept in git is not the project of a folder in it", async () => {
  using base = scratch();
  mkdirSync(base.at("home/.git"), { recursive: true });
  base.put("home/AGENTS.md", "of the home folder");
  base.put("home/Documents/x.txt", "private");
  base.put("home/work/AGENTS.md", "work @../Documents/x.txt");
  const [home, cwd] = [base.at("home"), base.at("home/work")];
  const gathered = await readConventions({ home, workspace: cwd, cwd });
  assert.deepEqual(shown(gathered, base), ["home/work/AGENTS.md: work @../Documents/x.txt"]);
  assert.deepEqual(shown(await readConventions({ home, workspace: home, cwd: home }), base), [
    "home/AGENTS.md: of the home folder",
  ]);
});

test("a file with thousands of imports costs a hundred lookups and twenty notes", async () => {
  using ground = repository();
  ground.put("repo/AGENTS.md", Array.from({ length: 3_000 }, (_, at) => `@${at}.md`).join("\n"));
  const { files, notes } = await read(ground);
  assert.deepEqual(
    [files.length, notes.length, notes.at(-1)],
    [...[1, 21], { path: "81 more", text: "were left out or cut" }],
  );
});

test("a conventions file that links outside is skipped; a link inside the project is followed", async () => {
  using ground = repository();
  ground.put("secret.md", "outside");
  ground.put("repo/docs/agents.md", "inside");
  symlinkSync("../secret.md", ground.at("repo/AGENTS.md"));
  symlinkSync("docs/agents.md", ground.at("repo/CLAUDE.md"));
  const found = await read(ground);
  assert.deepEqual(shown(found, ground), ["repo/docs/agents.md: inside"]);
  assert.deepEqual(notesOf(found, ground), ["repo/AGENTS.md was left out: it is a link that leads outside"]);
});

test("a file is cut at its limit and all files at theirs, at a whole line, never inside a character", async () => {
  using ground = repository();
  ground.put("repo/AGENTS.md", `${"é".repeat(30_000)}`);
  ground.put("repo/a/AGENTS.md", "0123456789abcde\n".repeat(5_000));
  ground.put("repo/a/b/AGENTS.md", "0123456789abcde\n".repeat(5_000));
  ground.put("repo/a/b/c/AGENTS.md", "last");
  const found = await read(ground, { cwd: ground.at("repo/a/b/c"), totalBytes: 100_000 });
  assert.deepEqual(
    found.files.map(({ text }) => Buffer.byteLength(text)),
    [40_000, 40_000, 20_000],
  );
  assert.equal(found.files[0]?.text, "é".repeat(20_000));
  assert.deepEqual(notesOf(found, ground), [
    "repo/AGENTS.md was cut after 40,000 of 60,000 bytes: it is too long",
    "repo/a/AGENTS.md was cut after 40,000 of 80,000 bytes: it is too long",
    "repo/a/b/AGENTS.md was cut after 20,000 of 80,000 bytes: all conventions together are too long",
    "repo/a/b/c/AGENTS.md was left out: all conventions together are too long",
  ]);
});

function notRoot(): string | false {
  return process.getuid?.() === 0 ? false : "only the superuser can give a folder to somebody else";
}

test("names after @ are imports, each once, without the punctuation around them", () => {
  const text = "See @docs/style.md, @./a.md and (@~/b.md). Again @docs/style.md!\n@/abs/c.md\n- **@d.md**";
  assert.deepEqual(findImports(text), ["docs/style.md", "./a.md", "~/b.md", "/abs/c.md", "d.md"]);
});

test("e-mail addresses, and names in fences and code spans, are not imports", () => {
  const text = [
    "mail ada@example.com, run `@not/this.md` or ``a ` @nor/that.md``",
    "```sh",
    "@in/fence.md",
    "~~~",
    "@still/in/fence.md",
    "````",
    "@after.md and a lone ` mark @then.md",
    "~~~~ text",
    "@in/second.md",
    "~~~",
    "@yet/in/second.md",
  ].join("\n");
  assert.deepEqual(findImports(text), ["after.md", "then.md"]);
});

test("a fence that never ends contains the rest of the text, also with Windows line endings", () => {
  assert.deepEqual(findImports("@a.md\r\n```\r\n@b.md\r\n```\r\n@c.md\r\n```\r\n@d.md"), ["a.md", "c.md"]);
});

test("packages, people and decorators do not look like files", () => {
  const names = [
    "scope/package",
    "somebody",
    "app.route(",
    "pytest.fixture",
    "./x",
    "../x/y",
    "~/z",
    "/x",
    "a.md",
    "b.ts",
  ];
  assert.deepEqual(names.filter(looksLikeFile), ["./x", "../x/y", "~/z", "/x", "a.md", "b.ts"]);
});

test("any text can be read", () => {
  const marks = fc.constantFrom("@", "`", "``", "```", "~~~", "\n", " ", "a.md", "(", "\r");
  fc.assert(
    fc.property(fc.array(fc.oneof(marks, fc.string()), { maxLength: 40 }), (parts) => {
      const found = findImports(parts.join(""));
      assert.deepEqual(found, [...new Set(found)]);
    }),
  );
});

test("regression: a name followed by hundreds of thousands of brackets is read in linear time", () => {
  const brackets = ")".repeat(400_000);
  assert.deepEqual(findImports(`@a${brackets} @${brackets}b @c.md${brackets}`), ["a", `${brackets}b`, "c.md"]);
});
