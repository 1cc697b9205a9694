/** Is this folder still the copy that was made, and how does git work in it?
 *  Invariant: whatever a task has written into its copy, or made of it, is not believed: git is told where the files and
 *  where its records of them are, and a folder that is reached through a link is no copy.
 *  Elsewhere: making and removing one (create.ts, work.ts). */

import { lstat, readdir, realpath, rm } from "node:fs/promises";
import { join } from "node:path";
import { readBounded } from "@prefork/guard/internal";
import type { RefFacts } from "./refs.ts";
import { countingIn, dependOnCheckout, type Repository, settingsOf, switchedOff } from "./repository.ts";

export type Copy = Repository & {
  /** The ref that its head is on; undefined where it is on none. */
  readonly branch: string | undefined;
  /** The tree of its head. */
  readonly tree: string | undefined;
};

type Known = ReadonlyMap<string, RefFacts>;

/** Undefined where the folder is gone, or is no copy any more. `refs`: those that were read just now. */
export const openCopy = async (
  repository: Repository,
  path: string,
  refs: Known = new Map(),
): Promise<Copy | undefined> => {
  const records = await recordsOf(repository, path);
  if (records === undefined || (await placeOf(path)) !== "folder") return undefined;
  const { commonDir, user } = repository;
  const around = { GIT_DIR: records, GIT_WORK_TREE: path, GIT_COMMON_DIR: commonDir };
  const own = repository.git.in(around).at(path);
  const settings = dependOnCheckout(repository.settings) ? await settingsOf(own) : repository.settings;
  const git = own.configured({ ...countingIn(settings, user), ...switchedOff(settings) }).in(around);
  const branch = /^ref: (refs\/\S+)$/.exec((await noteIn(records, "HEAD")).trim())?.[1];
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
  const { code, out } = await git.ask(["rev-parse", "HEAD^{commit}", "HEAD^{tree}"], { may: [0, 128] });
  const [id = "", tree = ""] = out.toString().split("\n");
  return code === 0 ? { id, tree } : {}; // its branch is gone
};

/** The one folder of git's that is kept for these files. */
const recordsOf = async ({ commonDir }: Repository, path: string): Promise<string | undefined> => {
  const found: string[] = [];
  for (const folder of await allRecords(commonDir)) {
    const named = await noteIn(folder, "gitdir");
    const isPlain = (await lstat(join(folder, "HEAD")).catch(() => undefined))?.isFile();
    if (named.trimEnd() === `${path}/.git` && isPlain) found.push(folder);
  }
  return found.length === 1 ? found[0] : undefined;
};

const MOST_NOTE_BYTES = 16_384;

/** One of git's short notes; empty where there is none. */
const noteIn = async (folder: string, name: string): Promise<string> =>
  (await readBounded(join(folder, name), MOST_NOTE_BYTES))?.toString() ?? "";

const allRecords = async (commonDir: string): Promise<readonly string[]> => {
  const all = await readdir(join(commonDir, "worktrees"), { withFileTypes: true }).catch(() => []);
  return all.filter((one) => one.isDirectory()).map(({ name }) => join(commonDir, "worktrees", name));
};

const placeOf = async (path: string): Promise<"folder" | "nothing" | "else"> => {
  const facts = await lstat(path).catch(() => undefined);
  if (!facts) return "nothing";
  return facts.isDirectory() && (await realpath(path)) === path ? "folder" : "else";
};

/** The folder goes, and git's records of it; by git alone, and only where it calls it a copy of this repository. */
export const removeCopy = async (repository: Repository, path: string): Promise<void> => {
  if ((await recordsOf(repository, path)) === undefined || (await placeOf(path)) === "else") return;
  await repository.git.out(["worktree", "remove", "--force", "--force", path]);
};

/** Why git is not to remove a copy on its own. */
export const lockReason = (task: string): string => `prefork works here: ${task}`;

/** Records that git had begun, and did not come to name a folder in. */
export const dropHalfMade = async ({ commonDir }: Repository, task: string): Promise<void> => {
  for (const folder of await allRecords(commonDir)) {
    const [reason, named] = await Promise.all(["locked", "gitdir"].map((name) => noteIn(folder, name)));
    if (reason?.trimEnd() === lockReason(task) && named === "") await rm(folder, { recursive: true, force: true });
  }
};
