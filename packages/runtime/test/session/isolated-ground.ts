/** A repository with sessions on it whose forks work in worktrees, and what their scripts are made of. */

import { execFileSync } from "node:child_process";
import { mergeLayers, type Policy } from "@prefork/guard";
import { callTools, type SimAnswer, say, type ToolCall } from "@prefork/simulator";
import { treeOf } from "@prefork/testing/scratch";
import {
  type FamilyGround,
  type FamilyScript,
  familyScript,
  openFamily,
  type Seen,
  unasked,
} from "../fork/family-ground.ts";

export const git = (cwd: string, ...words: readonly string[]): string =>
  execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@b.c", ...words], { cwd, encoding: "utf8" });

export const isolated = (prompt: string) => ({ description: prompt, prompt, isolation: "worktree" });
export const report = (directive: string): SimAnswer => say(`Scope: ${directive}\nResult: done`);
export const read = (file_path: string): ToolCall => ({ name: "Read", input: { file_path } });
export const write = (file_path: string, content: string): ToolCall => ({
  name: "Write",
  input: { file_path, content },
});
export const edit = (file_path: string, old_string: string, new_string: string): ToolCall => ({
  name: "Edit",
  input: { file_path, old_string, new_string },
});

const COPY = /git worktree of your own: (\S+)/;

/** What a fork has heard of its own folder. */
export const copyIn = ({ request }: Seen): string =>
  COPY.exec(JSON.stringify(request.body))?.[1]?.split("\\n")[0] ?? "";

export const openRepository = async (script: FamilyScript): Promise<FamilyGround> => {
  const ground = await openFamily(familyScript(script));
  ground.folder.put("work/a.txt", "one\ntwo\nthree\nfour\nfive\nsix\nseven\n");
  ground.folder.put("work/b.txt", "b\n");
  git(ground.work, "init", "-q");
  git(ground.work, "add", "-A");
  git(ground.work, "commit", "-qm", "first");
  ground.folder.put("work/untracked.txt", "not committed\n");
  return ground;
};

/** Without what git keeps for itself. */
export const checkout = (work: string): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(treeOf(work)).filter(([path]) => !path.startsWith(".git/")));

export const withRules = (worktrees: Policy["worktrees"]): { readonly permissions: typeof unasked } => ({
  permissions: { ...unasked, policy: { ...mergeLayers([]), sandbox: "off", worktrees } },
});

/** Calls by directive, one list a turn; then it reports. */
export const working =
  (calls: (seen: Seen) => Readonly<Record<string, readonly (readonly ToolCall[])[]>>): FamilyScript["fork"] =>
  (seen) => {
    const next = calls(seen)[seen.directive]?.[seen.answers];
    return next ? callTools(next) : report(seen.directive);
  };
