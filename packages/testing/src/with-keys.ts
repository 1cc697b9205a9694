/** A repository with keys in it, and what commands that only read show of it. */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { symlinkSync } from "node:fs";
import { classify, planHazard, runPlan } from "@prefork/guard";
import { type Scratch, scratch } from "./scratch.ts";
import { WITHOUT_UPKEEP } from "./without-upkeep.ts";

export type Place = Scratch & { readonly work: string; readonly home: string };

export const gitIn = (folder: string, ...words: readonly string[]): string => {
  const who = ["-c", "user.name=a", "-c", "user.email=a@b.c"];
  const { status, stdout, stderr } = spawnSync("git", [...who, ...words], {
    cwd: folder,
    encoding: "utf8",
    env: { ...process.env, ...WITHOUT_UPKEEP },
  });
  assert.equal(status, 0, `${words.join(" ")}: ${stderr}`);
  return stdout.trim();
};

/** A small repository with keys in it, in a home folder with keys beside it. */
export const withKeys = (): Place => {
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

type Told = { readonly shown: string; readonly kept: boolean };

/** What a command shows, and whether it was kept from running. */
export const tell = async (text: string, { work, home }: Place): Promise<Told> => {
  const judged = classify(text);
  if (judged.verdict !== "read-only" || planHazard(judged.plan, { cwd: work, home }) !== undefined)
    return { shown: "", kept: true };
  const { stdout, stderr, refused } = await runPlan(judged.plan, { cwd: work, home });
  return { shown: stdout + stderr, kept: refused !== undefined };
};

/** Each with what it shows all the same, so that it is known to have run; none where it must not. */
export const checkAll = async (place: Place, commands: readonly (readonly [string, RegExp?])[]): Promise<void> => {
  for (const [text, shows] of commands) {
    const { shown, kept } = await tell(text, place);
    assert.doesNotMatch(shown, /the secret/, text);
    assert.equal(kept, shows === undefined, `${text}: ${shown}`);
    if (shows) assert.match(shown, shows, text);
  }
};

/** A command that must not run. */
export const only = (text: string): readonly [string] => [text];
