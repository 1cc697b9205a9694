/** A folder for files on their way into a checkout, or out of it.
 *  Invariant: on the file system of the checkout, so that renaming is all it takes, and where git does not look.
 *  Elsewhere: who uses it (apply.ts, save.ts). */

import { lstat, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Repository } from "./repository.ts";

export const stageOf = async ({ gitDir, top }: Repository, point: number): Promise<string> => {
  const [own, files] = await Promise.all([lstat(gitDir), lstat(top)]);
  return own.dev === files.dev ? join(gitDir, `prefork-stage-${point}`) : join(top, `.prefork-stage-${point}`);
};

/** Also after a crash. What it held is in the saved commit, or in the work that was merged. */
export const dropStage = async (repository: Repository, point: number): Promise<void> =>
  rm(await stageOf(repository, point), { recursive: true, force: true });

/** Those of a merge or an undo that had not begun. Call it alone. */
export const dropStages = async ({ gitDir, top }: Repository): Promise<void> => {
  for (const [folder, name] of [
    [gitDir, /^prefork-stage-\d+$/],
    [top, /^\.prefork-stage-\d+$/],
  ] as const)
    for (const found of await readdir(folder))
      if (name.test(found)) await rm(join(folder, found), { recursive: true, force: true });
};
