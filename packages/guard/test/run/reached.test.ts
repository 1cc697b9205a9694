/** What may contain secrets is not shown, by whatever way a command that only reads comes to it: another program's walk, names
 *  that were listed, a repository's own objects and files. */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { classify, planHazard, runPlan } from "@prefork/guard";
import { uses } from "@prefork/testing/optional";
import { scratch } from "@prefork/testing/scratch";
import {
  checkSecretsHidden,
  gitIn,
  mustNotRun,
  type RepositoryWithSecrets,
  repositoryWithSecrets,
  runReadOnly,
} from "@prefork/testing/with-keys";
import { pathJudge } from "../../src/files/index.ts";
import { attributesFor } from "../../src/git/view.ts";
import { isSecret } from "../../src/paths/index.ts";
import { cleanEnvironment } from "../../src/process/environment.ts";
import { findProgram } from "../../src/process/programs.ts";
import { withoutKeys } from "../../src/run/walk-limits.ts";
import { lookThrough } from "../../src/run/walk-starts.ts";
import { secretPaths } from "../paths/secret-paths.ts";

test("a walk that another program starts skips secrets too", uses("@vscode/ripgrep"), async () => {
  using place = repositoryWithSecrets();
  await checkSecretsHidden(place, [
    ["find . -maxdepth 0 -exec grep -rh -e secret ~ {} +"],
    ["find . -maxdepth 0 -exec grep -rh -e secret .. {} +"],
    ["find . -maxdepth 0 -exec grep -rh -e secret -e plain sub {} +", /plain/],
    ["find *.d -type f -exec cat {} +", /plain/],
    ["find sub -type d -exec grep -rh -e secret -e plain {} + -o -name sub", /^$/],
    ["grep -hd recurse -e secret -e plain .", /plain/],
    ["ls -d ~ | xargs grep -rh secret"],
    ["ls -d /etc | xargs grep -rh secret"],
    ["ls -d app/.. | xargs grep -rh secret"],
    ["ls -d sub plain.txt | xargs grep -rh -e secret -e plain", /plain/],
    ["ls -d sub plain.txt | xargs -I{} grep -rhe secret -e plain {}", /plain/],
    ["cat app/../gh/hosts.yml"],
    ["cat app/../gh/*"],
  ]);
  if ((await runReadOnly("rg plain", place)).isRefused) return; // no ripgrep here
  await checkSecretsHidden(place, [
    ["find . -type d -exec rg -uuIN -e secret -e plain {} +", /plain/],
    ["find sub -exec rg -uuIN -e secret {} +", /^$/],
  ]);
});

test("find passes on no link and no secret, whatever comes before its action", async () => {
  using place = repositoryWithSecrets();
  symlinkSync("..", place.at("home/work/up"));
  symlinkSync("../.netrc", place.at("home/work/lines"));
  const actions = ["grep -r secret {} +", "cat {} +", "grep -h secret {} ';'"].map((action) => `-exec ${action}`);
  const signs = ["!", "-not", "! !", "! -not", "-name up !", "-type l !", "-false -o !", "-true , !", "! -true -o !"];
  await checkSecretsHidden(place, [
    ...signs.flatMap((sign) => actions.map((action) => [`find . ${sign} ${action}`, /^|$/] as const)),
    ...actions.map((action) => [`find . '(' ! ${action} ')' -o ! ${action}`, /^|$/] as const),
    ["find . -name 'p*' ! -exec grep -h plain {} +", /^plain$/m],
    ["find . -name 'p*' -exec grep -q plain {} ';' -print", /^\.\/plain\.txt$/m],
    ["find . -name 'p*' ! -exec grep -q other {} ';' -print", /^\.\/plain\.txt$/m],
  ]);
});

test("secrets in folders with names in another encoding are skipped by walks too", async () => {
  using place = repositoryWithSecrets();
  const folder = Buffer.concat([Buffer.from(`${place.work}/caf`), Buffer.from([0xe9])]);
  try {
    mkdirSync(folder);
    writeFileSync(Buffer.concat([folder, Buffer.from("/.env")]), "the secret\n");
  } catch {
    return; // a file system that takes no such name
  }
  await checkSecretsHidden(place, [
    ["find . -type f -exec cat {} +", /plain/],
    ["grep -rh -e secret -e plain .", /plain/],
  ]);
});

