/** A repository's own configuration is a reason to ask when git could act on it, and no other is. */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, realpathSync, renameSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { scratch } from "@prefork/testing/scratch";
import { checkSecretsHidden, gitIn, mustNotRun, repositoryWithSecrets } from "@prefork/testing/with-keys";
import { cleanEnvironment } from "../../src/process/environment.ts";
import { type CommandPlan, classify } from "../../src/rules/index.ts";
import { planHazard, runPlan } from "../../src/run/run-plan.ts";
import { ground } from "../run/ground.ts";

const git = (folder: string, ...words: readonly string[]): void => {
  execFileSync("git", [...words], { cwd: folder, env: cleanEnvironment(), stdio: "ignore" });
};

const STATUS = classify("git status");
assert.ok(STATUS.verdict === "read-only");
const { plan: statusPlan } = STATUS;

/** Which setting is a reason to ask for `git status` here. */
const hazardOf = (cwd: string, plan = statusPlan): string | undefined => {
  const reason = planHazard(plan, { cwd });
  return reason && (/^the repository configures (.*), which git could act on$/s.exec(reason)?.[1] ?? reason);
};

/** The key that a repository with this one setting is asked about for. */
const askedFor = (key: string, value: string): string | undefined => {
  using place = scratch();
  git(place.path, "init", "--quiet");
  git(place.path, "config", key, value);
  return hazardOf(place.path);
};

test("settings that git could act on are a reason to ask", () => {
  const settings: readonly (readonly [string, string])[] = [
    ["alias.whatchanged", "!./run"],
    ["alias.submodule", "reset --hard"],
    ["attr.tree", "refs/heads/other"],
    ["core.notyetinvented", "x"],
    ["diff.orderfile", "/etc/passwd"],
    ["diff.x.notyetinvented", "x"],
    ["filter.x.clean", "./run"],
    ...["\u2028", "\u2029", "\r", "."].map((sign) => [`filter.e${sign}vil.clean`, "./run"] as const),
    ["trailer.e\u2028vil.cmd", "./run"],
    ["filter.x.notyetinvented", "./run"],
    ["gpg.ssh.defaultkeycommand", "./run"],
    ["gpg.notyetinvented", "./run"],
    ["hook.x.command", "./run"],
    ["diff.x.textconv", "./run"],
  ];
  for (const [key, value] of settings) assert.equal(askedFor(key, value), key, `${key}=${value}`);
});

test("a special file that git would read on its own is reported, and not waited for", () => {
  const { verdict, ...judged } = classify("git status");
  assert.ok(verdict === "read-only" && "plan" in judged);
  const names = [".gitignore", "sub/.gitattributes", ".mailmap", ".git/config", ".git/HEAD", ".git/info/exclude"];
  for (const name of names) {
    using place = scratch();
    const top = realpathSync(place.path);
    git(top, "init", "--quiet");
    place.put("sub/deep/file", "x");
    assert.equal(planHazard(judged.plan, { cwd: join(top, "sub") }), undefined);
    rmSync(join(top, name), { force: true });
    execFileSync("mkfifo", [join(top, name)]);
    assert.equal(
      planHazard(judged.plan, { cwd: join(top, "sub/deep") }),
      `${join(top, name)} is not a regular file, and git would block on it`,
    );
  }
});

test("settings that only change how output looks, or that are overridden, are no reason to ask", () => {
  const settings: readonly (readonly [string, string])[] = [
    ["pretty.mine", "format:%G? %s"],
    ["format.pretty", "oneline"],
    ["format.pretty", "%Cgreen%h%Creset %s"],
    ["log.showSignature", "true"],
    ["gpg.program", "./check"],
    ["gpg.ssh.program", "./check"],
    ["alias.st", "status"],
    ["gpg.format", "ssh"],
    ["user.name", "n"],
    ["core.worktree", ".."],
  ];
  for (const [key, value] of settings) assert.equal(askedFor(key, value), undefined, `${key}=${value}`);
});

test("a repository that claims a work tree elsewhere is a reason to ask, wherever git finds it", () => {
  using place = scratch();
  const inside = join(realpathSync(place.path), "repository");
  const outside = join(realpathSync(place.path), "private");
  mkdirSync(join(inside, "src"), { recursive: true });
  mkdirSync(outside);
  git(inside, "init", "--quiet");
  assert.equal(hazardOf(inside), undefined);
  git(inside, "config", "core.worktree", outside);
  assert.equal(hazardOf(inside), "core.worktree");
  const led = classify("git -C ../repository/src status");
  assert.ok(led.verdict === "read-only");
  assert.equal(hazardOf(outside, led.plan), "core.worktree");
  for (const above of [join(inside, ".."), "/", join(inside, "src")]) {
    git(inside, "config", "core.worktree", above);
    assert.equal(hazardOf(inside), "core.worktree", above);
    assert.equal(hazardOf(join(inside, "src")), "core.worktree", above);
  }
  git(inside, "config", "core.worktree", inside);
  assert.equal(hazardOf(inside), undefined);
  assert.equal(hazardOf(join(inside, "src")), undefined);
});

