/** Which files do git's settings include?
 *  Invariant: git itself reads the settings, from exactly the bytes that are hashed. Whether a condition is true now does not
 *  matter. If git cannot read them, or a path cannot be resolved, there is no answer.
 *  Elsewhere: hashing the files (configuration.ts). */

import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, isAbsolute, join } from "node:path";
import { SYSTEM_FOLDERS } from "../paths/index.ts";
import { withMemoryLimit } from "../process/index.ts";

/** git's exit code for a missing key. */
const NONE = 1;

/** Paths as git opens them, in order; `file` is the path through which it reached these settings. Links are not resolved here:
 *  only the file system knows what `..` means after one. */
export const includedPaths = async (file: string, settings: Uint8Array): Promise<readonly string[] | undefined> => {
  const paths = await valuesIn(settings, "include", "^include(if)?\\..*path$");
  return allOrNone(paths?.map((path) => resolved(path, dirname(file))));
};

/** Folders that settings name for hooks; a relative one is relative to the top of the work tree. */
export const hooksPathsIn = async (settings: Uint8Array): Promise<readonly string[] | undefined> => {
  const paths = await valuesIn(settings, "hookspath", "^core\\.hookspath$");
  return allOrNone(paths?.map((path) => resolved(path, "")));
};

const allOrNone = (paths: readonly (string | undefined)[] | undefined): readonly string[] | undefined =>
  paths?.every((path) => path !== undefined) ? paths : undefined;

/** The values of these keys. `letters`: nothing in the syntax can write them in another way. */
const valuesIn = async (
  settings: Uint8Array,
  letters: string,
  keys: string,
): Promise<readonly string[] | undefined> => {
  if (!Buffer.from(settings).toString("latin1").toLowerCase().includes(letters)) return [];
  const git = SYSTEM_FOLDERS.map((folder) => join(folder, "git")).find((path) => existsSync(path));
  if (git === undefined) return undefined;
  const text = await readByGit(git, settings, keys);
  // A name that is not valid text cannot be followed from here.
  if (text === undefined || text.includes("\ufffd")) return undefined;
  return text
    .split("\0")
    .slice(0, -1)
    .map((value) => /\n(.*)$/s.exec(value)?.[1] ?? "");
};

/** git's output; undefined if it fails. Asynchronous, because there may be hundreds of files. */
const readByGit = (git: string, settings: Uint8Array, keys: string): Promise<string | undefined> =>
  new Promise((done) => {
    const words = ["config", "--file", "-", "--no-includes", "-z", "--get-regexp", keys];
    const [program = "", ...args] = withMemoryLimit([git, ...words]);
    const child = execFile(
      program,
      args,
      {
        cwd: "/", // outside of any repository
        env: {
          ...{ PATH: SYSTEM_FOLDERS.join(":"), HOME: "/dev/null", LC_ALL: "C.UTF-8" },
          ...{ GIT_CONFIG_NOSYSTEM: "1", GIT_CONFIG_GLOBAL: "/dev/null" },
        },
        timeout: 5_000,
        maxBuffer: 4_000_000,
        encoding: "utf8",
      },
      (error, stdout) => done(error === null ? stdout : error.code === NONE && !error.killed ? "" : undefined),
    );
    child.stdin?.on("error", () => undefined); // git may exit before it has read everything; its exit code tells
    child.stdin?.end(settings);
  });

const resolved = (path: string, base: string): string | undefined => {
  if (path === "" || /^~[^/]|^%\(/.test(path)) return undefined;
  if (path.startsWith("~")) return homedir() + path.slice(1);
  return isAbsolute(path) || base === "" ? path : `${base}/${path}`;
};
