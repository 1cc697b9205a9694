/** A staging folder for files on their way into or out of a checkout.
 *  Invariant: it is on the file system of the checkout, so that files are moved by renaming, and git does not see it.
 *  Elsewhere: who uses it (apply.ts, save.ts). */

import { lstat, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Repository } from "./repository.ts";

/** `point`: the number of an undo point, or the name of something else that is staged. */
export const stageFolder = async ({ gitDir, top }: Repository, point: number | string): Promise<string> => {
  const [own, files] = await Promise.all([lstat(gitDir), lstat(top)]);
  return own.dev === files.dev ? join(gitDir, `prefork-stage-${point}`) : join(top, `.prefork-stage-${point}`);
};

/** Safe after a crash: its content is also in the saved commit, or in the merged work. */
export const dropStage = async (repository: Repository, point: number | string): Promise<void> =>
  rm(await stageFolder(repository, point), { recursive: true, force: true });

/** Drops the staging folders of merges and undos that never started. Call it with the lock. */
export const dropStages = async ({ gitDir, top }: Repository): Promise<void> => {
  for (const [folder, name] of [
    [gitDir, /^prefork-stage-\d+$/],
    [top, /^\.prefork-stage-\d+$/],
  ] as const)
    for (const found of await readdir(folder))
      if (name.test(found)) await rm(join(folder, found), { recursive: true, force: true });
};
