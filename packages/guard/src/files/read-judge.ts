/** May a plan read this file? Asked about the path that a name really leads to, once it is known.
 *  Invariant: one judge for names, links, walked folders and files of commits. It refuses names that stand for secrets, settings
 *  in the home folder wherever that is, special files, and what the plan's rules deny.
 *  Elsewhere: names as they are written (../bash), rules (../rules). */

import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { isAbsolute } from "node:path";
import { fromHome, isPrivatePlace, mayContainSecrets } from "../paths/index.ts";
import {
  broadFolderProblem,
  namedProblem,
  type PlanRule,
  pathProblem,
  type ReadRules,
  readRules,
} from "../rules/index.ts";
import { realPath, UncheckedPathError } from "./look.ts";

export type PathJudge = {
  /** Why a file must not be read. The path is absolute and contains no link. */
  readonly problem: (path: string) => string | undefined;
  /** Why a folder must not be read as a whole. */
  readonly folderProblem: (path: string) => string | undefined;
  readonly isSecret: (path: string) => boolean;
  readonly rules: ReadRules;
};

export type PathJudgeOptions = {
  readonly cwd: string;
  readonly home?: string; // default: the user's
  readonly rules?: readonly PlanRule[];
};

export const pathJudge = ({ cwd, home = homedir(), rules: written = [] }: PathJudgeOptions): PathJudge => {
  const homes = [...new Set([home, homedir()].map(realPath))].filter((path) => path.length > 1);
  const here = realPath(cwd);
  /** The path relative to the home folder, which may be anywhere. */
  const short = (path: string): string | undefined =>
    homes.map((one) => fromHome(path, one)).find((found) => found !== undefined);
  /** A workspace below a hidden folder of the home folder; but the home folder as a workspace makes nothing harmless. */
  const isPrivate = (path: string): boolean => isPrivatePlace(path) || isPrivatePlace(short(path) ?? "");
  const isHidden = isPrivate(`${here}/x`);
  const isOfWorkspace = (path: string): boolean => isHidden && (path === here || path.startsWith(`${here}/`));
  const rules = readRules(written.map(withResolvedPaths));
  const problem = (path: string): string | undefined => {
    const atHome = short(path);
    const judge = isOfWorkspace(path) ? namedProblem : pathProblem;
    return judge(path) ?? (atHome === undefined ? undefined : judge(atHome)) ?? rules.problem(path);
  };
  return {
    rules,
    problem,
    folderProblem: (path) => {
      const atHome = path === here ? undefined : short(path); // a project may be a home folder
      return (
        problem(path) ?? broadFolderProblem(path) ?? (atHome === undefined ? undefined : broadFolderProblem(atHome))
      );
    },
    isSecret: (path) => mayContainSecrets(path, homes) || (isPrivate(path) && !isOfWorkspace(path)),
  };
};

type Names = PlanRule["paths"][number];

/** A path in a rule may be a link or lead through one; the rule applies to the target as well. */
const withResolvedPaths = (rule: PlanRule): PlanRule => ({
  ...rule,
  paths: [...rule.paths, ...resolvedPatterns(rule.paths)],
});

/** The targets of the paths that lead through links. */
export const resolvedPatterns = (paths: PlanRule["paths"]): PlanRule["paths"] =>
  paths.flatMap((names) => resolvePattern(names));

const resolvePattern = (names: Names): readonly Names[] => {
  const fixed: string[] = [];
  for (const name of names) {
    if (name === "**" || "glob" in name) break;
    fixed.push(name.name);
  }
  // Resolves the part that exists; the rest need not exist yet.
  for (let end = fixed.length; end > 0; end -= 1) {
    const path = `/${fixed.slice(0, end).join("/")}`;
    if (!existsSync(path)) continue;
    const place = checkedPath(path);
    if (place === undefined) return []; // nothing reads through such a link
    const parts = place.split("/").filter((name) => name !== "");
    return place === path ? [] : [[...parts.map((name) => ({ name })), ...names.slice(end)]];
  }
  return [];
};

const checkedPath = (path: string): string | undefined => {
  try {
    return realPath(path);
  } catch (error) {
    if (error instanceof UncheckedPathError) return undefined;
    throw error;
  }
};

// --- where a name leads ------------------------------------------------------------------------------------------------
// Nothing is normalized: `..` after a link is the parent of its target, not of its name. So the judged file is exactly the
// one that the program will open.

/** A name relative to a folder, unnormalized. Not for `cd`, which resolves `..` by name. */
export const resolveName = (folder: string, name: string): string =>
  isAbsolute(name) ? name : `${folder}${folder.endsWith("/") ? "" : "/"}${name}`;