test("the completed name of a compressed file is checked", async () => {
  using place = repositoryWithSecrets();
  place.put("home/work/.env.gz", "the secret\n");
  symlinkSync(".env.gz", place.at("home", "work", "bundle.gz"));
  await checkSecretsHidden(place, [["zcat bundle"], ["gzip -dc bundle"]]);
});

test("a name that starts with a dash is checked like any other if it is not an option", async () => {
  using place = repositoryWithSecrets();
  symlinkSync(".env", place.at("home/work/-link"));
  symlinkSync("sub", place.at("home/work/-sub"));
  place.put("home/work/-d/.env", "the secret\n");
  place.put("home/work/-d/plain", "plain\n");
  place.put("home/work/-e/.env", "another secret\n");
  await checkSecretsHidden(place, [
    ...["cat -- -link", "head -n1 -- -link", "grep -e secret -- -link", "git diff --no-index -- -d -e"].map(mustNotRun),
    ["grep -rh -e secret -e plain -- -d", /^plain$/m],
    ["find . -path './-d/*' -exec grep -h -e secret -e plain {} +", /^plain$/m],
    ["diff -r -- -d -e", /plain/],
  ]);
});

test("a password in the address of a remote is not shown", async () => {
  using place = repositoryWithSecrets();
  const shown: readonly [string, RegExp?][] = [["git remote -v"], ["git remote -vv"], ["git remote get-url origin"]];
  const settings: readonly [string, RegExp?][] = [["git config --get remote.origin.url"]];
  gitIn(place.work, "remote", "add", "origin", "https://me@example.com/x.git");
  const asIs = (commands: readonly [string, RegExp?][]) => commands.map(([text]) => [text, /me@example/] as const);
  await checkSecretsHidden(place, [...asIs(shown), ...asIs(settings)]);
  for (const who of ["me:the secret", "x-access-token:abc", "ghp_0123456789012345678901234567890123456789"]) {
    gitIn(place.work, "remote", "set-url", "origin", `https://${encodeURI(who)}@example.com/x.git`);
    await checkSecretsHidden(place, [
      ...shown,
      ...settings,
      ["git remote", /origin/],
      ["git config --get user.name", /^$/],
    ]);
  }
});

test("settings that come from a file that may contain secrets are not shown", async () => {
  using place = repositoryWithSecrets();
  place.put("home/work/secrets.conf", "[db]\n\tname = the secret\n[user]\n\tname = the secret\n");
  place.put("home/work/other.git/config", "[mail]\n\tuser = the secret\n");
  place.put("home/work/.gitshared", "[core]\n\teditor = vi\n");
  const config = readFileSync(place.at("home", "work", ".git/config"), "utf8");
  for (const from of ["../secrets.conf", place.at("home", "work", "secrets.conf")]) {
    place.put("home/work/.git/config", `[include]\n\tpath = ${from}\n${config}`);
    await checkSecretsHidden(place, [
      ["git config --get db.name"],
      ["git config --get-regexp '^user'"],
      ["git config user.name"],
    ]);
    await checkSecretsHidden(place, [
      ["git status --short", /other\.git/],
      ["git config core.bare", /^false$/m],
    ]);
  }
  place.put("home/work/.git/config", `[includeIf "onbranch:main"]\n\tpath = ../other.git/config\n${config}`);
  await checkSecretsHidden(place, [["git config --get mail.user"]]);
  place.put("home/work/.git/config", `${config}[include]\n\tpath = ../.gitshared\n`);
  await checkSecretsHidden(place, [["git config core.editor"], ["git config core.bare", /^false$/m]]);
  rmSync(place.at("home", "work", ".git/config"));
  symlinkSync("../secrets.conf", place.at("home", "work", ".git/config"));
  await checkSecretsHidden(place, [["git config --get db.name"]]);
});

test("a pipe in place of a file makes nothing wait", async () => {
  using place = repositoryWithSecrets();
  place.put("home/work/plain.txt", "plain, changed\n"); // or git has nothing to compare, and looks for no attributes
  if (spawnSync("mkfifo", ["sub/pipe", ".gitattributes"], { cwd: place.work }).status !== 0) return;
  await checkSecretsHidden(place, [["find sub plain.txt -exec cat {} +", /plain/]]);
  const judged = classify("git diff");
  assert.ok(judged.verdict === "read-only");
  // git itself waits for it; that ends with the plan.
  const { ended } = await runPlan(judged.plan, { cwd: place.work, home: place.home, timeoutMs: 200 });
  assert.equal(ended, "timed-out");
});

