/** git shows files by their paths only, whatever its words, options and settings stand for. */

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { appendFileSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import {
  checkSecretsHidden,
  gitIn,
  mustNotRun,
  type RepositoryWithSecrets,
  repositoryWithSecrets,
  runReadOnly,
} from "@prefork/testing/with-keys";

test("git shows a file by its path, and not by a number or a tag that hides which file it was", async () => {
  using place = repositoryWithSecrets();
  const { work } = place;
  const [file, folder] = [gitIn(work, "rev-parse", "HEAD:.env"), gitIn(work, "rev-parse", "HEAD:sub/.aws")];
  const empty = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
  gitIn(work, "tag", "a-file", file);
  gitIn(work, "tag", "-a", "-m", "x", "noted", file);
  gitIn(work, "tag", "a-folder", folder);
  await checkSecretsHidden(place, [
    ...[`git show ${file}`, `git cat-file -p ${file}`, `git cat-file blob ${file.slice(0, 9)}`].map(mustNotRun),
    ...[`git diff ${file} HEAD:plain.txt`, `git diff HEAD:plain.txt..${file}`, "git show a-file", "git show noted"].map(
      mustNotRun,
    ),
    ...[`git diff ${empty} ${folder}`, "git diff-tree -p a-folder HEAD", `git grep secret ${folder}`].map(mustNotRun),
    ...["git grep secret HEAD:", "git grep -e secret HEAD:sub", "git grep secret HEAD^{tree}"].map(mustNotRun),
    ...["git rev-list --objects --all | cut -d' ' -f1 | git cat-file --batch"].map(mustNotRun),
    ...[`git show ${folder}:config`, "git show a-folder:config", `git cat-file -p ${folder}:config`].map(mustNotRun),
    ...[
      `git show ${folder}^{tree}:config`,
      `git show ${folder}^{tree}^{}:config`,
      "git show a-folder^{tree}:config",
    ].map(mustNotRun),
    ...[`git cat-file -p ${folder}^{tree}:config`, `git cat-file -p '${folder}^{object}:config'`].map(mustNotRun),
    ...[`git diff ${empty} ${folder}^{tree}`, `git diff ${empty}..${folder}^{tree}`].map(mustNotRun),
    ...[`git diff-tree -p ^${folder} ${empty}`, `git diff ${folder}^{tree} ^${empty}`].map(mustNotRun),
    ...["git diff HEAD:sub HEAD:.codex", "git diff HEAD:sub HEAD:./.codex/"].map(mustNotRun),
    ["git show HEAD^{tree}:plain.txt", /plain/],
    ["git diff HEAD^{tree} HEAD~0^{tree}", /^$/],
    [`git diff ${empty} HEAD^{tree}`, /\+plain/],
    ["git diff HEAD:sub HEAD:z.d", /rename to \.env/],
    ...["git show --all", "git show --tags", "git diff --all"].map(mustNotRun),
    ["git for-each-ref --format='%(raw)'"],
    [`git cat-file -t ${file}`, /^blob$/m],
    ["git show HEAD:plain.txt", /plain/],
    ["git show main:./plain.txt :plain.txt", /plain/],
    ["git diff HEAD:plain.txt 'HEAD:(a.d'", /^$/],
    ["git log --all --oneline", /Add all/],
    ["git show HEAD", /\+plain/],
    [`git diff ${empty} HEAD`, /\+plain/],
    ["git grep -h -e plain HEAD", /plain/],
    ["git cat-file -p HEAD^{tree}", /plain\.txt/],
    ["git rev-list --objects --all | git cat-file --batch-check", /commit/],
  ]);
});

test("an object of git passes only as a commit, or as a path of one, however it is written", async () => {
  using place = repositoryWithSecrets();
  const { work } = place;
  const [file, folder] = [gitIn(work, "rev-parse", "HEAD:.env"), gitIn(work, "rev-parse", "HEAD:sub/.aws")];
  gitIn(work, "tag", "v1.0");
  place.put("home/work/plain.txt", "plain, changed\n");
  gitIn(work, "stash", "-q");
  await checkSecretsHidden(place, [
    ...["-p --", "blob --", "-pp", "-pe", "-p -p"].map((words) => mustNotRun(`git cat-file ${words} ${file}`)),
    ...[`git cat-file -p -- ${folder}:config`, `git cat-file -p x-g${file}`, `git show x:y-g${file}`].map(mustNotRun),
    ...[`git show HEAD:x-g${file}`, `git show 'x:y-g${file}^{}'`, `git show ':x-g${file}'`].map(mustNotRun),
    ...[`git grep -- secret ${file}`, `git grep -- secret ${folder}`, `git grep secret ${folder}:config`].map(
      mustNotRun,
    ),
    ...["-E -- '-*.*'", "-- '-*'", "-h -- -e", "-E -- '-f|s'", "-e secret --", "-hie secret", "-f plain.txt"].flatMap(
      (words) => [file, folder].map((object) => mustNotRun(`git grep ${words} ${object}`)),
    ),
    ...[`git grep -e secret -- ${folder}:config`, `git grep -h secret 'HEAD^{tree}:' ${folder}:config`].map(mustNotRun),
    ...[`git show $'${folder}:./x\\n/../config'`, `git cat-file -p $'${folder}:./x\\n/../config'`].map(mustNotRun),
    ...[`git diff ${folder}:config..HEAD:plain.txt`, `git show ${file}^!`].map(mustNotRun),
    ["git show HEAD:plain.txt", /plain/],
    ["git diff v1.0...main -- plain.txt", /^$/],
    ["git show HEAD~0", /Add all/],
    ["git log -p -S plain", /\+plain/],
    ["git show v1.0", /Add all/],
    ["git diff HEAD^!", /^$/],
    ...["':/(.*)\\1x'", "'HEAD^{/(a*)*\\1b}'", "':/a+b'", "':/!-a{9}'"].map((name) => mustNotRun(`git show ${name}`)),
    ["git show :/Add", /Add all/],
    ["git show 'HEAD^{/Add: x|Add}'", /Add all/],
    ["git show stash@{0}", /\+plain, changed/],
    ["git stash show -p", /\+plain, changed/],
    ["git blame -L 1,1 plain.txt", /plain/],
    [`git show ${gitIn(work, "rev-parse", "HEAD")}`, /Add all/],
    [`git show v1.0-0-g${gitIn(work, "rev-parse", "HEAD")}`, /Add all/],
    ["git grep -h plain -- plain.txt", /plain/],
    ["git grep -h plain HEAD:plain.txt", /plain/],
    [`git cat-file -ts ${file} | head -1`, /./],
  ]);
});

test("no spelling of options makes git print a file that may contain secrets", async () => {
  using place = repositoryWithSecrets();
  place.put("home/work/.env", "the secret, changed\n");
  place.put("home/work/plain.txt", "plain, changed\n");
  gitIn(place.work, "stash", "-q");
  gitIn(place.work, "stash", "apply", "-q");
  gitIn(place.work, "commit", "-qam", "Change -S");
  const shows = [
    "show",
    "log -p",
    "diff HEAD~1 HEAD",
    "diff-tree -p HEAD~1 HEAD",
    "diff-index -p HEAD~1",
    "whatchanged -p",
  ];
  const letters = ["-aD", "-pa", "-DaU1", "-ubaD", "-zDa"];
  await checkSecretsHidden(place, [
    ...shows.map((verb) => [`git ${verb} -Da`, /\+plain, changed/] as const),
    ...letters.map((one) => [`git show ${one}`, /\+plain, changed/] as const),
    ["git log -p --grep -a -S -a", /^$/],
    ["git grep -ha -e secret -e plain", /plain/],
    ["git stash show -p -a", /\+plain, changed/],
    ["git stash show -p -I stash@{0} -S -a"],
    ["git stash show -p --src-prefix stash@{0} -S -a"],
    ["git stash list -n 1", /WIP/],
  ]);
});

test("a file that is secret because of its folder is not shown from inside that folder", async () => {
  using place = repositoryWithSecrets();
  for (const name of ["pip/pip.conf", ".m2/settings.xml", "gone/.codex/auth.json"])
    place.put(`home/work/${name}`, "the secret\n");
  place.put("home/work/.codex/notes.md", "plain\n");
  symlinkSync(".codex", place.at("home", "work", "c"));
  gitIn(place.work, "add", "-f", ".");
  gitIn(place.work, "commit", "-q", "-m", "Add more");
  rmSync(place.at("home", "work", ".codex/auth.json"));
  const ways = ["cd .codex && git ", "git -C .codex ", "cd c && git ", "git -C c "];
  const asked = [
    ...["show HEAD:./auth.json", "cat-file -p HEAD:./auth.json", "show :./auth.json", "show :0:./auth.json"],
    ...["log -L1,1:auth.json", "log -L 1,1:auth.json", "blame HEAD -- auth.json", "show HEAD:./x/../auth.json"],
    ...["diff HEAD~1:./ HEAD:./", "grep secret HEAD:./auth.json", "show HEAD:../.codex/auth.json"],
  ];
  await checkSecretsHidden(place, [
    ...ways.flatMap((way) => asked.map((words) => mustNotRun(way + words))),
    ...[
      "git -C pip show :./pip.conf",
      "git -C .m2 show HEAD:./settings.xml",
      "git -C sub show HEAD:../pip/pip.conf",
    ].map(mustNotRun),
    ["git -C .codex show HEAD:./notes.md HEAD:plain.txt", /plain/],
    ["git -C c log -L1,1:notes.md", /\+plain/],
    ["git -C c blame notes.md", /plain/],
  ]);
});

test("a repository's settings cannot make git print a file or object as author names", async () => {
  using place = repositoryWithSecrets();
  place.put("home/.netrc", "the secret <x@y> <a@b.c>\n");
  place.put("home/work/.env", "the secret <x@y> <a@b.c>\n");
  gitIn(place.work, "commit", "-qam", "Change it");
  for (const [key, value] of [
    ["mailmap.file", place.at("home", ".netrc")],
    ["mailmap.blob", "HEAD:.env"],
  ] as const) {
    gitIn(place.work, "config", key, value);
    await checkSecretsHidden(place, [
      ["git log --format=%aN", /^a$/m],
      ["git shortlog -sne HEAD", /<a@b\.c>/],
      ["git blame plain.txt", /\(a /],
    ]);
  }
});

test("git shows nothing from inside a folder of keys, whatever name led there", async () => {
  using place = repositoryWithSecrets();
  symlinkSync("sub/.aws", place.at("home", "work", "k"));
  const shows = ["show HEAD:./config", "cat-file -p HEAD:./config", "show :./config", "log -L1,1:config", "diff"];
  await checkSecretsHidden(
    place,
    ["cd k && git ", "cd sub/.aws && git ", "git -C k "].flatMap((way) =>
      shows.map((words) => [`${way}${words}`] as const),
    ),
  );
});

test("a repository that is itself a folder of settings shows no changes to the keys in it", async () => {
  using place = repositoryWithSecrets();
  for (const [top, key] of [
    [".config", "gh/hosts.yml"],
    [".m2", "settings.xml"],
  ] as const) {
    const work = place.at("home", "other", top);
    place.put(`home/other/${top}/plain.txt`, "plain\n");
    gitIn(place.home, "init", "-q", "-b", "main", work);
    gitIn(work, "add", "-f", ".");
    gitIn(work, "commit", "-q", "-m", "Add plain");
    const commands = ["git show", "git log -p", "git grep -h -e plain -e secret"];
    await checkSecretsHidden(
      { ...place, work },
      commands.map((text) => [text, /plain/] as const),
    );
    place.put(`home/other/${top}/${key}`, "the secret\n");
    gitIn(work, "add", "-f", ".");
    gitIn(work, "commit", "-q", "-m", "Add keys");
    await checkSecretsHidden({ ...place, work }, commands.map(mustNotRun));
    gitIn(work, "rm", "-q", key);
    gitIn(work, "commit", "-q", "-m", "Remove keys");
    await checkSecretsHidden({ ...place, work }, [...commands.map(mustNotRun), ["git status --short", /^$/]]);
  }
});

test("an object that a repository replaces by another is not shown under the other's path", async () => {
  using place = repositoryWithSecrets();
  gitIn(
    place.work,
    "replace",
    gitIn(place.work, "rev-parse", "HEAD:plain.txt"),
    gitIn(place.work, "rev-parse", "HEAD:.env"),
  );
  const commands = ["git show HEAD:plain.txt", "git log -p -- plain.txt", "git grep -h -e secret -e plain HEAD"];
  await checkSecretsHidden(
    place,
    commands.map((text) => [text, /plain/] as const),
  );
});

test("git shows no file that only a reflog, another worktree or a branch names by its object id", async () => {
  using place = repositoryWithSecrets();
  const { work } = place;
  const [commit, file] = [gitIn(work, "rev-parse", "HEAD"), gitIn(work, "rev-parse", "HEAD:.env")];
  appendFileSync(place.at("home/work/.git/logs/HEAD"), `${commit} ${file} a <a@b.c> 1700000000 +0000\tx\n`);
  place.put("home/work/.git/worktrees/w/HEAD", `${file}\n`);
  place.put("home/work/.git/worktrees/w/commondir", "../..\n");
  place.put("home/work/.git/worktrees/w/gitdir", "/nowhere/.git\n");
  await checkSecretsHidden(place, [
    ...["--reflog", "--all", "--branches", "--branches=m*", "--glob=refs/*", "--remotes"].map((option) =>
      mustNotRun(`git show ${option}`),
    ),
    ["git log -p --reflog", /\+plain/],
    ["git log --all --oneline", /Add all/],
    ["git show -Sreflog --stat HEAD", /^$/],
  ]);
});

const staysKept = async (what: string, text: string, place: RepositoryWithSecrets): Promise<void> => {
  const { shown, isRefused } = await runReadOnly(text, place);
  assert.deepEqual([isRefused, shown.includes("the secret")], [true, false], `${what}: ${text}`);
};

/** It runs, and hides what may contain secrets. */
const staysHidden = async (what: string, text: string, place: RepositoryWithSecrets): Promise<void> => {
  const { shown, isRefused } = await runReadOnly(text, place);
  assert.deepEqual(
    [isRefused, shown.includes("the secret"), shown.includes("plain")],
    [false, false, true],
    `${what}: ${text}`,
  );
};

test("no folder's attributes make git show a secret, whatever path leads through it", async () => {
  const line = ".env diff\n";
  const goneFrom = (place: RepositoryWithSecrets): void => {
    gitIn(place.work, "rm", "-rqf", "z.d");
    gitIn(place.work, "commit", "-qm", "Remove");
  };
  const places: Readonly<Record<string, (place: RepositoryWithSecrets) => unknown>> = {
    "not kept": (place) => place.put("home/work/z.d/.gitattributes", line),
    ignored: (place) => {
      place.put("home/work/z.d/.gitattributes", line);
      place.put("home/work/.gitignore", ".gitattributes\n");
    },
    "of a folder that is kept no more": (place) => {
      goneFrom(place);
      place.put("home/work/z.d/.gitattributes", line);
    },
    "of a repository in its place": (place) => {
      goneFrom(place);
      place.put("home/work/z.d/.gitattributes", line);
      gitIn(place.at("home/work/z.d"), "init", "-q");
    },
    "behind a link in its place": (place) => {
      goneFrom(place);
      place.put("home/other/.gitattributes", line);
      symlinkSync("../other", place.at("home/work/z.d"));
    },
    "in the text of a link": (place) => {
      place.put("home/work/.env diff", "plain\n");
      symlinkSync(".env diff", place.at("home/work/.gitattributes"));
      gitIn(place.work, "add", ".gitattributes", ".env diff");
    },
    "in a folder that programs fill": (place) => place.put("home/work/node_modules/x/.gitattributes", "* diff\n"),
  };
  for (const [where, change] of Object.entries(places)) {
    using place = repositoryWithSecrets();
    change(place);
    place.put("home/work/plain.txt", "plain, changed\n");
    place.put("home/work/.env", "the secret, changed\n");
    for (const text of ["git diff HEAD", "git log -p", "git grep -h -e secret -e plain HEAD"])
      await staysHidden(where, text, place);
  }
});

test("no line of attributes makes git show a secret, in whatever commit it is", async () => {
  using place = repositoryWithSecrets();
  place.put("home/work/prod-7.key", "the secret\n");
  gitIn(place.work, "add", "-f", "prod-7.key");
  gitIn(place.work, "commit", "-qm", "Add one");
  gitIn(place.work, "rm", "-q", "prod-7.key");
  gitIn(place.work, "commit", "-qm", "Remove it");
  const shows = [
    ...["prod-7.key diff", "prod-* diff=x", "deploy_rsa !diff", "a/b/c/.env diff", "* text diff", "*.txt.bak diff"],
    ...["[attr]open diff\nprod-7.key open", '"prod-7.key" diff', "mykey diff", ".* diff", "*.[km]d diff", "*.yml diff"],
    ...[
      ".ssh/*.md diff",
      ".env.md diff",
      "*.KEY diff",
      "\ufeffprod-7.key diff",
      "\t prod-7.key\tdiff\r",
      "[attr]prefork-key diff\nprod-7.key -prefork-key diff",
      "config diff",
    ],
  ];
  for (const line of shows) {
    place.put("home/work/.gitattributes", `${line}\n`);
    await checkSecretsHidden(place, [["git log -p", /Binary files a\/prod-7\.key and/]]);
  }
  const passes = [
    ...[
      "*.md diff=markdown",
      "*.ts text diff=typescript",
      "docs/**/*.rs diff=rust",
      "*.png diff=exif",
      "*.min.js diff",
    ],
    ...["Makefile diff=make", "package-lock.json diff", "*.PDF diff=astextplain", "prod-7.key -diff", "* text=auto"],
    ...[
      "prod-7.key text eol=lf",
      "# prod-7.key diff",
      "[attr]made -diff linguist-generated\n*.key made",
      "*.cs diff=csharp",
    ],
  ];
  for (const line of passes) {
    place.put("home/work/.gitattributes", `${line}\n`);
    await checkSecretsHidden(place, [["git log -p", /Binary files a\/prod-7\.key and/]]);
  }
});

/** The index of a repository with some names written over by others of the same length. */
const renameInIndex = (work: string, names: Readonly<Record<string, string>>): void => {
  const path = join(work, ".git/index");
  let bytes = readFileSync(path).subarray(0, -20);
  for (const [from, to] of Object.entries(names)) {
    assert.equal(Buffer.byteLength(from), Buffer.byteLength(to), from);
    const at = bytes.indexOf(`${from}\0`, 0, "latin1");
    assert.ok(at > 0, from);
    bytes = Buffer.concat([bytes.subarray(0, at), Buffer.from(to), bytes.subarray(at + from.length)]);
  }
  writeFileSync(path, Buffer.concat([bytes, createHash("sha1").update(bytes).digest()]));
};

test("git does not run on an index with names outside the repository", async () => {
  const odd = (home: string): readonly string[] => [
    ...[
      ".codex/./auth.json",
      ".codex//auth.json",
      "../.codex/auth.json",
      "sub/../.codex/auth.json",
      "./.codex/auth.json",
    ],
    ...[`${home}/.codex/auth.json`, ".codex/.git/x", ".GIT/config"],
  ];
  using place = repositoryWithSecrets();
  const plain = readFileSync(place.at("home/work/.git/index"));
  for (const [at, name] of odd(place.home).entries()) {
    writeFileSync(place.at("home/work/.git/index"), plain);
    const stand = `zz/${"z".repeat(Buffer.byteLength(name) - 3)}`;
    place.put(`home/work/${stand}`, "plain\n");
    gitIn(place.work, "add", "-f", stand);
    renameInIndex(place.work, { [stand]: name });
    await staysKept(name, "git grep -h secret", place);
    if (at > 0) continue;
    for (const text of ["git diff", "git diff HEAD", "git diff-files -p", "git status -v"])
      await staysKept(name, text, place);
    gitIn(place.work, "update-index", "--index-version", "4");
    await staysKept(`${name}, version 4`, "git diff", place);
    gitIn(place.work, "update-index", "--index-version", "2");
  }
});

test("a search goes through no folder that became a link", async () => {
  using place = repositoryWithSecrets();
  place.put("home/work/notes/deep/config", "plain\n");
  gitIn(place.work, "add", "notes");
  await checkSecretsHidden(place, [["git grep -h plain", /^plain$/m]]);
  rmSync(place.at("home/work/notes"), { recursive: true });
  place.put("home/.kube/deep/config", "the secret\n");
  symlinkSync("../.kube", place.at("home/work/notes"));
  await checkSecretsHidden(place, [
    ["git grep -h secret"],
    ["git grep -h -e plain -- '*.txt'"],
    ["git status --short", /D notes/],
    // An option's name is a pattern or a path here.
    ...[
      "-e --cached -e secret",
      "secret -- --cached .",
      "-h -e --cached --or -e secret",
      "-e secret -- . --cached",
    ].map((words) => mustNotRun(`git grep ${words}`)),
    ...["'(' --cached -e secret ')'", "--cache secret", "-e secret --cached=x"].map((words) =>
      mustNotRun(`git grep ${words}`),
    ),
    ["git grep --cached -h plain", /^plain$/m],
  ]);
});

test("a search of untracked files skips secrets, wherever its paths lead", async () => {
  using place = repositoryWithSecrets();
  place.put("home/work/proj/plain.txt", "plain\n");
  for (const name of [".env.local", "proj/.env", "deep/.aws/credentials"])
    place.put(`home/work/${name}`, "the secret\n");
  const below = { ...place, work: place.at("home/work/proj") };
  const paths = ["", "-- :/", "-- ..", "-- ../deep", "-- ':/.e*'", "':(top)'", `-- ${place.work}`, "-- ./x/../.."];
  for (const path of paths) {
    const { shown } = await runReadOnly(`git grep --untracked -h -e secret -e plain ${path}`, below);
    assert.doesNotMatch(shown, /the secret/, path);
  }
  await checkSecretsHidden(below, [
    ["git grep --untracked -h plain", /^plain$/m],
    ["git grep --untracked -h -e plain -e secret -- :/", /^plain$/m],
  ]);
  // A home folder that is a repository holds what is a key there alone.
  gitIn(place.home, "init", "-q");
  place.put("home/.claude/settings.json", "the secret\n");
  place.put("home/proj/plain.txt", "plain\n");
  const atHome = { ...place, work: place.at("home/proj") };
  for (const path of [...paths.slice(1), "-- ../.claude", "-- ':/.cl*'"]) {
    const { shown } = await runReadOnly(`git grep --untracked -h -e secret -e plain ${path}`, atHome);
    assert.doesNotMatch(shown, /the secret/, path);
  }
  await checkSecretsHidden(atHome, [["git grep --untracked -h -e secret -e plain", /^plain$/m]]);
});

test("git does not open a repository inside another", async () => {
  for (const version of ["2", "4"]) {
    using place = repositoryWithSecrets();
    const commit = gitIn(place.work, "rev-parse", "HEAD");
    gitIn(place.work, "init", "-q", "-b", "none", "inner");
    gitIn(place.work, "update-index", "--index-version", version, "--add", "--cacheinfo", `160000,${commit},inner`);
    await checkSecretsHidden(place, [["git status", /On branch/]]);
    symlinkSync("../../../.netrc", place.at("home/work/inner/.git/packed-refs"));
    place.put("home/work/plain.txt", "plain, changed\n");
    await checkSecretsHidden(
      place,
      ["git status", "git diff", "git diff HEAD", "git ls-files -m", "git ls-files -s"].map((text) => [text, /plain/]),
    );
    await checkSecretsHidden(place, [["git submodule status"]]);
    // In the place of a file that is tracked.
    rmSync(place.at("home/work/plain.txt"));
    renameSync(place.at("home/work/inner"), place.at("home/work/plain.txt"));
    await checkSecretsHidden(place, ["git status", "git diff"].map(mustNotRun));
  }
});

test("a folder that is almost a repository does not hide the one that git uses", async () => {
  using place = repositoryWithSecrets();
  place.put("home/work/.env", "the secret, changed\n");
  place.put("home/work/.gitattributes", ".env diff\n");
  for (const name of ["objects/x", "refs/x"]) place.put(`home/work/near/.git/${name}`, "");
  place.put("home/work/near/.git/config", "[core]\n\tbare = false\n");
  const heads = ["garbage\n", "", "ref: elsewhere\n", "ref: refs/heads/main", `${"0".repeat(39)}\n`];
  for (const head of heads) {
    place.put("home/work/near/.git/HEAD", head);
    if (head === heads[3]) place.put("home/work/near/.git/config", "[core]\n\trepositoryformatversion = 7\n");
    for (const text of ["git -C near diff HEAD", "cd near && git show HEAD", "git -C near grep -h secret -- :/"])
      await staysKept(JSON.stringify(head), text, place);
  }
});

test("an index that keeps whole folders in one entry is a reason to ask", async () => {
  using place = repositoryWithSecrets();
  gitIn(place.work, "sparse-checkout", "init", "--cone", "--sparse-index");
  gitIn(place.work, "sparse-checkout", "set", "z.d");
  place.put("home/work/z.d/plain", "plain\n");
  gitIn(place.work, "add", "z.d/plain");
  await checkSecretsHidden(place, [["git grep -h --cached -e secret -e plain"]]);
  gitIn(place.work, "sparse-checkout", "reapply", "--no-sparse-index");
  await checkSecretsHidden(place, [["git grep -h --cached -e secret -e plain", /plain/]]);
});
