/** Is this folder still the worktree that was created, and how does git run in it?
 *  Invariant: nothing that a task wrote into its worktree is trusted: git is told explicitly where the files and its own
 *  records are, and a folder behind a symbolic link is not accepted.
 *  Elsewhere: creating and removing a worktree (create.ts, work.ts). */

import { lstat, readdir, realpath, rm } from "node:fs/promises";
import { join } from "node:path";
import { readBounded } from "@prefork/guard/internal";
import type { RefFacts } from "./refs.ts";
import { dependOnCheckout, disabledPrograms, effectiveSettings, type Repository, settingsOf } from "./repository.ts";

export type OpenWorktree = Repository & {
  /** The branch of its HEAD; undefined if HEAD is detached. */
  readonly branch: string | undefined;
  /** The tree of its HEAD. */
  readonly tree: string | undefined;
};

type Known = ReadonlyMap<string, RefFacts>;

/** Undefined if the folder is gone, or is no longer this worktree. `refs`: refs that were just read. */
export const openWorktree = async (
  repository: Repository,
  path: string,
  refs: Known = new Map(),
): Promise<OpenWorktree | undefined> => {
  const records = await findGitRecords(repository, path);
  if (records === undefined || (await kindOfPath(path)) !== "folder") return undefined;
  const { commonDir, user } = repository;
  const locations = { GIT_DIR: records, GIT_WORK_TREE: path, GIT_COMMON_DIR: commonDir };
  const own = repository.git.in(locations).at(path);
  const settings = dependOnCheckout(repository.settings) ? await settingsOf(own) : repository.settings;
  const git = own.configured({ ...effectiveSettings(settings, user), ...disabledPrograms(settings) }).in(locations);
  const branch = /^ref: (refs\/\S+)$/.exec((await readNote(records, "HEAD")).trim())?.[1];
  const { id: head, tree } = refs.get(branch ?? "") ?? (await headOf(git));
  return {
    ...repository,
    git,
    settings,
    top: path,
    gitDir: records,
    index: join(records, "index"),
    head,
    tree,
    branch,
  };
};

const headOf = async (git: Repository["git"]): Promise<Partial<Pick<RefFacts, "id" | "tree">>> => {
  const { code, out } = await git.ask(["rev-parse", "HEAD^{commit}", "HEAD^{tree}"], { okCodes: [0, 128] });
  const [id = "", tree = ""] = out.toString().split("\n");
  return code === 0 ? { id, tree } : {}; // its branch was deleted
};

/** The folder in which git keeps its records of this worktree. */
const findGitRecords = async ({ commonDir }: Repository, path: string): Promise<string | undefined> => {
  const found: string[] = [];
  for (const folder of await listGitRecords(commonDir)) {
    const named = await readNote(folder, "gitdir");
    const isPlain = (await lstat(join(folder, "HEAD")).catch(() => undefined))?.isFile();
    if (named.trimEnd() === `${path}/.git` && isPlain) found.push(folder);
  }
  return found.length === 1 ? found[0] : undefined;
};

const MAX_NOTE_BYTES = 16_384;

/** The text of one of git's small files; empty if it does not exist. */
const readNote = async (folder: string, name: string): Promise<string> =>
  (await readBounded(join(folder, name), MAX_NOTE_BYTES))?.toString() ?? "";

const listGitRecords = async (commonDir: string): Promise<readonly string[]> => {
  const all = await readdir(join(commonDir, "worktrees"), { withFileTypes: true }).catch(() => []);
  return all.filter((one) => one.isDirectory()).map(({ name }) => join(commonDir, "worktrees", name));
};

const kindOfPath = async (path: string): Promise<"folder" | "nothing" | "else"> => {
  const facts = await lstat(path).catch(() => undefined);
  if (!facts) return "nothing";
  return facts.isDirectory() && (await realpath(path)) === path ? "folder" : "else";
};

/** Removes the folder and git's records of it: by git itself, and only if git lists it as a worktree of this repository. */
export const removeWorktreeFolder = async (repository: Repository, path: string): Promise<void> => {
  if ((await findGitRecords(repository, path)) === undefined || (await kindOfPath(path)) === "else") return;
  await repository.git.out(["worktree", "remove", "--force", "--force", path]);
};

/** The reason that keeps git from pruning a worktree. */
export const lockReason = (task: string): string => `prefork works here: ${task}`;

/** Removes git's records of a worktree whose creation was interrupted before it got a folder. */
export const dropUnfinishedRecords = async ({ commonDir }: Repository, task: string): Promise<void> => {
  for (const folder of await listGitRecords(commonDir)) {
    const [reason, named] = await Promise.all(["locked", "gitdir"].map((name) => readNote(folder, name)));
    if (reason?.trimEnd() === lockReason(task) && named === "") await rm(folder, { recursive: true, force: true });
  }
};
