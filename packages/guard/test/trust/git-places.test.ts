/** Trust covers the settings and hooks that git would take, wherever a folder's pointers and links lead it. */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { scratch } from "@prefork/testing/scratch";
import { configurationOf, grant, trustOf } from "../../src/trust/index.ts";

const git = (cwd: string, ...args: readonly string[]): void => {
  execFileSync("git", ["-C", cwd, "-c", "user.name=t", "-c", "user.email=t@t", "-c", "commit.gpgsign=false", ...args], {
    stdio: "ignore",
    env: { PATH: process.env.PATH, GIT_CONFIG_GLOBAL: "/dev/null", GIT_CONFIG_NOSYSTEM: "1" },
  });
};

/** Says yes to a folder as it is now. */
const agree = async (state: string, folder: string): Promise<void> => {
  const shown = await configurationOf(folder);
  assert.ok(shown.ok);
  assert.deepEqual(await grant(state, folder, shown.configuration.fingerprint), { ok: true });
};

test("settings and hooks that git takes from elsewhere are part of what is trusted", async () => {
  const evil = "[core]\n\tfsmonitor = ./evil.sh\n";
  type Place = ReturnType<typeof scratch>;
  /** How the repository is made, and changes that git would act on from then on. */
  const forms: Readonly<Record<string, readonly [(place: Place) => void, readonly ((place: Place) => void)[]]>> = {
    "a folder that it shares": [
      (place) => {
        place.put("repo/.git/commondir", "../shared\n");
        place.put("repo/shared/config", "");
      },
      [
        (place) => place.put("repo/shared/config", evil),
        (place) => place.put("repo/shared/hooks/pre-commit", "#!/bin/sh"),
      ],
    ],
    "a folder that it comes to share": [
      () => {},
      [
        (place) => {
          place.put("repo/shared/config", evil);
          place.put("repo/.git/commondir", "../shared\n");
        },
      ],
    ],
    "a git folder of another name": [
      (place) => {
        renameSync(place.at("repo/.git"), place.at("repo/gitd"));
        place.put("repo/.git", "gitdir: gitd\n");
      },
      [
        (place) => place.put("repo/gitd/config", evil),
        (place) => place.put("repo/gitd/hooks/pre-commit", "#!/bin/sh"),
        (place) => place.put("repo/gitd/config.worktree", evil),
      ],
    ],
    "pointers that go up behind a link": [
      (place) => {
        mkdirSync(place.at("repo/else/sub"), { recursive: true });
        symlinkSync("else/sub", place.at("repo/lnk"));
        renameSync(place.at("repo/.git"), place.at("repo/else/gitd"));
        place.put("repo/.git", "gitdir: lnk/../gitd\n");
        git(place.at("repo"), "config", "core.hooksPath", "lnk/../hk");
      },
      [
        (place) => place.put("repo/else/hk/pre-commit", "#!/bin/sh"),
        (place) => place.put("repo/else/gitd/config", evil),
      ],
    ],
    "a shared folder behind a link": [
      (place) => {
        mkdirSync(place.at("repo/else/sub"), { recursive: true });
        symlinkSync("../else/sub", place.at("repo/.git/lnk"));
        place.put("repo/.git/commondir", "lnk/../shared\n");
        place.put("repo/else/shared/config", "");
      },
      [(place) => place.put("repo/else/shared/config", evil)],
    ],
    "a git folder that is a link": [
      (place) => {
        renameSync(place.at("repo/.git"), place.at("repo/gitd"));
        symlinkSync("gitd", place.at("repo/.git"));
      },
      [(place) => place.put("repo/gitd/hooks/pre-commit", "#!/bin/sh"), (place) => place.put("repo/gitd/config", evil)],
    ],
    "hooks that are a link": [
      (place) => {
        rmSync(place.at("repo/.git/hooks"), { recursive: true, force: true });
        place.put("repo/hk/post-merge", "#!/bin/sh");
        symlinkSync("../hk", place.at("repo/.git/hooks"));
      },
      [
        (place) => place.put("repo/hk/pre-commit", "#!/bin/sh"),
        (place) => place.put("repo/hk/post-merge", "#!/bin/sh -x"),
      ],
    ],
    "a hook that is a link": [
      (place) => {
        place.put("repo/scripts/check", "#!/bin/sh");
        mkdirSync(place.at("repo/.git/hooks"), { recursive: true });
        symlinkSync("../../scripts/check", place.at("repo/.git/hooks/pre-commit"));
      },
      [(place) => place.put("repo/scripts/check", "#!/bin/sh -x")],
    ],
    "hooks in a folder that settings name": [
      (place) => {
        git(place.at("repo"), "config", "core.hooksPath", "hk");
        place.put("repo/hk/post-merge", "#!/bin/sh");
      },
      [
        (place) => place.put("repo/hk/pre-commit", "#!/bin/sh"),
        (place) => chmodSync(place.at("repo/hk/post-merge"), 0o755),
      ],
    ],
    "hooks that an included file names": [
      (place) => {
        git(place.at("repo"), "config", "include.path", "../team.cfg");
        place.put("repo/team.cfg", "[core] hooksPath = team-hooks\n");
      },
      [(place) => place.put("repo/team-hooks/pre-commit", "#!/bin/sh")],
    ],
    "a folder below the top of its repository": [
      (place) => {
        renameSync(place.at("repo/.git"), place.at(".git"));
        git(place.at("repo"), "config", "core.hooksPath", "hk");
      },
      [
        (place) => git(place.at("repo"), "config", "core.fsmonitor", "./evil.sh"),
        (place) => place.put("hk/pre-commit", "#!/bin/sh"),
        (place) => place.put(".git/hooks/pre-commit", "#!/bin/sh"),
      ],
    ],
    "files with names that every object has": [
      (place) => {
        for (const name of ["constructor", "__proto__"]) {
          git(place.at("repo"), "config", "--add", "include.path", `../${name}`);
          place.put(`repo/${name}`, "");
        }
        git(place.at("repo"), "config", "include.path", "../valueOf", "valueOf");
      },
      ["constructor", "__proto__", "valueOf"].map((name) => (place) => place.put(`repo/${name}`, evil)),
    ],
    "a work tree that was trusted by itself": [
      (place) => {
        renameSync(place.at("repo"), place.at("main"));
        git(place.at("main"), "commit", "-q", "--allow-empty", "-m", "first");
        git(place.at("main"), "worktree", "add", "-q", place.at("repo"), "-b", "side");
      },
      [
        (place) => git(place.at("main"), "config", "core.fsmonitor", "./evil.sh"),
        (place) => place.put("main/.git/hooks/pre-commit", "#!/bin/sh"),
        (place) => place.put("main/.git/worktrees/repo/config.worktree", evil),
      ],
    ],
  };
  for (const [form, [prepare, changes]] of Object.entries(forms)) {
    using place = scratch();
    const [state, repo] = [place.at("state"), place.at("repo")];
    mkdirSync(repo);
    git(repo, "init", "-q", "-b", "main");
    prepare(place);
    await agree(state, repo);
    for (const [at, change] of changes.entries()) {
      assert.equal((await trustOf(state, repo)).kind, "trusted", form);
      change(place);
      assert.equal((await trustOf(state, repo)).kind, "changed", `${form}, change ${at}`);
      await agree(state, repo);
    }
  }
});