test("one of git's own files that links to a secret is a reason to ask, at any depth", async () => {
  using place = repositoryWithSecrets();
  const links = [
    ...["objects/info/alternates", "packed-refs", "shallow", "BISECT_LOG", "info/sparse-checkout"],
    ...["objects/pack/multi-pack-index.d/multi-pack-index-chain", `objects/ab/${"c".repeat(38)}`],
    ...["worktrees/w/gitdir", "objects/info/commit-graphs/commit-graph-chain"],
    ...["refs/heads/a/b", "refs/heads/hooks", "refs/tags", "refs/remotes", "objects/ab", "objects/info", "MERGE_HEAD"],
    ...["rebase-merge/done", "info/exclude", "info/attributes", "BISECT_START", "sequencer/todo"],
  ];
  const neverRead = ["worktrees/v/locked", "logs/refs/heads/topic", "modules/sub/packed-refs", "modules/a/b/HEAD"];
  const git = place.at("home", "work", ".git");
  // Where it leads does not count: to a key, to what only a rule names, to another file of git.
  for (const name of [...links, ...neverRead])
    for (const [at, target] of [".env", "plain.txt", ".git/config", ".git/logs"].entries()) {
      const [path, kept] = [join(git, name), place.at("home/kept")];
      mkdirSync(dirname(path), { recursive: true });
      const isThere = existsSync(path);
      if (isThere) renameSync(path, kept);
      symlinkSync(place.at("home", "work", target), path);
      if (at === 0 || links.includes(name))
        await checkSecretsHidden(place, [
          neverRead.includes(name) ? ["git worktree list", /\[main\]/] : ["git worktree list"],
        ]);
      rmSync(path);
      if (isThere) renameSync(kept, path);
    }
  // A folder elsewhere, of which only the folder itself is a link.
  mkdirSync(place.at("home", "work", "elsewhere", "w"), { recursive: true });
  symlinkSync("../../.env", place.at("home", "work", "elsewhere", "w", "gitdir"));
  rmSync(join(git, "worktrees"), { recursive: true });
  symlinkSync("../elsewhere", join(git, "worktrees"));
  await checkSecretsHidden(place, [["git worktree list"]]);
  rmSync(join(git, "worktrees"));
  // Objects of another folder, which names a third.
  mkdirSync(place.at("home", "work", "elsewhere", "objects", "info"), { recursive: true });
  symlinkSync("../../../.env", place.at("home", "work", "elsewhere", "objects", "info", "alternates"));
  mkdirSync(place.at("home/work/elsewhere/sub"));
  symlinkSync("elsewhere/sub", place.at("home/work/away"));
  symlinkSync("../../elsewhere/objects", join(git, "objects", "zz")); // seen before under another name
  const bytes = Buffer.from(`${place.at("home/work/elsewhere/")}\xff`, "latin1");
  mkdirSync(Buffer.concat([bytes, Buffer.from("/info")]), { recursive: true });
  symlinkSync("../../../.env", Buffer.concat([bytes, Buffer.from("/info/alternates")]));
  for (const line of [bytes, place.at("home/work/away/../objects"), place.at("home/work/none")]) {
    writeFileSync(join(git, "objects/info/alternates"), line);
    await checkSecretsHidden(place, [["git log -1"]]);
  }
  for (const line of ["../../elsewhere/objects", '"../../\\145lsewhere/objects"', `${"#\n".repeat(600_000)}../x`]) {
    place.put("home/work/.git/objects/info/alternates", `${line}\n`);
    await checkSecretsHidden(place, [["git log -1"]]);
  }
});

