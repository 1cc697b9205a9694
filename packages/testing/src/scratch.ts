/** A temporary folder for one test, and its tree as plain data. */

import {
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  statfsSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

export type Scratch = Disposable & {
  readonly path: string;
  readonly at: (...names: readonly string[]) => string;
  /** Writes a file and the folders above it. */
  readonly put: (name: string, content?: string) => string;
};

export const scratch = (): Scratch => makeScratch(tmpdir());

/** In memory if there is enough room and the user did not set TMPDIR. On a disk, creating and removing thousands of small
 *  repositories takes as long as git's work in them. Not for tests of the guard, which reads nothing below /dev. */
export const scratchInMemory = (): Scratch => makeScratch(isTmpdirOurs() && hasRoom() ? MEMORY : tmpdir());

/** True unless the user set TMPDIR: `npm test` sets it to a folder of its own. */
const isTmpdirOurs = (): boolean => process.env.TMPDIR === process.env.PREFORK_TEST_TMPDIR;

const MEMORY = "/dev/shm";
const ROOM_BYTES = 1_000_000_000;

/** Some containers have little room there, or mount it noexec. */
const hasRoom = (): boolean => {
  try {
    const { bavail, bsize } = statfsSync(MEMORY);
    const mounted = readFileSync("/proc/mounts", "utf8").split("\n");
    const [, , kind, options = ""] = mounted.find((line) => line.split(" ")[1] === MEMORY)?.split(" ") ?? [];
    return kind === "tmpfs" && !options.split(",").includes("noexec") && bavail * bsize > ROOM_BYTES;
  } catch {
    return false;
  }
};

/** Sessions name their folder in the prompt, and tests count its tokens, so a path is equally long in both cases:
 *  `/tmp/prefork-test-123456` and, in the folder of `npm test`, `/tmp/run-123456/t-123456`. */
const nameIn = (folder: string): string => (folder === process.env.PREFORK_TEST_TMPDIR ? "t-" : "prefork-test-");

const makeScratch = (folder: string): Scratch => {
  const path = realpathSync(mkdtempSync(join(folder, nameIn(folder))));
  const at = (...names: readonly string[]): string => join(path, ...names);
  return {
    path,
    at,
    put: (name, content = "") => {
      mkdirSync(dirname(at(name)), { recursive: true });
      writeFileSync(at(name), content);
      return at(name);
    },
    [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }),
  };
};

/** Every name below a folder: a folder with its mode, a link with its target, or a file with its mode and content. */
export const treeOf = (folder: string, below = ""): Readonly<Record<string, string>> => {
  const found: Record<string, string> = {};
  for (const name of readdirSync(join(folder, below)).sort()) {
    const path = join(below, name);
    const stats = lstatSync(join(folder, path));
    const mode = (stats.mode & 0o7777).toString(8);
    if (stats.isDirectory()) Object.assign(found, { [`${path}/`]: mode }, treeOf(folder, path));
    else if (stats.isSymbolicLink()) found[path] = `-> ${readlinkSync(join(folder, path))}`;
    else if (stats.isFile()) found[path] = `${mode} ${readFileSync(join(folder, path), "utf8")}`;
    else found[path] = "special";
  }
  return found;
};
