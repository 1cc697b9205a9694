/** git reads a view of a repository: in everyday states it says what it says of the repository itself, and of what a
 *  hostile `.git` holds it neither starts nor shows anything. */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { type Scratch, scratch } from "@prefork/testing/scratch";
import {
  checkSecretsHidden,
  gitIn,
  type RepositoryWithSecrets,
  repositoryWithSecrets,
  runReadOnly,
} from "@prefork/testing/with-keys";
import { GitViews } from "../../src/git/view.ts";
import { cleanEnvironment } from "../../src/process/environment.ts";

// --- everyday states -----------------------------------------------------------------------------------------------------

type Make = (place: Scratch, at: string) => unknown;

const clone = ({ path }: Scratch, at: string, ...words: readonly string[]): void =>
  void gitIn(path, "clone", "-q", ...words, words.includes("--depth") ? `file://${join(path, "base")}` : "base", at);

const commit = (at: string, text: string, ...files: readonly string[]): void => {
  for (const name of files) writeFileSync(join(at, name), `${text}\n`);
  gitIn(at, "add", "-A");
  gitIn(at, "commit", "-qm", text);
};

/** Stops in the middle, and says so by its exit code. */
const stops = (at: string, ...words: readonly string[]): void => {
  const { status } = spawnSync("git", ["-c", "user.name=a", "-c", "user.email=a@b.c", ...words], { cwd: at });
  assert.equal(status, 1, words.join(" "));
};

const makeBase = ({ path, put, at }: Scratch): void => {
  for (const name of [
    "a.txt",
    "b.txt",
    "src/x.ts",
    "src/deep/y.ts",
    "docs/über.md",
    'quo"te',
    "tab\tname",
    "two\nlines",
  ])
    put(`base/${name}`, "one\n");
  writeFileSync(Buffer.concat([Buffer.from(`${at("base")}/`), Buffer.from("bad\xff", "latin1")]), "bytes\n");
  put("base/.gitignore", "*.log\n");
  put("base/.gitattributes", "*.ts text=auto diff=java\n*.min.js -diff\n");
  symlinkSync("a.txt", at("base/link"));
  gitIn(path, "init", "-q", "-b", "main", "base");
  commit(at("base"), "First");
  gitIn(at("base"), "tag", "v1");
  commit(at("base"), "Second", "a.txt");
  gitIn(at("base"), "tag", "-a", "-m", "noted", "v2");
  gitIn(at("base"), "checkout", "-q", "-b", "topic");
  commit(at("base"), "On topic", "b.txt");
  gitIn(at("base"), "checkout", "-q", "main");
  commit(at("base"), "On main", "b.txt");
};

