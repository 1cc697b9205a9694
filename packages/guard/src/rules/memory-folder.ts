/** A filter for runs that may write in one folder only.
 *  Invariant: the folder is looked up when the filter is created: a link means its target, a missing folder is an
 *  error, and a folder that later takes its place is not written to.
 *  Elsewhere: judging calls (filters.ts), comparing the folder before and after a run (the caller), holding files open
 *  (../files). */

import { type BigIntStats, realpathSync, statSync } from "node:fs";
import { judgePath } from "../paths/index.ts";
import { type MemoryFolder, type ToolFilter, writesInside } from "./filters.ts";

const cannot = (name: string, why: string, cause?: unknown): Error =>
  new Error(`${name} cannot be a memory folder: ${why}`, cause === undefined ? {} : { cause });

const lookedUp = (name: string): { readonly path: string; readonly stats: BigIntStats } => {
  try {
    const path = realpathSync.native(name);
    return { path, stats: statSync(path, { bigint: true }) };
  } catch (error) {
    const isMissing = (error as NodeJS.ErrnoException).code === "ENOENT";
    throw cannot(name, isMissing ? "there is no such folder" : (error as Error).message, error);
  }
};

/** Allows reading tools, read-only commands, and Write and Edit inside one folder. `folder`: its absolute path, or several
 *  that lead to the same folder. Throws if it does not exist. */
export const memoryOnly = (folder: string | readonly string[]): ToolFilter => {
  const given = (typeof folder === "string" ? [folder] : folder).map((name) => {
    const judged = judgePath(name);
    if (!judged.ok || judged.parts.length === 0) throw cannot(name, "not an absolute folder");
    return judged.path;
  });
  const [first] = given;
  if (first === undefined) throw new Error("a memory folder needs a name");
  const { path, stats } = lookedUp(first);
  if (!stats.isDirectory()) throw cannot(first, "it is not a folder");
  if (path === "/") throw cannot(first, "it is the root of the file system");
  for (const other of given.slice(1)) if (lookedUp(other).path !== path) throw cannot(other, `it is not ${path}`);
  const problem = (): string | undefined => {
    try {
      const now = lookedUp(first);
      const isSame = now.path === path && now.stats.dev === stats.dev && now.stats.ino === stats.ino;
      return isSame ? undefined : `the memory folder ${first} was replaced since this run started`;
    } catch {
      return `the memory folder ${first} is gone`;
    }
  };
  const memory: MemoryFolder = { path, names: [...new Set([path, ...given])], problem };
  return Object.assign(writesInside([...new Set([...given, path])], problem), { memory });
};
