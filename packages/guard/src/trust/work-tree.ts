/** Is this folder a work tree of a repository, and does that repository agree?
 *  Invariant: a folder's own statement is never enough: the repository's record must point back at exactly this folder.
 *  Elsewhere: what follows from it (store.ts). */

import { realpath } from "node:fs/promises";
import { basename, dirname, isAbsolute, join } from "node:path";
import { openRoot, type Root, RootError } from "../files/index.ts";
import { judgePath } from "../paths/index.ts";
import { resolvePointer } from "./git-places.ts";

const MAX_POINTER_BYTES = 8_192;

const pointer = async (root: Root, path: string): Promise<string | undefined> => {
  const read = await root.read(path, { maxBytes: MAX_POINTER_BYTES });
  return read.ok ? /^([^\n]+)\n?$/.exec(read.bytes.toString("utf8"))?.[1] : undefined;
};

const pointsBackAt = async (folder: string, claimed: string): Promise<boolean> => {
  if (basename(claimed) !== ".git") return false;
  return realpath(dirname(claimed)).then(
    (real) => real === folder,
    () => false,
  );
};

/** The main repository's folder, verified from both ends; undefined if the folder is not such a work tree. */
export const mainRepositoryOf = async (folder: Root): Promise<string | undefined> => {
  const claim = /^gitdir: (.+)$/.exec((await pointer(folder, join(folder.path, ".git"))) ?? "")?.[1];
  if (claim === undefined) return undefined;
  const target = resolvePointer(folder.path, claim);
  if (target === undefined) return undefined;
  const record = judgePath(target);
  if (!record.ok || record.parts.at(-2) !== "worktrees" || record.parts.at(-3) !== ".git") return undefined;
  const main = `/${record.parts.slice(0, -3).join("/")}`;
  try {
    await using root = await openRoot(main);
    if (root.path !== main) return undefined;
    const back = await pointer(root, join(record.path, "gitdir"));
    const common = await pointer(root, join(record.path, "commondir"));
    if (back === undefined || common === undefined) return undefined;
    const agrees = resolvePointer(record.path, common) === join(main, ".git");
    const claimed = isAbsolute(back) ? back : `${record.path}/${back}`;
    return agrees && (await pointsBackAt(folder.path, claimed)) ? main : undefined;
  } catch (error) {
    if (error instanceof RootError) return undefined;
    throw error;
  }
};