test("a pipe anywhere among git's own files is a reason to ask, and nobody waits for it", async () => {
  using place = repositoryWithSecrets();
  const git = place.at("home", "work", ".git");
  for (const name of ["refs/heads/x/y", `objects/ab/${"c".repeat(38)}`, "logs/HEAD", "logs/refs/heads/z"]) {
    mkdirSync(dirname(join(git, name)), { recursive: true });
    rmSync(join(git, name), { force: true });
    if (spawnSync("mkfifo", [join(git, name)]).status !== 0) return;
    // A reflog that nobody asks for is not read.
    await checkSecretsHidden(place, [name.endsWith("z") ? ["git show --stat", /Add all/] : ["git show --stat"]]);
    rmSync(join(git, name));
  }
  await checkSecretsHidden(place, [["git show --stat", /Add all/]]);
});

test("worktrees, submodules, shared objects, linked hooks and a git folder elsewhere are no reason to ask", async () => {
  using place = repositoryWithSecrets();
  const { work } = place;
  const at = (...names: readonly string[]): string => place.at("home", ...names);
  const shows = async (folder: string, command = "git log -1 --format=%s"): Promise<void> =>
    checkSecretsHidden({ ...place, work: folder }, [[command, /Add all/]]);
  symlinkSync("../../plain.txt", at("work", ".git", "hooks", "pre-commit"));
  gitIn(work, "worktree", "add", "-q", "../tree", "-b", "topic");
  gitIn(work, "clone", "-q", "--shared", ".", "../shared");
  gitIn(work, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "../shared", "module");
  for (const folder of [work, at("tree"), at("shared"), at("work", "module")]) await shows(folder);
  // Folders of objects that are a link, or that name others, and those others again.
  gitIn(work, "clone", "-q", "--shared", "../shared", "../third");
  renameSync(at("third", ".git", "objects"), at("objects"));
  symlinkSync("../../objects", at("third", ".git", "objects"));
  for (const command of ["git log -1 --format=%s", "git show --stat HEAD", "git log -p"])
    await shows(at("third"), command);
  renameSync(at("shared", ".git"), at("store"));
  symlinkSync("../store", at("shared", ".git"));
  await checkSecretsHidden({ ...place, work: at("shared") }, [["git log -1"]]); // it may be anybody's
  gitIn(at("shared"), "config", "core.worktree", at("shared"));
  await shows(at("shared"));
});

test("repositories are checked once each before a plan, and too many are a reason to ask", () => {
  using place = repositoryWithSecrets();
  for (const name of ["a/a/a/a", "b", "c", "d", "e"]) mkdirSync(place.at("home", "work", name), { recursive: true });
  const hazardOf = (text: string): string | undefined => {
    const judged = classify(text);
    assert.ok(judged.verdict === "read-only", judged.reason);
    return planHazard(judged.plan, { cwd: place.work, home: place.home });
  };
  assert.equal(hazardOf(`cd a; cd a; ${"git log -1; ".repeat(90)}`), undefined);
  const many = ["a", "b", "c", "d", "e", "a/a", "a/a/a", "a/a/a/a", "."].map((name) => `git -C ${name} log -1`);
  assert.equal(hazardOf(many.join("; ")), "git would run in more than 8 folders");
});

test("settings of git that include a pipe are not followed, and nobody waits for them", async () => {
  using place = repositoryWithSecrets();
  if (spawnSync("mkfifo", ["pipe"], { cwd: place.work }).status !== 0) return;
  const spelled = ["../pipe ; x", '"../pi"pe # x', "\\\n../pipe", "../d/pipe"];
  symlinkSync(".", place.at("home", "work", "d"));
  for (const path of ["../pipe", place.at("home", "work", "pipe"), "../more", ...spelled]) {
    place.put("home/work/more", "[include]\npath = pipe\n");
    writeFileSync(place.at("home", "work", ".git", "config"), `[core]\nbare = false\n[include]\n\tpath = ${path}\n`);
    await checkSecretsHidden(place, [
      ["git status --short", /\?\? more/],
      ["git config --get user.name"], // which may stand there
    ]);
  }
});