const STATES: Readonly<Record<string, Make>> = {
  "a clean clone": (place, at) => clone(place, at),
  "changes of every kind": (place, at) => {
    clone(place, at);
    writeFileSync(join(at, "a.txt"), "stashed\n");
    gitIn(at, "stash", "-q");
    for (const name of ["a.txt", "staged.txt", "new.txt", "x.log"]) writeFileSync(join(at, name), "changed\n");
    gitIn(at, "add", "staged.txt");
    gitIn(at, "mv", "src/x.ts", "src/renamed.ts");
    rmSync(join(at, "b.txt"));
    gitIn(at, "init", "-q", "nested");
    gitIn(at, "update-index", "--assume-unchanged", 'quo"te');
    gitIn(at, "update-index", "--skip-worktree", "src/deep/y.ts");
    writeFileSync(join(at, "meant.txt"), "to be added\n");
    gitIn(at, "add", "-N", "meant.txt");
  },
  "a linked worktree": (place, at) => {
    clone(place, `${at}-main`);
    gitIn(`${at}-main`, "worktree", "add", "-q", "-b", "wt", at);
    gitIn(`${at}-main`, "worktree", "add", "-q", "--detach", `${at}-detached`);
    gitIn(`${at}-main`, "worktree", "lock", "--reason", "a reason", `${at}-detached`);
  },
  "a submodule": (place, at) => {
    gitIn(place.path, "init", "-q", "super");
    gitIn(place.at("super"), "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "../base", "sub");
    symlinkSync(place.at("super/sub"), at);
  },
  "a shallow clone of packed refs": (place, at) => {
    clone(place, at, "--depth", "1", "--no-single-branch");
    gitIn(at, "pack-refs", "--all");
    gitIn(at, "branch", "loose");
  },
  "a commit that is checked out": (place, at) => {
    clone(place, at);
    gitIn(at, "checkout", "-q", "v1");
  },
  "a merge in progress": (place, at) => {
    clone(place, at);
    stops(at, "merge", "-q", "origin/topic");
  },
  "a rebase in progress": (place, at) => {
    clone(place, at);
    stops(at, "rebase", "-q", "origin/topic");
  },
  "no commit yet": (_, at) => {
    gitIn(tmpdir(), "init", "-q", "-b", "main", at);
    writeFileSync(join(at, "file"), "x\n");
  },
  "an index of version 4": (place, at) => {
    clone(place, at);
    gitIn(at, "update-index", "--index-version", "4");
    writeFileSync(join(at, "a.txt"), "changed\n");
  },
  "settings that change answers": (place, at) => {
    clone(place, at, "--separate-git-dir", `${at}-git`);
    gitIn(at, "config", "core.worktree", at); // or nothing says that it belongs there
    for (const [key, value] of [
      ...[["core.autocrlf", "true"] as const, ["core.quotepath", "off"] as const, ["diff.noprefix", "1"] as const],
      ...[
        ["status.showUntrackedFiles", "all"] as const,
        ["log.date", "iso"] as const,
        ["user.name", "Ann # B"] as const,
      ],
    ])
      gitIn(at, "config", key, value);
    writeFileSync(join(at, "a.txt"), "changed\r\n");
    writeFileSync(join(at, "src/new"), "\n");
  },
};

const ASKED: readonly string[] = [
  ...["status", "status --porcelain=v2 --branch --show-stash", "diff HEAD", "log -p --decorate --all", "grep -n one"],
  ...["ls-files -s -v", "show-ref -d", "branch -avv", "reflog", "remote -v", "config --get-regexp ^branch|^user"],
];

/** Answered by ourselves. */
const ASKED_OF_US: readonly string[] = [
  ...["git worktree list -v", "git worktree list --porcelain", "git rev-parse --git-dir --git-common-dir"],
  ...["git -C src rev-parse --git-dir --show-prefix --show-cdup", "git config --show-origin --get core.bare"],
];

type Said = (words: readonly string[], variables: Readonly<Record<string, string>>) => unknown;

/** Once it has a view, git says the same with nothing left of `.git` but its objects. */
const answersAlone = (folder: string, said: Said): void => {
  using views = new GitViews();
  const view = views.of(folder, ["status"]);
  assert.ok(!("problem" in view));
  const answers = (): readonly unknown[] =>
    ASKED.slice(0, 8).map((text) => said(text.split(" "), view.variables(text.split(" ")[0])));
  const before = answers();
  cpSync(join(folder, ".git"), `${folder}-kept`, { recursive: true, verbatimSymlinks: true, preserveTimestamps: true });
  for (const name of readdirSync(join(folder, ".git"))) {
    if (name === "objects") continue;
    rmSync(join(folder, ".git", name), { recursive: true });
    writeFileSync(join(folder, ".git", name), "nothing that git could read\n");
  }
  assert.deepEqual(answers(), before);
  rmSync(join(folder, ".git"), { recursive: true });
  renameSync(`${folder}-kept`, join(folder, ".git"));
};

test("git prints the same for a view as for the repository, in every everyday state", async () => {
  using place = scratch();
  makeBase(place);
  const env = { ...cleanEnvironment(), GIT_CONFIG_COUNT: "0" };
  const said = (cwd: string, words: readonly string[], variables: Readonly<Record<string, string>>) => {
    const { status, stdout, stderr } = spawnSync("git", [...words], {
      cwd,
      encoding: "latin1",
      env: { ...env, ...variables },
    });
    return { words, status, stdout, stderr };
  };
  for (const [at, [state, make]] of Object.entries(STATES).entries()) {
    const folder = place.at(`state-${at}`);
    make(place, folder);
    for (const cwd of state === "changes of every kind" ? [folder, join(folder, "src")] : [folder]) {
      using views = new GitViews();
      for (const words of ASKED.map((text) => text.split(" "))) {
        const view = views.of(cwd, words);
        assert.ok(!("problem" in view), `${state}: ${JSON.stringify(view)}`);
        assert.deepEqual(said(cwd, words, view.variables(words[0])), said(cwd, words, {}), state);
      }
    }
    if (state === "changes of every kind") answersAlone(folder, (words, variables) => said(folder, words, variables));
    for (const text of state === "no commit yet" ? [] : ASKED_OF_US) {
      const told = await runReadOnly(text, { ...place, work: folder, home: place.path });
      assert.deepEqual(
        told,
        { shown: said(folder, text.split(" ").slice(1), {}).stdout, isRefused: false },
        `${state}: ${text}`,
      );
    }
  }
});

test("a view is private to its owner, and removed at the end", () => {
  using place = repositoryWithSecrets();
  const made = (): string => {
    using views = new GitViews();
    const view = views.of(place.work, ["status"]);
    assert.ok(!("problem" in view));
    const folder = join(view.variables().GIT_DIR ?? "", "../..");
    assert.equal(statSync(folder).mode & 0o777, 0o700);
    return folder;
  };
  assert.equal(existsSync(made()), false);
});

// --- hostile states ------------------------------------------------------------------------------------------------------

/** Runs if anything of the repository does. */
const trap = (place: RepositoryWithSecrets): string => {
  const path = place.at("home/trap");
  writeFileSync(path, `#!/bin/sh\ntouch ${place.at("home/sprung")}\ncat\n`);
  chmodSync(path, 0o755);
  return path;
};

const own = (place: RepositoryWithSecrets, name: string): string => place.at("home/work/.git", name);

/** A link to a key where git keeps a file of its own. */
const linked = (place: RepositoryWithSecrets, name: string): void => {
  mkdirSync(join(own(place, name), ".."), { recursive: true });
  rmSync(own(place, name), { force: true });
  symlinkSync(place.at("home/.netrc"), own(place, name));
};

type Hostile = {
  readonly make: (place: RepositoryWithSecrets) => unknown;
  /** Commands with what they show; those without must not run. */
  readonly asked: readonly (readonly [string, RegExp?])[];
};

const SHOWN = /plain, changed/;
const EVERY: Hostile["asked"] = [
  ["git status", /plain\.txt/],
  ["git diff", SHOWN],
  ["git log -p", /Add all/],
];
const NONE: Hostile["asked"] = [["git status"], ["git log -1"]];

const IN_INDEX: Hostile["asked"] = [...NONE, ["git grep secret"], ["git diff"], ["git ls-files -m"]];

/** Two entries as our count goes: the first goes on, by its length, where git begins its second; the second is to git an
 *  extension that it passes over. */
const hideInIndex = (place: RepositoryWithSecrets, mode: number): void => {
  const whole = (text: Buffer): Buffer => Buffer.concat([text, Buffer.alloc(8 - (text.length % 8))]);
  const entry = (name: string, { fill = 0, kind = 0o100644, length = name.length } = {}): Buffer => {
    const facts = Buffer.alloc(62, fill);
    facts.writeUInt32BE(kind, 24);
    facts.writeUInt16BE(length, 60);
    return Buffer.concat([facts, Buffer.from(name)]);
  };
  const hidden = entry(place.at("home/.netrc"), { fill: 0x63, kind: mode, length: 0xfff });
  const first = whole(Buffer.concat([entry("aaaabbbbbb", { length: 4 }), hidden]));
  const second = whole(entry("z"));
  second.write("ABCD", 0);
  second.writeUInt32BE(second.length - 8, 4);
  const bytes = Buffer.concat([Buffer.from("DIRC\0\0\0\x02\0\0\0\x02", "latin1"), first, second]);
  writeFileSync(own(place, "index"), Buffer.concat([bytes, createHash("sha1").update(bytes).digest()]));
};

const ELSEWHERE: Hostile["asked"] = [
  ...NONE,
  ...[["git show HEAD:gh/hosts.yml"] as const, ["git show HEAD"] as const, ["git log -p --all"] as const],
  ...[["git grep --cached secret"] as const, ["git diff"] as const],
];

const settingsRepository = ({ at }: RepositoryWithSecrets): void => {
  gitIn(at("home/.config"), "init", "-q", "-b", "main");
  gitIn(at("home/.config"), "add", "-f", ".");
  gitIn(at("home/.config"), "commit", "-qm", "Settings");
};

const HOSTILE: Readonly<Record<string, Hostile>> = {
  "a program in settings that it includes": {
    make: (place) => {
      place.put("home/evil.cfg", `[filter "x"]\n\tclean = ${trap(place)}\n[core]\n\tfsmonitor = ${trap(place)}\n`);
      place.put("home/work/.gitattributes", "* filter=x\n");
      for (const name of ["include.path", "includeIf.onbranch:main.path"])
        gitIn(place.work, "config", name, place.at("home/evil.cfg"));
    },
    asked: EVERY,
  },
  "a program in settings, spelled in a way that only git reads": {
    make: (place) => writeFileSync(own(place, "config"), `[filter.\u2028x]\n\tclean = ${trap(place)}\n`),
    asked: NONE,
  },
  "a program behind a filter whose name has a line separator": {
    make: (place) => {
      place.put("home/work/.gitattributes", "* filter=e\u2028vil\n");
      gitIn(place.work, "config", "filter.e\u2028vil.clean", trap(place));
    },
    asked: NONE,
  },
  "settings that lie in the work tree": {
    make: (place) => {
      place.put("home/work/evil/config", `[diff]\n\texternal = ${trap(place)}\n`);
      for (const name of ["objects", "refs"]) symlinkSync(`../.git/${name}`, place.at("home/work/evil", name));
      writeFileSync(own(place, "commondir"), "../evil\n");
    },
    asked: NONE,
  },
  "a key that only history holds, and attributes that show it": {
    make: (place) => {
      place.put("home/work/prod-7.key", "the secret\n");
      gitIn(place.work, "add", "-f", "prod-7.key");
      gitIn(place.work, "commit", "-qm", "Add a key");
      gitIn(place.work, "rm", "-q", "prod-7.key");
      place.put("home/work/.gitattributes", "prod-7.key diff\n");
      gitIn(place.work, "add", ".gitattributes");
      gitIn(place.work, "commit", "-qm", "Remove it");
    },
    asked: [...EVERY, ["git show HEAD~1", /Binary files .*prod-7\.key differ/]],
  },
  "a note that is a key by its number": {
    make: ({ work }) => gitIn(work, "notes", "add", "-C", gitIn(work, "rev-parse", "HEAD:.env"), "HEAD"),
    asked: [
      ...EVERY,
      ["git log -1 --format=%s%N", /^Add all$/m],
      ...[["git log --notes"] as const, ["git log --notes=commits"] as const, ["git notes show HEAD"] as const],
    ],
  },
  "grafts that are a link to keys": { make: (place) => linked(place, "info/grafts"), asked: EVERY },
  "a reflog that is a link to keys": {
    make: (place) => linked(place, "logs/refs/heads/main"),
    asked: [...EVERY, ["git reflog show main"]],
  },
  "names to ignore that are a link to keys": { make: (place) => linked(place, "info/exclude"), asked: NONE },
  "steps of a rebase that are a link to keys": { make: (place) => linked(place, "rebase-merge/done"), asked: NONE },
  "an index that is a link to keys": { make: (place) => linked(place, "index"), asked: NONE },
  "an index that hides a file in a name": { make: (place) => hideInIndex(place, 0x418181a4), asked: IN_INDEX },
  "an index that hides a repository in a name": { make: (place) => hideInIndex(place, 0x4181e101), asked: IN_INDEX },
  "a HEAD that is no name": { make: (place) => writeFileSync(own(place, "HEAD"), "ref: ../../x\n"), asked: NONE },
  "packed refs that are none": {
    make: (place) => writeFileSync(own(place, "packed-refs"), "machine h login l\n"),
    asked: NONE,
  },
  "a .git that leads into another repository's records": {
    make: (place) => {
      renameSync(place.at("home/work/.git"), place.at("home/moved"));
      writeFileSync(place.at("home/work/.git"), "gitdir: ../moved\nmore\n");
    },
    asked: NONE,
  },
  "a pointer at the repository of a folder of settings": {
    make: (place) => {
      settingsRepository(place);
      rmSync(place.at("home/work/.git"), { recursive: true });
      writeFileSync(place.at("home/work/.git"), `gitdir: ${place.at("home/.config/.git")}\n`);
    },
    asked: ELSEWHERE,
  },
  "a link to the repository of a folder of settings": {
    make: (place) => {
      settingsRepository(place);
      rmSync(place.at("home/work/.git"), { recursive: true });
      symlinkSync("../.config/.git", place.at("home/work/.git"));
    },
    asked: ELSEWHERE,
  },
  "records that are kept in the repository of a folder of settings": {
    make: (place) => {
      settingsRepository(place);
      writeFileSync(own(place, "commondir"), place.at("home/.config/.git"));
    },
    asked: ELSEWHERE,
  },
  "a worktree that its repository does not know": {
    make: (place) => {
      settingsRepository(place);
      place.put("home/.config/.git/worktrees/x/HEAD", "ref: refs/heads/main\n");
      place.put("home/.config/.git/worktrees/x/commondir", "../..\n");
      place.put("home/.config/.git/worktrees/x/gitdir", `${place.at("home/else/.git")}\n`);
      rmSync(place.at("home/work/.git"), { recursive: true });
      writeFileSync(place.at("home/work/.git"), `gitdir: ${place.at("home/.config/.git/worktrees/x")}\n`);
    },
    asked: ELSEWHERE,
  },
  "a worktree of a folder of settings": {
    make: (place) => {
      settingsRepository(place);
      rmSync(place.work, { recursive: true });
      gitIn(place.at("home/.config"), "worktree", "add", "-q", place.work);
    },
    asked: ELSEWHERE,
  },
  "objects of the repository of a folder of settings": {
    make: (place) => {
      settingsRepository(place);
      place.put("home/work/.git/objects/info/alternates", `${place.at("home/.config/.git/objects")}\n`);
      writeFileSync(own(place, "refs/heads/other"), gitIn(place.at("home/.config"), "rev-parse", "HEAD"));
    },
    asked: [...ELSEWHERE, ["git show other"], ["git cat-file -p other:gh/hosts.yml"]],
  },
  "git run inside the repository's own folder": {
    make: () => {},
    asked: [["git -C .git log -1"], ["cd .git/hooks && git status"]],
  },
  "a pipe in a repository inside": {
    make: (place) => {
      place.put("home/work/inner/.git/refs/x", "");
      mkdirSync(place.at("home/work/inner/.git/objects"));
      assert.equal(spawnSync("mkfifo", [place.at("home/work/inner/.git/HEAD")]).status, 0);
    },
    asked: [["git status"]],
  },
};

test("git starts and shows nothing of a hostile .git", async () => {
  for (const [state, { make, asked }] of Object.entries(HOSTILE)) {
    using place = repositoryWithSecrets();
    place.put("home/.netrc", "machine the secret\n");
    make(place);
    place.put("home/work/plain.txt", "plain, changed\n");
    for (const one of asked) {
      const { shown, isRefused } = await runReadOnly(one[0], place);
      assert.doesNotMatch(shown, /the secret/, `${state}: ${one[0]}`);
      assert.equal(isRefused, one[1] === undefined, `${state}: ${one[0]}: ${shown}`);
      if (one[1]) assert.match(shown, one[1], `${state}: ${one[0]}`);
    }
    assert.ok(!readdirSync(place.home).includes("sprung"), state);
  }
});

test("a repository of another user is a reason to ask", async () => {
  if (process.getuid?.() !== 0) return; // nobody else can make one
  using place = repositoryWithSecrets();
  spawnSync("chown", ["12345", place.at("home/work/.git")]);
  await checkSecretsHidden(place, [["git status"]]);
});