/** A folder below this one, so deep that the absolute paths in it are too long for the system. Relative. */
const putDeepFolder = (folder: string): string => {
  const names = Array.from({ length: 20 }, () => "d".repeat(203));
  const before = process.cwd();
  try {
    process.chdir(folder);
    for (const name of names) {
      mkdirSync(name);
      process.chdir(name);
    }
    writeFileSync("inc", "[core]\n\tfsmonitor = ./evil.sh\n");
  } finally {
    process.chdir(before);
  }
  return names.join("/");
};

test("settings and hooks that git could get to, and we could not, are not trusted", async () => {
  using place = scratch();
  const repo = place.at("repo");
  mkdirSync(repo);
  git(repo, "init", "-q");
  place.put("repo/inc", "[core]\n\tfsmonitor = ./evil.sh\n");
  const deep = putDeepFolder(repo);
  try {
    const hooks = "/proc/self/cwd/hk";
    const settings = [
      `[include]\n\tpath = ../${deep}/inc`,
      `[include]\n\tpath = ../l/inc`,
      ...(existsSync("/proc/self/cwd")
        ? [
            "[include]\n\tpath = /proc/self/cwd/inc",
            "[include]\n\tpath = ../p",
            `[core]\n\thooksPath = ${hooks}`,
            "[core]\n\thooksPath = p",
          ]
        : []),
    ];
    symlinkSync(deep, place.at("repo/l"));
    symlinkSync("/proc/self/cwd/inc", place.at("repo/p"));
    const read = (text: string): string =>
      execFileSync("git", ["config", text.includes("hooksPath") ? "core.hooksPath" : "core.fsmonitor"], {
        cwd: repo,
        encoding: "utf8",
        env: { PATH: process.env.PATH, GIT_CONFIG_GLOBAL: "/dev/null", GIT_CONFIG_NOSYSTEM: "1" },
      }).trim();
    for (const text of settings) {
      place.put("repo/.git/config", `[core]\n\tbare = false\n${text}\n`);
      assert.notEqual(read(text), "", text); // git takes it
      assert.equal((await configurationOf(repo)).ok, false, text);
    }
    place.put("repo/.git/config", "[core]\n\tbare = false\n");
    assert.equal((await configurationOf(repo)).ok, true);
    if (!existsSync("/proc/self/cwd")) return;
    renameSync(place.at("repo/.git"), place.at("repo/gitd"));
    symlinkSync("/proc/self/cwd/gitd", place.at("repo/.git"));
    assert.equal((await configurationOf(repo)).ok, false);
    rmSync(place.at("repo/.git"));
    place.put("repo/.git", "gitdir: /proc/self/cwd/gitd\n");
    assert.equal((await configurationOf(repo)).ok, false);
  } finally {
    execFileSync("rm", ["-rf", "d".repeat(203)], { cwd: repo });
  }
});