test("a repository's attributes cannot make git show secrets, whatever their form", async () => {
  const lines = [
    ".codex/auth.json diff",
    "*.json diff",
    "config diff",
    '".\\145nv" diff',
    ".env text diff\r",
    ".e* !diff",
  ];
  using place = repositoryWithSecrets();
  for (const name of [".env", ".codex/auth.json", "sub/.aws/config"])
    place.put(`home/work/${name}`, "the secret, changed\n");
  place.put("home/work/plain.txt", "another\n");
  gitIn(place.work, "add", "-f", ".env");
  for (const line of lines) {
    place.put("home/work/.gitattributes", `${line}\n`);
    place.put("home/work/.git/info/attributes", `[attr]shown diff\n* shown\n${line}\n`);
    await checkSecretsHidden(place, [
      ["git diff", /^\+another$/m],
      ["git status -v", /Binary files a\/\.env and b\/\.env differ/],
    ]);
  }
  await checkSecretsHidden(place, [["git status --short", /M {2}\.env/]]);
});

/** Each of these forms keeps its index, its attributes or its files in another place. */
const FORMS: Readonly<Record<string, (place: RepositoryWithSecrets) => unknown>> = {
  "an index of version 4": ({ work }) => gitIn(work, "update-index", "--index-version", "4"),
  "a plain checkout": () => {},
  "a repository that lies elsewhere": ({ work, at }) => {
    renameSync(join(work, ".git"), at("home", "moved.git"));
    writeFileSync(join(work, ".git"), "gitdir: ../moved.git\n");
    gitIn(work, "config", "core.worktree", work); // or it may be anybody's
  },
  "files that are named by the settings": ({ work }) => gitIn(work, "config", "core.worktree", work),
};

test("attributes that only the index keeps show no keys in any form of a checkout", async () => {
  for (const [form, change] of Object.entries(FORMS)) {
    using place = repositoryWithSecrets();
    place.put("home/work/sub/.gitattributes", ".env diff\n");
    place.put("home/work/sub/.env", "the secret\n");
    gitIn(place.work, "add", "-f", "sub/.gitattributes", "sub/.env");
    change(place);
    rmSync(place.at("home", "work", "sub/.gitattributes"));
    place.put("home/work/sub/.env", "the secret, changed\n");
    const { shown } = await runReadOnly("git diff", place);
    assert.match(shown, /Binary files a\/sub\/\.env and b\/sub\/\.env differ/, form);
    assert.doesNotMatch(shown, /the secret/, form);
  }
});

test("an index that is kept in parts is a reason to ask", async () => {
  using place = repositoryWithSecrets();
  gitIn(place.work, "update-index", "--split-index");
  await checkSecretsHidden(place, [["git status"]]);
});

test("endless attributes, or ones that are mostly blank lines, are not read completely", async () => {
  using place = repositoryWithSecrets();
  place.put("home/work/plain.txt", "another\n");
  place.put("home/work/.env", "the secret, changed\n");
  place.put("home/work/.gitattributes", "\n".repeat(900_000));
  await checkSecretsHidden(place, [["git diff", /^\+another$/m]]);
  rmSync(place.at("home", "work", ".gitattributes"));
  symlinkSync("/dev/zero", place.at("home", "work", ".gitattributes"));
  await checkSecretsHidden(place, [["git diff"]]);
});

/** Names that many repositories have, and that look like others that hold keys. */
const EVERYDAY: readonly string[] = [
  ...[
    "src/git/config.ts",
    "huggingface/token.py",
    ".azure-pipelines.yml",
    ".azure-pipelines/ci.yml",
    ".aws-sam/x.yaml",
  ],
  ...[
    "service_account.go",
    "credentials.ts",
    "src/secrets/server.key.ts",
    "src/old_secrets.backend.ts",
    ".secretlintrc.json",
  ],
  ...[
    ".env.example",
    "secrets.example.yaml",
    "id_rsa.pub",
    "config/secret.sample.json",
    ".secrets.baseline",
    "yarn.lock",
  ],
  ...[
    ".claude/settings.json",
    ".mcp.json",
    ".vscode/settings.json",
    "docs/backup.md",
    "docs/part-2.md",
    ".github/workflows/ci-2.yml",
    "old-config.json",
    "Dockerfile",
  ],
];

