/** Where are the copies of what a rule names, in the worktrees of its repository?
 *  Invariant: only for rules that restrict: a worktree of a fork contains the files of the checkout under another path, and
 *  what is denied or asked about in the checkout is so in every worktree, for every agent and session. A rule about the
 *  whole checkout says nothing about its worktrees.
 *  Elsewhere: the rules of an agent that works in a worktree, and where worktrees are stored (@prefork/guard,
 *  @prefork/worktrees). */

import { createHash } from "node:crypto";
import { lstatSync, readFileSync, realpathSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import type { writtenPattern } from "@prefork/guard/internal";

type Patterns = ReturnType<typeof writtenPattern>;
type Names = Patterns[number];

/** `outputs`: the folder of the session's outputs, `<state>/sessions/<id>/outputs`. */
export const worktreePlaces = (patterns: Patterns, outputs: string): Patterns => {
  const state = dirname(dirname(dirname(outputs)));
  return patterns.flatMap((names) => placesOf(names, state));
};

const placesOf = (names: Names, state: string): readonly Names[] => {
  const places: Names[] = [];
  let folder = "";
  for (const [at, name] of names.entries()) {
    if (name === "**" || "glob" in name) break;
    folder += `/${name.name}`;
    const rest = names.slice(at + 1);
    const common = rest.some((one) => one !== "**") ? repositoryAt(folder) : undefined;
    if (common === undefined) continue;
    const key = createHash("sha256").update(common).digest("hex").slice(0, 16);
    const trees = `${state}/worktrees/${key}/trees`.split("/").filter((part) => part !== "");
    places.push([...trees.map((part) => ({ name: part })), { glob: "*" }, ...rest]);
  }
  return places;
};

const LONGEST_POINTER = 4_096;

/** The folder that all worktrees of a repository share; undefined if none has its files here. */
const repositoryAt = (folder: string): string | undefined => {
  const dot = join(folder, ".git");
  try {
    const facts = lstatSync(dot);
    if (!facts.isFile()) return facts.isDirectory() ? realpathSync(dot) : undefined;
    const text = facts.size > LONGEST_POINTER ? "" : readFileSync(dot, "utf8");
    const [, pointer = ""] = /^gitdir: (.+?)(?:\/worktrees\/[^/\n]+)?\n?$/.exec(text) ?? [];
    return pointer === "" ? undefined : realpathSync(resolve(folder, pointer));
  } catch {
    return undefined;
  }
};
