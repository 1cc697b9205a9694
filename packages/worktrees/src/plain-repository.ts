/** Is what git writes of a repository where it seems to be, and does it belong to this folder?
 *  Invariant: before git writes anything, the folders that it writes into are plain folders, and the names that are ours
 *  point to commits by themselves: a link would lead git out of the repository, a symbolic name would move a branch of the
 *  user's, and a pipe would keep its reader waiting. Nothing is opened that could wait.
 *  Elsewhere: which repository it is (repository.ts), names of ours (refs.ts). */

import type { Stats } from "node:fs";
import { lstat, readdir, readlink, realpath } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { readBounded, shownName } from "@prefork/guard/internal";
import { WorktreeError } from "./errors.ts";

/** Of this checkout, and of all checkouts together. */
type Places = { readonly gitDir: string; readonly commonDir: string; readonly index: string };

const FOLDERS: readonly string[] = ["refs", "refs/heads", "objects", "logs", "logs/refs", "logs/refs/heads"];
const FOLDERS_OF_TASKS: readonly string[] = ["refs/prefork", "refs/heads/prefork", "logs/refs/heads/prefork"];
const FILES: readonly string[] = ["config", "packed-refs", "info/exclude", "info/attributes", "info/grafts", "shallow"];
const OWN_FILES: readonly string[] = ["config.worktree", "commondir", "gitdir"];

const OBJECTS = /^(?:[0-9a-f]{2}|pack|info)$/;

/** Throws where one of them is something else. */
export const mustBePlain = async ({ gitDir, commonDir, index }: Places): Promise<void> => {
  await Promise.all([
    ...FOLDERS.map((name) => mustBe("folder", join(commonDir, name))),
    ...FOLDERS_OF_TASKS.map((name) => mustHoldFiles(join(commonDir, name))),
    ...FILES.map((name) => mustBe("file", join(commonDir, name))),
    ...OWN_FILES.map((name) => mustBe("file", join(gitDir, name))),
    mustBe("file", index),
    mustBeHead(join(gitDir, "HEAD")),
    mustHoldFolders(join(commonDir, "objects")),
    mustBeOurs(join(commonDir, "refs/prefork/saved")),
  ]);
};

/** `worktree`: the setting core.worktree. */
type Claim = Omit<Places, "index"> & { readonly top: string; readonly worktree: string | undefined };

/** Throws if `.git` leads to a repository that does not know this folder: anybody can write such a file, and it can name
 *  any repository of the user. */
export const mustBelongTo = async ({ top, gitDir, commonDir, worktree }: Claim): Promise<void> => {
  const [git, common] = await Promise.all([gitDir, commonDir].map((path) => realpath(path)));
  if (git === undefined || common === undefined) return;
  if ([git, common].every((path) => path.startsWith(`${top}/`))) return;
  if (git === common && worktree !== undefined && (await realOf(resolve(git, worktree))) === top) return;
  if (dirname(git) === join(common, "worktrees")) {
    const record = join(git, "gitdir");
    const back = (await readBounded(record, MOST_NAME_BYTES))?.toString().trimEnd() ?? "";
    const named = resolve(git, back);
    if (basename(named) === ".git" && (await realOf(dirname(named))) === top) return;
  }
  const help =
    git === common ? `; if it is the right one: git -C ${shownName(top)} config core.worktree ${shownName(top)}` : "";
  throw new WorktreeError(
    "not-ready",
    `${join(top, ".git")} leads to ${common}, which has no record of this folder${help}`,
  );
};

const realOf = (path: string): Promise<string | undefined> => realpath(path).catch(() => undefined);

const refuse = (path: string, what: string): WorktreeError =>
  new WorktreeError("not-ready", `${path} ${what}, so git could write or wait elsewhere; put the repository in order`);

const factsOf = (path: string): Promise<Stats | undefined> => lstat(path).catch(() => undefined);

const mustBe = async (kind: "file" | "folder", path: string): Promise<void> => {
  const facts = await factsOf(path);
  if (facts === undefined || (kind === "file" ? facts.isFile() : facts.isDirectory())) return;
  throw refuse(path, facts.isSymbolicLink() ? "is a link" : `is not a regular ${kind}`);
};

/** It was a link to a branch in the first years of git. */
const mustBeHead = async (path: string): Promise<void> => {
  const target = await readlink(path).catch(() => undefined);
  if (target === undefined || !/^refs\/(?!.*\.\.)/.test(target)) await mustBe("file", path);
};

const mustHoldFolders = async (folder: string): Promise<void> => {
  for (const entry of await readdir(folder, { withFileTypes: true }).catch(() => []))
    if (OBJECTS.test(entry.name) && !entry.isDirectory())
      throw refuse(join(folder, entry.name), "is not a regular folder");
};

const mustHoldFiles = async (folder: string): Promise<void> => {
  await mustBe("folder", folder);
  for (const entry of await readdir(folder, { withFileTypes: true }).catch(() => [])) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) await mustHoldFiles(path);
    else if (!entry.isFile()) throw refuse(path, "is not a regular file");
  }
};

const MOST_NAME_BYTES = 4_096;

/** What a merge replaced is kept under these names, by a git that follows a symbolic one. */
const mustBeOurs = async (folder: string): Promise<void> => {
  for (const name of await readdir(folder).catch(() => [])) {
    const text = await readBounded(join(folder, name), MOST_NAME_BYTES);
    if (text === undefined || text.toString("latin1").trimStart().startsWith("ref:"))
      throw refuse(join(folder, name), "is a name for another name");
  }
};
