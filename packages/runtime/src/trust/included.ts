/** Which files do settings of git include?
 *  Invariant: git itself reads the settings, from the very bytes that are hashed; whether a condition holds now does not
 *  matter. What git cannot read, or nobody can resolve, has no answer.
 *  Elsewhere: hashing the files (configuration.ts). */

import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, isAbsolute, join } from "node:path";
import { SYSTEM_FOLDERS } from "../paths/index.ts";

const ASKED = ["config", "--file", "-", "--no-includes", "-z", "--get-regexp", "^include(if)?\\..*path$"];
/** git's way to say that there is none. */
const NONE = 1;

/** Paths as git opens them, in order; `file` is the path by which it came to these settings. Links on the way are left to
 *  whoever follows them: what `..` means behind one, only the file system can say. */
export const includedPaths = (file: string, settings: Uint8Array): readonly string[] | undefined => {
  // Nothing in the syntax can write these letters in another way.
  if (!/include/i.test(Buffer.from(settings).toString("latin1"))) return [];
  const git = SYSTEM_FOLDERS.map((folder) => join(folder, "git")).find((path) => existsSync(path));
  if (git === undefined) return undefined;
  const { stdout, status, error } = spawnSync(git, ASKED, {
    cwd: "/", // outside of any repository
    env: {
      ...{ PATH: SYSTEM_FOLDERS.join(":"), HOME: "/dev/null", LC_ALL: "C.UTF-8" },
      ...{ GIT_CONFIG_NOSYSTEM: "1", GIT_CONFIG_GLOBAL: "/dev/null" },
    },
    input: settings,
    timeout: 5_000,
    maxBuffer: 4_000_000,
    stdio: ["pipe", "pipe", "pipe"],
  });
  if (error === undefined && status === NONE) return [];
  const text = stdout?.toString("utf8") ?? "";
  // A name that is no text cannot be followed from here.
  if (error !== undefined || status !== 0 || text.includes("\ufffd")) return undefined;
  const values = text.split("\0").slice(0, -1);
  const paths = values.map((value) => resolved(file, /\n(.*)$/s.exec(value)?.[1] ?? ""));
  return paths.every((path) => path !== undefined) ? paths : undefined;
};

const resolved = (file: string, path: string): string | undefined => {
  if (path === "" || /^~[^/]|^%\(/.test(path)) return undefined;
  if (path.startsWith("~")) return homedir() + path.slice(1);
  return isAbsolute(path) ? path : `${dirname(file)}/${path}`;
};
