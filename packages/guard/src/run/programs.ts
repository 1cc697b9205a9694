/** Where is a program that Prefork starts by itself?
 *  Invariant: programs come from system folders, never from PATH or the workspace. The one exception is our own copy of
 *  ripgrep, and that only as long as its bytes are the pinned ones: a file that somebody replaced is not run.
 *  Elsewhere: what programs see of the environment (environment.ts), whether bubblewrap works (sandbox.ts). */

import { accessSync, constants, readdirSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { SYSTEM_FOLDERS } from "../paths/index.ts";
import { pinnedRipgrep } from "./pinned-ripgrep.ts";

export { SYSTEM_FOLDERS };

/** Programs named here are treated as not installed: `PREFORK_HIDE_PROGRAMS="bwrap rg"`. Tests show with it what happens
 *  on a machine that lacks one; it can only take a program away. Our own copy of ripgrep is named `@vscode/ripgrep`. */
export const HIDE_PROGRAMS = "PREFORK_HIDE_PROGRAMS";

const OWN_RIPGREP = "@vscode/ripgrep";

const isHidden = (name: string): boolean => (process.env[HIDE_PROGRAMS] ?? "").split(/[\s,]+/).includes(name);

const isProgram = (path: string): boolean => {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
};

const inSystem = (name: string): string | undefined =>
  isHidden(name) ? undefined : SYSTEM_FOLDERS.map((folder) => join(folder, name)).find(isProgram);

const ownRipgrep = (): string | undefined => (isHidden(OWN_RIPGREP) ? undefined : pinnedRipgrep());

/** Where a program lies: the system's, as a shell would take it; for `rg` our own copy where the system has none. */
export const findProgram = (name: string): string | undefined =>
  inSystem(name) ?? (name === "rg" ? ownRipgrep() : undefined);

/** For the search tools: our own copy first, because its version is known; the system's where ours is not there. */
export const findRipgrep = (): string | undefined => ownRipgrep() ?? inSystem("rg");

/** Why a program that was not found is missing, for messages. */
export const whyMissing = (name: string): string => (isHidden(name) ? `hidden by ${HIDE_PROGRAMS}` : "not installed");

/** The folders in which a program finds others that are named in its words, as in `xargs rg`. Ours comes last, only
 *  where it is needed, and only while there is nothing else in it that could be started. */
export const searchPath = (words: readonly string[] = []): string => {
  const own = words.includes("rg") && inSystem("rg") === undefined ? ownRipgrep() : undefined;
  const folders = own !== undefined && isAlone(own) ? [...SYSTEM_FOLDERS, dirname(own)] : SYSTEM_FOLDERS;
  return folders.join(":");
};

const isAlone = (path: string): boolean => {
  try {
    return readdirSync(dirname(path)).length === 1;
  } catch {
    return false;
  }
};
