/** A folder for the files of a run, removed with its owner's scope.
 *  Elsewhere: who needs one (fork/). */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

export type Scratch = AsyncDisposable & { readonly path: string };

export const makeScratch = async (): Promise<Scratch> => {
  const path = await mkdtemp(join(tmpdir(), "prefork-bench-"));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
};
