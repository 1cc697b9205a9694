/** Puts a merged tree into the checkout, file by file.
 *  Invariant: all new contents are on disk before the first file changes, and replaced files are moved aside, not deleted.
 *  So if the disk fills up, a file is in the way, or something changes concurrently, renames alone restore everything.
 *  Only files that the merge changes are touched, and each keeps its permissions. The index is not touched.
 *  Elsewhere: what to change (merge-plan.ts), restoring after a crash (save.ts). */

import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { Checkout, type FileState } from "./checkout.ts";
import { WorktreeError } from "./errors.ts";
import { bytesOf, type Git, inputOf, messagePath, type TreePath } from "./git.ts";
import type { FileChange } from "./merge-plan.ts";
import type { Repository } from "./repository.ts";
import { restoreFolders, type SavedState } from "./save.ts";
import { dropStage, stageFolder } from "./stage.ts";

export type ApplyOptions = {
  /** The number of the undo point. */
  readonly point: number;
  readonly changes: readonly FileChange[];
  readonly saved: SavedState;
  /** A scratch folder. */
  readonly scratch: string;
  readonly step: (name: string) => void;
  /** Records that everything is in place. If it fails, everything is restored. */
  readonly record: () => Promise<void>;
};

export const applyChanges = async (repository: Repository, options: ApplyOptions): Promise<void> => {
  const { point, changes, saved, step, record } = options;
  const stage = await stageFolder(repository, point);
  const before = new Map(saved.files.map((file) => [file.path, file.before]));
  await using checkout = await Checkout.open(repository.top);
  const swap = new Swap(checkout, stage);
  try {
    for (const name of ["new", "old"]) await mkdir(join(stage, name), { recursive: true, mode: 0o700 });
    await stageNew(repository.git.indexed(join(options.scratch, "stage")), changes, join(stage, "new"));
    step("swap begins");
    for (const { path } of changes) await swap.takeOut(path, before.get(path));
    step("swap half done");
    for (const { path, after } of changes) if (after) await swap.clear(path);
    for (const change of changes) await swap.putIn(change, before.get(change.path));
    await swap.dropEmpty();
    step("swap ends");
    await record();
  } catch (error) {
    await swap.rollBack();
    await restoreFolders(checkout, saved);
    await dropStage(repository, point);
    throw error;
  }
  await dropStage(repository, point);
};

/** Writes the new contents as they will be in the checkout, with its line endings. */
export const stageNew = async (git: Git, changes: readonly FileChange[], into: string): Promise<void> => {
  const lines = changes.flatMap(({ path, after }) => (after ? [`${after.mode} ${after.id}\t${path}`] : []));
  if (lines.length === 0) return;
  await git.out(["update-index", "-z", "--index-info"], { input: inputOf(lines) });
  await git.out(["checkout-index", "--all", "--quiet", `--prefix=${into}/`]);
};

/** Swaps old files for new ones, and can undo that. */
export class Swap {
  readonly #checkout: Checkout;
  readonly #stage: string;
  /** For messages: what was being done, and what did not happen. */
  readonly #words: string;
  readonly #out: { readonly path: TreePath; readonly at: string }[] = [];
  readonly #in: TreePath[] = [];
  readonly #createdFolders: TreePath[] = [];
  readonly #removedFolders: { readonly path: TreePath; readonly mode: number }[] = [];

  constructor(checkout: Checkout, stage: string, words = "during the merge; nothing was merged") {
    this.#checkout = checkout;
    this.#stage = stage;
    this.#words = words;
  }

  async takeOut(path: TreePath, before: FileState | undefined): Promise<void> {
    const now = await this.#checkout.fileState(path);
    const isSame = now.kind === before?.kind && (now.kind === "absent" || versionIn(now) === versionIn(before));
    if (!isSame) throw new WorktreeError("changed-meanwhile", `${messagePath(path)} changed ${this.#words}`);
    if (now.kind === "absent") return;
    const at = join(this.#stage, "old", String(this.#out.length));
    await this.#checkout.moveOut(path, at);
    this.#out.push({ path, at });
  }

  async putIn({ path, before, after }: FileChange, existing: FileState | undefined): Promise<void> {
    if (!after) return;
    const from = Buffer.concat([Buffer.from(join(this.#stage, "new/")), bytesOf(path)]);
    this.#createdFolders.push(...(await this.#checkout.moveIn(from, path)));
    this.#in.push(path);
    if (!after.mode.startsWith("100") || existing?.kind !== "file") return;
    const isSame = before?.mode === after.mode;
    await this.#checkout.chmod(path, isSame ? existing.mode : modeLike(existing.mode, after.mode === "100755"));
  }

  /** Removes the empty folders where a file will replace a folder. */
  async clear(path: TreePath): Promise<void> {
    if (!(await this.#checkout.stat(path))?.isDirectory()) return;
    for (const { path: gone } of this.#out)
      if (gone.startsWith(`${path}/`)) await this.#removeEmptyParents(gone, path.length);
  }

  /** As in git, a folder is removed with its last file. */
  async dropEmpty(): Promise<void> {
    for (const { path } of this.#out) await this.#removeEmptyParents(path, 0);
  }

  /** Removes empty parent folders, stopping at paths of `minLength` characters. */
  async #removeEmptyParents(path: TreePath, minLength: number): Promise<void> {
    for (let at = path.lastIndexOf("/"); at > minLength; at = path.lastIndexOf("/", at - 1)) {
      const folder = path.slice(0, at);
      const facts = await this.#checkout.stat(folder);
      if (!facts?.isDirectory() || !(await this.#checkout.removeFolder(folder))) break;
      this.#removedFolders.push({ path: folder, mode: Number(facts.mode) & 0o7777 });
    }
  }

  async rollBack(): Promise<void> {
    for (const { path, mode } of this.#removedFolders.toReversed()) await this.#checkout.makeFolder(path, mode);
    for (const path of this.#in.toReversed()) await this.#checkout.remove(path);
    for (const path of this.#createdFolders.toReversed()) await this.#checkout.removeFolder(path);
    for (const { path, at } of this.#out.toReversed()) await this.#checkout.moveIn(at, path);
  }
}

const versionIn = (existing: FileState | undefined): string | undefined =>
  existing && existing.kind !== "absent" ? existing.version : undefined;

/** The file's old permissions, but executable or not as the merge says. */
const modeLike = (before: number, isExecutable: boolean): number =>
  isExecutable ? before | ((before & 0o444) >> 2) : before & ~0o111;