test("git reports a change to a file that a plan hides, and shows none of its contents", async () => {
  using place = ground();
  place.put("work/Secrets/deep/key.txt", "withheld\n");
  place.put("work/other/secrets/key.txt", "shown elsewhere\n");
  place.put("work/sub/plain.txt", "shown\n");
  git(place.work, "add", "--all");
  git(place.work, "-c", "user.name=Ann", "-c", "user.email=ann@example.com", "commit", "-m", "keys");
  const plan = (text: string): CommandPlan => {
    const judged = classify(text);
    assert.ok(judged.verdict === "read-only", `${text}: ${judged.reason}`);
    return { ...judged.plan, hiddenFiles: ["/secrets", "/secrets/**"] };
  };
  for (const text of ["git show HEAD", "git log -p -1", "cd sub && git show --text HEAD", "git -C sub diff HEAD~1"]) {
    const { stdout } = await runPlan(plan(text), { cwd: place.work });
    const seen = ["withheld", "shown elsewhere", "shown"].map((line) => stdout.includes(`+${line}\n`));
    assert.deepEqual(seen, [false, true, true], `${text}: ${stdout}`);
    assert.match(stdout, /Binary files .* and b\/Secrets\/deep\/key\.txt differ/);
  }
  place.put("work/.gitattributes", "*.txt diff\n");
  const { stdout } = await runPlan(plan("git show HEAD"), { cwd: place.work });
  assert.deepEqual([stdout.includes("+withheld\n"), stdout.includes("+shown\n")], [false, true]);
});

test("the checks before a plan are bounded, whatever a repository includes or contains", () => {
  using place = scratch();
  const work = join(place.path, "work");
  mkdirSync(work);
  git(work, "init", "--quiet");
  const hazard = (): string => hazardOf(work) ?? "none";
  execFileSync("mkfifo", [join(place.path, "pipe")]);
  place.put("work/.git/i0", `[include]\n\tpath = i0\n# include ${"x".repeat(500_000)}\n`);
  const included = ["i0", "../../pipe", "/proc/self/pagemap"].map((path) => `[include]\n\tpath = ${path}\n`);
  place.put("work/.git/config", `[core]\n\tbare = false\n${included.join("")}`);
  assert.equal(hazard(), "none"); // nothing of it is followed
  renameSync(join(work, ".git"), join(work, "gitd"));
  for (const end of ["", "\n", "\n\n", "\r\n", "\r\n\n"]) {
    place.put("work/.git", `gitdir: gitd${end}`);
    assert.equal(hazard(), "none", JSON.stringify(end));
  }
  rmSync(join(work, ".git"));
  renameSync(join(work, "gitd"), join(work, ".git"));
  place.put("work/.git/config", `[core]\n\tbare = false\n# ${"x".repeat(1_500_000)}\n`);
  assert.match(hazard(), /config is too large/);
  rmSync(join(work, ".git/config"));
  symlinkSync("/proc/self/pagemap", join(work, ".git/config")); // says that it has no bytes, and has no end
  if (existsSync("/proc/self/pagemap")) assert.match(hazard(), /config, which is a link/);
});

test("git does not reveal whether a hidden file contains a text", async () => {
  using place = repositoryWithSecrets();
  const { work } = place;
  place.put("home/work/.env", "API_KEY=s3cr3t\n");
  place.put("home/work/plain.txt", "API_KEY=plain\n");
  gitIn(work, "add", "-A", "-f");
  gitIn(work, "commit", "-qm", "Change both");
  place.put("home/work/.env", "");
  gitIn(work, "commit", "-qam", "Empty one");
  const nothing = /^(?!.*(?:Binary|\.env|yes|Empty)).*$/s;
  await checkSecretsHidden(place, [
    ...["-q", "-qP", "-c", "-l", "-h"].flatMap((option): readonly (readonly [string, RegExp])[] => [
      [`git grep ${option} '^API_KEY=s' HEAD~1 && echo yes; echo asked`, nothing],
      [`git grep ${option} --cached 'API_KEY=[q-z]' && echo yes; echo asked`, nothing],
    ]),
    ["git log -S'API_KEY=s' --name-only --format=%s; echo asked", nothing],
    ["git log -S'API_KEY=[r-t]3' --pickaxe-regex --all --format=%s -- . ; echo asked", nothing],
    ["git diff HEAD~1 HEAD -SAPI_KEY=s --name-only; echo asked", nothing],
    ["git show -SAPI_KEY=s --format= --stat HEAD; echo asked", nothing],
    mustNotRun("git stash list -SAPI_KEY"),
    ["git grep -c API_KEY=p", /^plain\.txt:1$/m],
    ["git grep -h API_KEY HEAD~1 -- plain.txt", /API_KEY=plain/],
    ["git log -SAPI_KEY=p --name-only --format=%s", /^Change both\n\nplain\.txt$/m],
    ["git log -SAPI_KEY=p --format=%s plain.txt", /^Change both$/m],
  ]);
});