test("neither git nor a walk through a very large folder shows a file with a secret name", async () => {
  using place = scratch();
  gitIn(place.path, "init", "-q");
  const paths = secretPaths(6);
  assert.ok(paths.length > 1_500, String(paths.length));
  place.put(".git/info/attributes", attributesFor());
  const asked = spawnSync("git", ["check-attr", "-z", "--stdin", "diff"], {
    ...{ cwd: place.path, encoding: "utf8", input: [...paths, ...EVERYDAY].map((path) => `${path}\0`).join("") },
    env: cleanEnvironment(),
  });
  const fields = asked.stdout.split("\0");
  const hidden = [...paths, ...EVERYDAY].filter((_, at) => fields[at * 3 + 2] === "unset");
  assert.deepEqual(hidden, paths);
  for (const path of [...paths.filter((_, at) => at % 3 === 0), ...EVERYDAY]) {
    try {
      place.put(`tree/${path}`, "the secret\n");
    } catch {
      // A file stands in the place of a folder, or the other way round.
    }
  }
  const here = { word: ".", path: place.at("tree") };
  const walks: readonly (readonly [string, readonly string[], string?])[] = [
    ["grep", ["-rl", "the secret", "."]],
    ["find", [".", "-type", "f", "-exec", "grep", "-l", "the secret", "{}", "+"]],
    ["rg", ["-uul", "the secret", "."], findProgram("rg") ?? "rg"],
  ];
  for (const [program, words, file = program] of walks) {
    const limited = withoutKeys(program, words, { here, starts: [here], found: [], isWhole: false });
    const { stdout, error } = spawnSync(file, [...limited], {
      cwd: here.path,
      encoding: "utf8",
      env: cleanEnvironment(),
    });
    if (error !== undefined && program === "rg") continue; // not on this machine
    const printed = stdout.split("\n").map((line) => line.replace(/^\.\//, ""));
    assert.deepEqual(printed.filter(isSecret), [], program);
    const shown = ["docs/backup.md", "docs/part-2.md", ".github/workflows/ci-2.yml", "src/git/config.ts"];
    assert.deepEqual(
      shown.filter((path) => !printed.includes(path)),
      [],
      program,
    );
  }
});

test("a secret name with a trailing blank is skipped by every walk", uses("@vscode/ripgrep"), async () => {
  using place = repositoryWithSecrets();
  for (const name of [
    ".env ",
    "id_rsa ",
    ".env\r",
    ".netrc\n",
    ".env\u00a0",
    "server.pem \t",
    ".ssh /x",
    ".ssh\u00a0/x",
  ])
    place.put(`home/work/blank/${name}`, "the secret\n");
  place.put("home/work/blank/plain", "no secret\n");
  const shows = /no secret/;
  await checkSecretsHidden(place, [
    ["grep -r secret blank", shows],
    ["find blank -type f -exec grep secret {} +", shows],
    ...(findProgram("rg") === undefined ? [] : [["rg -uu secret blank", shows] as const]),
  ]);
});

test("a file attached to any number of option letters is checked, by its name and by its target", async () => {
  using place = repositoryWithSecrets();
  symlinkSync(".env", place.at("home", "work", "n"));
  const glued = [
    ...["git blame -swtlefS.ssh/config plain.txt", "git grep -inwHEf.ssh/config", "grep -inHwoxf.netrc guess"],
    ...["git ls-files -ocdmkuX.env", `grep -${"i".repeat(300)}f.netrc guess`, "rg -.nHiwsxSf.netrc plain.txt"],
    ...["git blame -swtlefSn plain.txt", "grep -inHwoxsfn plain.txt", "git grep -inwHEfn", "git ls-files -ocdmkuXn"],
  ];
  await checkSecretsHidden(place, [
    ...glued.map(mustNotRun),
    ["grep -inHwofplain.txt plain.txt", /plain/],
    ["git log --format=%s -S'the other secret of user_credentials'", /^$/],
  ]);
});

test("with too many secrets to list, settings that are secret only in a home folder are still excluded by name", () => {
  using place = scratch();
  for (let at = 0; at < 205; at += 1) place.put(`src/k${at}/.env`, "");
  const settings = [".claude/projects/p/s.jsonl", ".claude/settings.json", ".mcp.json"];
  for (const name of settings) place.put(name, "the secret");
  const judge = pathJudge({ cwd: place.path, home: place.path });
  const left = lookThrough({ starts: [], here: { word: ".", path: place.path } }, { walks: new Map(), judge });
  assert.ok("found" in left);
  const found = left.found.map(({ path }) => path.slice(place.path.length + 1)).sort();
  assert.deepEqual([found, left.isWhole], [[".claude/projects", ".claude/settings.json", ".mcp.json"], false]);
});
