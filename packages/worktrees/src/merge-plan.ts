/** What would a merge of a task's work into the present checkout produce?
 *  Invariant: git itself merges three trees: the base of the task, the checkout now, and the task's tip; the checkout is
 *  only read.
 *  Elsewhere: applying it (apply.ts), resolving conflicts (resolve.ts). */

import type { WorktreeContext } from "./create.ts";
import { WorktreeError } from "./errors.ts";
import { displayPath, fieldsOf, type TreePath } from "./git.ts";
import type { Worktree } from "./records.ts";
import type { Repository } from "./repository.ts";
import { commitTree, readTree, type TreeReading } from "./snapshot.ts";
import type { KeptWork } from "./work.ts";

/** A file in a tree. */
export type TreeEntry = { readonly mode: string; readonly id: string };

export type FileChange = {
  readonly path: TreePath;
  readonly before: TreeEntry | undefined;
  readonly after: TreeEntry | undefined;
};

export type Conflict = {
  readonly path: TreePath;
  /** Git's name for it: content, modify/delete, … */
  readonly kind: string;
  readonly base?: TreeEntry;
  readonly mine?: TreeEntry;
  readonly theirs?: TreeEntry;
};

/** A conflict for people. */
export type ConflictedFile = { readonly path: string; readonly kind: string };

export type MergePlan = {
  readonly now: TreeReading;
  readonly theirs: string;
  /** The merged tree; conflicts are in it as git leaves them. */
  readonly tree: string;
  readonly conflicts: readonly Conflict[];
};

type MergeInput = Pick<Worktree, "base" | "task"> &
  Pick<KeptWork, "tip" | "tree" | "baseTree" | "isOnBase"> & {
    /** The checkout, if it has already been read. */
    readonly now?: TreeReading | undefined;
  };

const NO_LIMIT = { bytes: Number.POSITIVE_INFINITY } as const;

/** `scratch`: a scratch folder. */
export const planMerge = async (
  { repository }: Pick<WorktreeContext, "repository">,
  { base, task, tip, tree: theirs, baseTree, isOnBase, now: known }: MergeInput,
  scratch: string,
): Promise<MergePlan> => {
  const now = known ?? (await readTree(repository, `${scratch}/now`, NO_LIMIT));
  if (now.tree === baseTree) return { now, theirs, tree: theirs, conflicts: [] };
  // Both sides get the base as their only parent, so that git finds it whatever commits they have since.
  const mine = await commitTree(repository, now.tree, { parent: base, message: "The checkout now\n" });
  const message = `The work of ${task}\n`;
  const child = isOnBase ? tip : await commitTree(repository, theirs, { parent: base, message });
  const words = ["merge-tree", "--write-tree", "-z", "--messages", mine, child];
  const { code, out, errorText: complaint } = await repository.git.ask(words, { okCodes: [0, 1, 129] });
  if (code === 129) throw new WorktreeError("git", `merging needs git 2.38 or later: ${complaint.split("\n")[0]}`);
  const { tree, conflicts } = readMerge(out);
  return { now, theirs, tree, conflicts };
};

/** The output has the tree, then conflicted entries up to an empty field, then messages: a count, that many paths, a kind
 *  and a text. */
const readMerge = (out: Buffer): Pick<MergePlan, "tree" | "conflicts"> => {
  const fields = fieldsOf(out);
  const [tree = ""] = fields;
  const end = fields.indexOf("", 1);
  const entries = fields.slice(1, end < 0 ? fields.length : end);
  const conflicts = new Map<TreePath, Conflict>();
  for (const line of entries) {
    const [, mode = "", id = "", stage = "", path = ""] = /^(\d+) ([0-9a-f]+) ([123])\t(.*)$/s.exec(line) ?? [];
    const side = stage === "1" ? "base" : stage === "2" ? "mine" : "theirs";
    conflicts.set(path, { kind: "content", ...conflicts.get(path), path, [side]: { mode, id } });
  }
  if (end >= 0)
    for (const { paths, kind } of messagesIn(fields.slice(end + 1)))
      for (const path of paths) {
        const conflict = conflicts.get(path);
        if (conflict && kind !== "") conflicts.set(path, { ...conflict, kind });
      }
  return { tree, conflicts: [...conflicts.values()] };
};

function* messagesIn(fields: readonly string[]): Generator<{ paths: readonly TreePath[]; kind: string }> {
  for (let at = 0; at < fields.length; ) {
    const count = Number(fields[at]);
    const kind = /^CONFLICT \((.*)\)/.exec(fields[at + 1 + count] ?? "")?.[1] ?? "";
    yield { paths: fields.slice(at + 1, at + 1 + count), kind: kind === "contents" ? "content" : kind };
    at += count + 3;
  }
}

/** The differences between two trees, file by file. Submodules are ignored. */
export const changesBetween = async (
  { git }: Pick<Repository, "git">,
  before: string,
  after: string,
): Promise<readonly FileChange[]> => {
  const words = ["diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-ext-diff", "--no-abbrev", before, after];
  const fields = fieldsOf(await git.out(words));
  const changes: FileChange[] = [];
  for (let at = 0; at + 1 < fields.length; at += 2) {
    const [from = "", to = "", fromId = "", toId = ""] = (fields[at] ?? "").slice(1).split(" ");
    const change = { path: fields[at + 1] ?? "", before: entry(from, fromId), after: entry(to, toId) };
    requireInside(change.path);
    if (change.before?.mode !== GITLINK && change.after?.mode !== GITLINK) changes.push(change);
  }
  return changes;
};

/** Git refuses such names when a file is added, but a tree can be written without that check. */
const requireInside = (path: TreePath): void => {
  if (path.split("/").every((name) => name !== "" && !/^\.{1,2}$|^\.git$/i.test(name))) return;
  throw new WorktreeError(
    "not-ready",
    `its work contains ${JSON.stringify(displayPath(path))}, which cannot be a file of a checkout; nothing was merged`,
  );
};

export const GITLINK = "160000";
const entry = (mode: string, id: string): TreeEntry | undefined => (mode === "000000" ? undefined : { mode, id });
