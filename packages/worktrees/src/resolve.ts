/** Resolves the conflicts of a merged tree as the caller chose.
 *  Invariant: changes of both sides that do not conflict are kept; only conflicting parts are taken from one side, or put
 *  between markers.
 *  Elsewhere: finding conflicts (merge-plan.ts). */

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fieldsOf, inputOf, type TreePath } from "./git.ts";
import type { Conflict, MergePlan, TreeEntry } from "./merge-plan.ts";
import { branchOf } from "./refs.ts";
import type { Repository } from "./repository.ts";

/** Both sides between markers, or one side only. */
export type ConflictChoice = "markers" | "mine" | "theirs";

export type ResolveOptions = {
  readonly choice: ConflictChoice;
  readonly task: string;
  /** A scratch folder. */
  readonly scratch: string;
};

export const resolveConflicts = async (
  repository: Repository,
  plan: MergePlan,
  { choice, task, scratch }: ResolveOptions,
): Promise<string> => {
  const git = repository.git.indexed(join(scratch, "resolved"));
  await git.out(["read-tree", plan.tree]);
  const lines: string[] = [];
  for (const conflict of plan.conflicts) {
    const entry = await resolveOne(repository, { plan, conflict, choice, task, scratch });
    lines.push(`${entry ? `${entry.mode} ${entry.id}` : `0 ${repository.noObject}`}\t${conflict.path}`);
  }
  await git.out(["update-index", "-z", "--index-info"], { input: inputOf(lines) });
  return git.line(["write-tree"]);
};

type OneConflict = ResolveOptions & { readonly plan: MergePlan; readonly conflict: Conflict };

const resolveOne = async (repository: Repository, one: OneConflict): Promise<TreeEntry | undefined> => {
  const { plan, conflict, choice } = one;
  const whole = async (tree: string): Promise<TreeEntry | undefined> => entryIn(repository, tree, conflict.path);
  if (isText(conflict)) {
    const id = await mergeFile(repository, one);
    const mode = choice === "theirs" ? conflict.theirs.mode : conflict.mine.mode;
    if (id !== undefined) return { mode, id };
  }
  if (choice === "mine") return whole(plan.now.tree);
  return choice === "theirs" ? whole(plan.theirs) : whole(plan.tree);
};

type TextConflict = Conflict & { readonly mine: TreeEntry; readonly theirs: TreeEntry };

const isText = (conflict: Conflict): conflict is TextConflict =>
  [conflict.mine, conflict.theirs].every((side) => side?.mode.startsWith("100")) && conflict.base?.mode !== "120000";

/** Undefined for binary contents. */
const mergeFile = async (
  { git }: Repository,
  { conflict, choice, task, scratch }: OneConflict,
): Promise<string | undefined> => {
  const sides = [conflict.mine, conflict.base, conflict.theirs];
  const files = ["mine", "base", "theirs"].map((name) => join(scratch, name));
  for (const [at, file] of files.entries()) {
    const { id } = sides[at] ?? {};
    await writeFile(file, id === undefined ? "" : await git.out(["cat-file", "blob", id]), { mode: 0o600 });
  }
  const labels = ["your checkout", "before both", branchOf(task)].flatMap((label) => ["-L", label]);
  const side = choice === "markers" ? [] : [choice === "mine" ? "--ours" : "--theirs"];
  const { code, out } = await git.ask(["merge-file", "-p", "-q", ...side, ...labels, ...files], {
    okCodes: Array.from({ length: 256 }, (_, at) => at),
  });
  if (code > 127) return undefined; // 255: binary
  return git.line(["hash-object", "-w", "--no-filters", "--stdin"], { input: out });
};

const entryIn = async ({ git }: Repository, tree: string, path: TreePath): Promise<TreeEntry | undefined> =>
  (await entriesOf(git, tree)).get(path);

/** All files of a tree. */
export const entriesOf = async (git: Repository["git"], tree: string): Promise<ReadonlyMap<TreePath, TreeEntry>> => {
  const listed = fieldsOf(await git.out(["ls-tree", "-r", "-z", "--full-tree", tree]));
  return new Map(
    listed.map((line) => {
      const [, mode = "", id = "", path = ""] = /^(\d+) \w+ ([0-9a-f]+)\t(.*)$/s.exec(line) ?? [];
      return [path, { mode, id }];
    }),
  );
};
