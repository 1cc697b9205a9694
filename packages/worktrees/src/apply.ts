/** Puts a merged tree into the checkout, file by file.
 *  Invariant: all new contents are on the disk before the first file changes, and what is replaced is moved aside, not
 *  deleted: so a full disk, a file in the way or a change meanwhile takes everything back by renaming alone. Only files
 *  that the merge changes are touched, and each keeps its permissions. The index is not touched.
 *  Elsewhere: what to change (merge-plan.ts), the way back after a crash (save.ts). */

import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { Checkout, type Standing } from "./checkout.ts";
import { WorktreeError } from "./errors.ts";
import { bytesOf, type Git, inputOf, type TreePath, toldPath } from "./git.ts";
import type { Change } from "./merge-plan.ts";
import type { Repository } from "./repository.ts";
import { restoreFolders, type Saved } from "./save.ts";
import { dropStage, stageOf } from "./stage.ts";

export type Applying = {
  readonly point: number;
  readonly changes: readonly Change[];
  readonly saved: Saved;
  /** A folder of ours. */
  readonly scratch: string;
  readonly step: (name: string) => void;
  /** Notes that all is in place. Where that fails, nothing is. */
  readonly noted: () => Promise<void>;
};

export const applyChanges = async (repository: Repository, applying: Applying): Promise<void> => {
  const { point, changes, saved, step, noted } = applying;
  const stage = await stageOf(repository, point);
  const before = new Map(saved.files.map((file) => [file.path, file.before]));
  await using checkout = await Checkout.open(repository.top);
  const swap = new Swap(checkout, stage);
  try {
    for (const name of ["new", "old"]) await mkdir(join(stage, name), { recursive: true, mode: 0o700 });
    await stageNew(repository.git.indexed(join(applying.scratch, "stage")), changes, join(stage, "new"));
    step("swap begins");
    for (const { path } of changes) await swap.takeOut(path, before.get(path));
    step("swap half done");
    for (const { path, after } of changes) if (after) await swap.clear(path);
    for (const change of changes) await swap.putIn(change, before.get(change.path));
    await swap.dropEmpty();
    step("swap ends");
    await noted();
  } catch (error) {
    await swap.back();
    await restoreFolders(checkout, saved);
    await dropStage(repository, point);
    throw error;
  }
  await dropStage(repository, point);
};

/** Contents as they are to stand in the checkout, with line ends as it has them. */
const stageNew = async (git: Git, changes: readonly Change[], into: string): Promise<void> => {
  const lines = changes.flatMap(({ path, after }) => (after ? [`${after.mode} ${after.id}\t${path}`] : []));
  if (lines.length === 0) return;
  await git.out(["update-index", "-z", "--index-info"], { input: inputOf(lines) });
  await git.out(["checkout-index", "--all", "--quiet", `--prefix=${into}/`]);
};

/** Files going out and coming in, and the same backwards. */
class Swap {
  readonly #checkout: Checkout;
  readonly #stage: string;
  readonly #out: { readonly path: TreePath; readonly at: string }[] = [];
  readonly #in: TreePath[] = [];
  readonly #made: TreePath[] = [];
  readonly #dropped: { readonly path: TreePath; readonly mode: number }[] = [];

  constructor(checkout: Checkout, stage: string) {
    this.#checkout = checkout;
    this.#stage = stage;
  }

  async takeOut(path: TreePath, before: Standing | undefined): Promise<void> {
    const now = await this.#checkout.look(path);
    const isSame = now.kind === before?.kind && (now.kind === "absent" || versionIn(now) === versionIn(before));
    if (!isSame)
      throw new WorktreeError("changed-meanwhile", `${toldPath(path)} was changed meanwhile; nothing was merged`);
    if (now.kind === "absent") return;
    const at = join(this.#stage, "old", String(this.#out.length));
    await this.#checkout.moveOut(path, at);
    this.#out.push({ path, at });
  }

  async putIn({ path, before, after }: Change, standing: Standing | undefined): Promise<void> {
    if (!after) return;
    const from = Buffer.concat([Buffer.from(join(this.#stage, "new/")), bytesOf(path)]);
    this.#made.push(...(await this.#checkout.moveIn(from, path)));
    this.#in.push(path);
    if (!after.mode.startsWith("100") || standing?.kind !== "file") return;
    const isSame = before?.mode === after.mode;
    await this.#checkout.chmod(path, isSame ? standing.mode : modeLike(standing.mode, after.mode === "100755"));
  }

  /** Where a file is to come in place of a folder: what is empty there goes. */
  async clear(path: TreePath): Promise<void> {
    if (!(await this.#checkout.facts(path))?.isDirectory()) return;
    for (const { path: gone } of this.#out) if (gone.startsWith(`${path}/`)) await this.#dropAbove(gone, path.length);
  }

  /** As git does, a folder goes with its last file. */
  async dropEmpty(): Promise<void> {
    for (const { path } of this.#out) await this.#dropAbove(path, 0);
  }

  /** Empty folders above a file, down to those whose names are so long. */
  async #dropAbove(path: TreePath, least: number): Promise<void> {
    for (let at = path.lastIndexOf("/"); at > least; at = path.lastIndexOf("/", at - 1)) {
      const folder = path.slice(0, at);
      const facts = await this.#checkout.facts(folder);
      if (!facts?.isDirectory() || !(await this.#checkout.removeFolder(folder))) break;
      this.#dropped.push({ path: folder, mode: Number(facts.mode) & 0o7777 });
    }
  }

  async back(): Promise<void> {
    for (const { path, mode } of this.#dropped.toReversed()) await this.#checkout.makeFolder(path, mode);
    for (const path of this.#in.toReversed()) await this.#checkout.remove(path);
    for (const path of this.#made.toReversed()) await this.#checkout.removeFolder(path);
    for (const { path, at } of this.#out.toReversed()) await this.#checkout.moveIn(at, path);
  }
}

const versionIn = (standing: Standing | undefined): string | undefined =>
  standing && standing.kind !== "absent" ? standing.version : undefined;

/** The permissions that a file had, executable or not as the merge says. */
const modeLike = (before: number, isExecutable: boolean): number =>
  isExecutable ? before | ((before & 0o444) >> 2) : before & ~0o111;
