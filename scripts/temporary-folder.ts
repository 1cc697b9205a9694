/** Where do the tests of a run keep their temporary files? In one folder, which the run removes.
 *  On ext4 without a journal, common in virtual machines, a new file is not given the inode of a file deleted in the last
 *  minutes, and the search for another passes all of them. Tests delete so many files that this was a tenth of all CPU
 *  time. In a folder with the attribute `T`, each new folder starts in another part of the disk, with few such inodes.
 *  The attribute is best effort: without `chattr`, or on another file system, the tests only take longer.
 *  Elsewhere: the temporary folder of one test (packages/testing/src/scratch.ts). */

import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Makes the folder and names it in TMPDIR. A TMPDIR that is already set was chosen by the user and stays. */
export const makeTemporaryFolder = (environment: NodeJS.ProcessEnv): Disposable => {
  const path = mkdtempSync(join(tmpdir(), "run-")); // short, so that scratch.ts can keep paths as long as without it
  chmodSync(path, 0o711); // tests that give up root's rights must be able to enter their own folder
  environment.GIT_TEMPLATE_DIR ??= makeGitTemplate(path);
  if (environment.TMPDIR === undefined) {
    spawnSync("chattr", ["+T", path], { stdio: "ignore" });
    environment.TMPDIR = path;
    environment.PREFORK_TEST_TMPDIR = path;
  }
  return { [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true, maxRetries: 10 }) };
};

/** New repositories have the usual folders, but not git's 14 sample hooks: writing those takes most of `git init`. */
const makeGitTemplate = (folder: string): string => {
  const path = join(folder, "git-template");
  for (const name of ["hooks", "info"]) mkdirSync(join(path, name), { recursive: true });
  return path;
};
