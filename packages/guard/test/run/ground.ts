/** A repository to look at, with the names and states that commands meet in real ones.
 *  Invariant: the same bytes, times and commits on every machine; nothing outside its own folder is read or written. */

import { execFileSync, spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { type Scratch, scratch } from "@prefork/testing/scratch";
import { NO_GIT_MAINTENANCE } from "@prefork/testing/without-upkeep";

const WHEN = new Date("2024-03-01T12:00:00Z");

const FILES: Readonly<Record<string, string>> = {
  "README.md": '# Ground\n\nA place to look at.\n\n## Usage\n\nRun it 🚀 ✅\n\n## Notes\n\nsay "hi"\n',
  "CHANGELOG.md": "## v1.2.0\n\n- more\n\n## v1.1.0\n",
  Makefile: "all:\n\techo done\n",
  "package.json":
    '{\n  "name": "ground",\n  "version": "1.2.3",\n  "private": true,\n  "scripts": { "test": "node --test", "build": "tsc" },\n  "dependencies": { "react": "19.0.0" }\n}\n',
  "tsconfig.json": '{ "compilerOptions": { "strict": true }, "include": ["src"] }\n',
  "list.json": '[{"id":1,"name":"a"},{"id":2,"name":"b"}]\n',
  "a.json": '{"a":1}\n',
  "b.json": '{"b":2}\n',
  "a.txt": "alpha 1\nbeta 2\ngamma 3\n",
  "b.txt": "alpha 1\nbeta 3\ngamma 3\n",
  "notes.txt":
    "foo one\nbar two\n\nfoo bar three\nstart here\n$HOME and `ticks` and it's\na;b a.b(c) café\nend here\nnumber 555-1234 → x > y\nfoo\nsrc/index.ts -n --flag\n",
  "numbers.txt": "1\n5\n3\n10\n",
  "sizes.txt": "1K\n3M\n2G\n",
  "versions.txt": "v1.10\nv1.2\n",
  "patterns.txt": "foo\nbar\n",
  "files.txt": "a.txt\nb.txt\n",
  "data.csv": "name,count,price\nfoo,3,1.5\nbar,12,2.25\n",
  "more.csv": "foo,x\nbar,y\n",
  "table.tsv": "a\tb\nc\td\n",
  "config.ini": '# comment\nversion = "7"\n\nkey=value\n',
  "config.sh": "cd $HOME\n",
  "über.txt": "grün\n",
  "日本語.txt": "日本語\n",
  "docs/über-uns.md": "über uns\n",
  "docs/getting started.md": "start\n",
  "docs/architecture.md": "a → b\n",
  "My Documents/letter.txt": "dear\n",
  "it's here/x": "",
  "-weird-name": "weird\n",
  "two\nlines.txt": "both\n",
  'quo"te.txt': "quote\n",
  "star*.txt": "star\n",
  "back\\slash.txt": "slash\n",
  "tab\tname.txt": "tab\n",
  "file1.txt": "1\n",
  "file2.txt": "2\n",
  "my-dash-1.txt": "dash\n",
  "src/index.ts":
    'import { createSession } from "./session.ts";\n\nexport class Session {}\n// TODO: foo(bar)\nif (a && b) x > y;\nexport const foo = () => {\n  return process.env || null;\n};\n',
  "src/session.ts": "export function createSession() {\n  return 1;\n}\n",
  "src/parse.ts": "export function parse(text: string) {\n  return text;\n}\n",
  "src/api/index.ts": "export const foo = 1;\n",
  "src/web/page.tsx": "useState();\n",
  "test/index.test.ts": "test();\n",
  "packages/api/package.json": '{ "name": "api" }\n',
  "packages/web/README.md": "web\n",
  "bin/run": "#!/bin/sh\n",
  "logs/app.log": "info a\nERROR b\n",
  ".gitignore": "node_modules\ndist\n*.log\n",
  ".hidden": "hidden\n",
  ".github/workflows/ci.yml": "on: push\n",
  ".env.example": "KEY=\n",
  "dist/index.js": "built\n",
};

const GIT = {
  PATH: "/usr/bin:/bin:/usr/local/bin",
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_CONFIG_GLOBAL: "/dev/null",
  ...NO_GIT_MAINTENANCE,
  GIT_AUTHOR_NAME: "Ada Lovelace",
  GIT_AUTHOR_EMAIL: "ada@example.com",
  GIT_COMMITTER_NAME: "Ada Lovelace",
  GIT_COMMITTER_EMAIL: "ada@example.com",
};

/** Three commits on main, one on dev, two tags, a stash, a remote that does not exist, changes staged and not. */
const commitAll = (path: string, write: (name: string, content: string) => void): void => {
  let hour = 0;
  const git = (...words: readonly string[]): void => {
    hour += 1;
    const date = `2024-03-01T${String(hour % 24).padStart(2, "0")}:00:00Z`;
    const env = { ...GIT, GIT_AUTHOR_DATE: date, GIT_COMMITTER_DATE: date };
    execFileSync("git", words, { cwd: path, env, stdio: "ignore" });
  };
  const commit = (message: string): void => {
    git("add", "-A");
    git("commit", "-q", "-m", message);
  };
  git("init", "-q", "-b", "main");
  git("config", "user.name", "Ada Lovelace");
  git("config", "user.email", "ada@example.com");
  git("remote", "add", "origin", "https://example.invalid/ground.git");
  commit("Begin");
  git("tag", "v1.0.0");
  write("src/session.ts", "export function createSession() {\n  return 2;\n}\n");
  commit("fix the session");
  write("src/parse.ts", "export function parse(text: string) {\n  return text.trim();\n}\n");
  commit("Trim what is parsed");
  git("tag", "-a", "v1.2.0", "-m", "second");
  git("checkout", "-q", "-b", "dev");
  write("docs/dev.md", "dev\n");
  commit("Write on dev");
  git("checkout", "-q", "main");
  write("a.txt", "alpha 1\nbeta 2\ngamma 3\nstashed\n");
  git("stash", "-q");
  write("b.txt", "alpha 1\nbeta 3\ngamma 3\nstaged\n");
  git("add", "b.txt");
  write("README.md", "# Ground\n\nA place to look at, changed.\n");
  write("untracked.txt", "new\n");
};

export type Ground = Scratch & { readonly home: string; readonly work: string };

const build = (): Scratch => {
  const base = scratch();
  for (const folder of ["home/projects", "work"]) mkdirSync(base.at(folder), { recursive: true });
  base.put("home/.bashrc", "# shell\n");
  base.put("home/.gitconfig", "[user]\n");
  for (const [name, content] of Object.entries(FILES)) base.put(`work/${name}`, content);
  writeFileSync(base.at("work", "big.bin"), Buffer.from(Array.from({ length: 600 }, (_, index) => (index * 7) % 256)));
  writeFileSync(base.at("work", "data.gz"), gzipSync("packed\nlines\n"));
  symlinkSync("README.md", base.at("work", "link"));
  symlinkSync("src", base.at("work", "linked"));
  symlinkSync("nowhere", base.at("work", "dangling.txt"));
  chmodSync(base.at("work", "bin/run"), 0o755);
  for (const name of Object.keys(FILES)) utimesSync(base.at("work", name), WHEN, WHEN);
  commitAll(base.at("work"), (name, content) => void base.put(`work/${name}`, content));
  return base;
};

const built: Scratch[] = [];

/** Built once in a process: two dozen calls of git take longer than most tests. */
const template = (): string => {
  const [known] = built;
  if (known) return known.path;
  const made = build();
  built.push(made);
  process.once("exit", () => made[Symbol.dispose]());
  return made.path;
};

export const ground = (): Ground => {
  const base = scratch();
  execFileSync("cp", ["-a", `${template()}/.`, base.path]);
  // The copies are other files than those that the index knows; what is staged or changed stays that.
  spawnSync("git", ["update-index", "-q", "--refresh"], { cwd: base.at("work"), env: GIT });
  return { ...base, home: base.at("home"), work: base.at("work") };
};
