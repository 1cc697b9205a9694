/** Does a repository configure something that git would start, and that no override switches off?
 *  Invariant: asks git itself, with everything switched off that can be; reading its own configuration starts nothing.
 *  Elsewhere: the overrides (environment.ts), commands that use git (guard/bash). */

import { spawnSync } from "node:child_process";
import { realpathSync } from "node:fs";
import { resolve, sep } from "node:path";
import { cleanEnvironment } from "./environment.ts";
import { findProgram } from "./programs.ts";

/** Filters run when contents are compared, drivers when changes are shown, promisors when an object is missing. An alias stands in for a subcommand that this git does not have or no longer keeps. */
const HAZARD =
  /^(filter\..*\.(clean|smudge|process)|diff\..*\.(command|textconv)|diff\.external|merge\..*\.driver|extensions\.partialclone|remote\..*\.(promisor|partialclonefilter|vcs)|core\.(fsmonitor|alternaterefscommand)|trailer\..*\.(command|cmd)|gpg\.ssh\.defaultkeycommand|alias\.(whatchanged|range-diff|sparse-checkout|bisect|submodule))$/;

/** The built-in monitor is switched off by an override; a program of the repository's choice is a reason to ask. */
const HARMLESS = /^(core\.fsmonitor=(false|true|0|1|on|off|yes|no|))$/is;

export type Hazard = { readonly folder: string; readonly key: string };

type Answer = { readonly text: string; readonly complaint: string; readonly failed: boolean };

const ask = (git: string, folder: string, words: readonly string[]): Answer => {
  const { stdout, stderr, error, status } = spawnSync(git, [...words], {
    cwd: folder,
    env: cleanEnvironment(),
    encoding: "utf8",
    timeout: 5_000,
    maxBuffer: 4_000_000,
    stdio: ["ignore", "pipe", "pipe"],
  });
  return { text: stdout, complaint: stderr, failed: error !== undefined || status !== 0 };
};

/** The first hazard of the repository that git finds from `folder` and the `-C` it is given there; undefined where there
 *  is none, or no repository. */
export const gitHazard = (folder: string, within: readonly string[] = []): Hazard | undefined => {
  const git = findProgram("git");
  if (git === undefined) return undefined;
  const ways = within.flatMap((way) => ["-C", way]);
  const asked = ask(git, folder, [...ways, "config", "--list", "--show-scope", "-z"]);
  if (/^fatal: cannot change to/.test(asked.complaint)) return undefined; // nor can git when it is run
  if (asked.failed) return { folder, key: "what cannot be read" };
  const fields = asked.text.split("\0");
  for (let at = 0; at + 1 < fields.length; at += 2) {
    const scope = fields[at] ?? "";
    const [key = "", value = ""] = (fields[at + 1] ?? "").split(/\n(.*)/s);
    if (scope === "command") continue;
    if (HAZARD.test(key.toLowerCase()) && !HARMLESS.test(`${key}=${value}`)) return { folder, key };
    if (key === "core.worktree" && isElsewhere(git, folder, within)) return { folder, key };
  }
  return undefined;
};

/** A repository may say that its files lie somewhere else, in a folder that is none of its business. */
const isElsewhere = (git: string, folder: string, within: readonly string[]): boolean => {
  const ways = within.flatMap((way) => ["-C", way]);
  const { text, failed } = ask(git, folder, [...ways, "rev-parse", "--show-toplevel"]);
  if (failed) return true;
  const top = text.replace(/\n$/, "");
  try {
    const here = realpathSync.native(within.reduce((at, way) => resolve(at, way), folder));
    return here !== top && !here.startsWith(top.endsWith(sep) ? top : top + sep);
  } catch {
    return true;
  }
};

/** Does git find a repository from here that it is willing to use? */
export const isInRepository = (folder: string): boolean => {
  const git = findProgram("git");
  return git !== undefined && !ask(git, folder, ["rev-parse", "--git-dir"]).failed;
};
