/** Does a repository configure something that git would start, and that no override switches off?
 *  Invariant: asks git itself, with everything switched off that can be; reading its own configuration starts nothing.
 *  Elsewhere: the overrides (environment.ts), commands that use git (guard/bash). */

import { spawnSync } from "node:child_process";
import { cleanEnvironment, findProgram } from "./environment.ts";

/** Filters run when contents are compared, drivers when changes are shown, promisors when an object is missing. */
const HAZARD =
  /^(filter\..*\.(clean|smudge|process)|diff\..*\.(command|textconv)|diff\.external|merge\..*\.driver|extensions\.partialclone|remote\..*\.(promisor|partialclonefilter|vcs)|core\.(fsmonitor|alternaterefscommand)|trailer\..*\.(command|cmd))$/;

/** The built-in monitor is switched off by an override; a program of the repository's choice is a reason to ask. */
const HARMLESS = /^core\.fsmonitor=(false|true|0|1|on|off|yes|no|)$/i;

export type Hazard = { readonly folder: string; readonly key: string };

/** The first hazard of the repository that git finds from `folder` and the `-C` it is given there; undefined where there
 *  is none, or no repository. */
export const gitHazard = (folder: string, within: readonly string[] = []): Hazard | undefined => {
  const git = findProgram("git");
  if (git === undefined) return undefined;
  const ways = within.flatMap((way) => ["-C", way]);
  const asked = spawnSync(git, [...ways, "config", "--list", "--show-scope", "-z"], {
    cwd: folder,
    env: cleanEnvironment(),
    encoding: "utf8",
    timeout: 5_000,
    maxBuffer: 4_000_000,
    stdio: ["ignore", "pipe", "pipe"],
  });
  if (/^fatal: cannot change to/.test(asked.stderr)) return undefined; // nor can git when it is run
  if (asked.error || asked.status !== 0) return { folder, key: "what cannot be read" };
  const fields = asked.stdout.split("\0");
  for (let at = 0; at + 1 < fields.length; at += 2) {
    const scope = fields[at] ?? "";
    const [key = "", value = ""] = (fields[at + 1] ?? "").split(/\n(.*)/s);
    if (scope === "command") continue;
    if (HAZARD.test(key.toLowerCase()) && !HARMLESS.test(`${key}=${value}`)) return { folder, key };
  }
  return undefined;
};
