/** A repository that contains secrets, and what read-only commands show of it. */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { symlinkSync } from "node:fs";
import { classify, planHazard, runPlan } from "@prefork/guard";
import { type Scratch, scratch } from "./scratch.ts";
import { NO_GIT_MAINTENANCE } from "./without-upkeep.ts";

export type RepositoryWithSecrets = Scratch & { readonly work: string; readonly home: string };

export const gitIn = (folder: string, ...words: readonly string[]): string => {
  const who = ["-c", "user.name=a", "-c", "user.email=a@b.c"];
  const { status, stdout, stderr } = spawnSync("git", [...who, ...words], {
    cwd: folder,
    encoding: "utf8",
    env: { ...process.env, ...NO_GIT_MAINTENANCE },
  });
  assert.equal(status, 0, `${words.join(" ")}: ${stderr}`);
  return stdout.trim();
};

/** A small repository with secrets in it, in a home folder that has secrets too. */
export const repositoryWithSecrets = (): RepositoryWithSecrets => {
  const place = scratch();
  const [work, home] = [place.at("home", "work"), place.at("home")];
  const keys = [".netrc", ".codex/auth.json", ".config/gh/hosts.yml"].map((name) => `home/${name}`);
  const kept = [".env", ".codex/auth.json", "sub/.aws/config", "z.d/.env"].map((name) => `home/work/${name}`);
  for (const name of [...keys, ...kept]) place.put(name, "the secret\n");
  place.put("home/.config/app/x", "");
  place.put("home/work/plain.txt", "plain\n");
  place.put("home/work/(a.d", "plain\n");
  symlinkSync(place.at("home", ".config", "app"), place.at("home", "work", "app"));
  gitIn(work, "init", "-q", "-b", "main");
  gitIn(work, "add", "-f", ".");
  gitIn(work, "commit", "-q", "-m", "Add all");
  return { ...place, work, home };
};

type ReadOnlyResult = { readonly shown: string; readonly isRefused: boolean };

/** Runs a command as the agent would, and returns what it shows and whether it was refused. */
export const runReadOnly = async (text: string, { work, home }: RepositoryWithSecrets): Promise<ReadOnlyResult> => {
  const judged = classify(text);
  if (judged.verdict !== "read-only" || planHazard(judged.plan, { cwd: work, home }) !== undefined)
    return { shown: "", isRefused: true };
  const { stdout, stderr, refused } = await runPlan(judged.plan, { cwd: work, home });
  return { shown: stdout + stderr, isRefused: refused !== undefined };
};

/** Checks that no command shows a secret. Each comes with a pattern that its output must match, which proves that it ran;
 *  a command without a pattern must be refused. */
export const checkSecretsHidden = async (
  place: RepositoryWithSecrets,
  commands: readonly (readonly [string, RegExp?])[],
): Promise<void> => {
  for (const [text, shows] of commands) {
    const { shown, isRefused } = await runReadOnly(text, place);
    assert.doesNotMatch(shown, /the secret/, text);
    assert.equal(isRefused, shows === undefined, `${text}: ${shown}`);
    if (shows) assert.match(shown, shows, text);
  }
};

/** A command that must not run. */
export const mustNotRun = (text: string): readonly [string] => [text];
