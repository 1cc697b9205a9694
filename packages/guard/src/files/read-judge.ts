/** May a plan read this place? Asked of where a name really leads, when it is known.
 *  Invariant: one judge for names, links, folders that are walked and files of commits: names that stand for keys, settings
 *  in the home folder wherever that lies, what is not a regular file, and the rules of the plan.
 *  Elsewhere: names as they are written (../bash), rules (../rules). */

import { existsSync, realpathSync } from "node:fs";
import { homedir } from "node:os";
import { isAbsolute } from "node:path";
import { fromHome, mayContainSecrets } from "../paths/index.ts";
import { broadFolderProblem, type PlanRule, pathProblem, type ReadRules, readRules } from "../rules/index.ts";

export type PathJudge = {
  /** Why a file must not be read. The path is absolute and leads through no link. */
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
  /** As it is written from the home folder, which may lie anywhere. */
  const short = (path: string): string | undefined =>
    homes.map((one) => fromHome(path, one)).find((found) => found !== undefined);
  const rules = readRules(written.map(withResolvedPaths));
  const problem = (path: string): string | undefined => {
    const atHome = short(path);
    return pathProblem(path) ?? (atHome === undefined ? undefined : pathProblem(atHome)) ?? rules.problem(path);
  };
  return {
    rules,
    problem,
    folderProblem: (path) => {
      const atHome = path === here ? undefined : short(path); // a project may be somebody's home
      return (
        problem(path) ?? broadFolderProblem(path) ?? (atHome === undefined ? undefined : broadFolderProblem(atHome))
      );
    },
    isSecret: (path) => mayContainSecrets(path, homes),
  };
};

type Names = PlanRule["paths"][number];

/** What a rule names may be a link, or be reached through one: the rule holds for the place as well. */
const withResolvedPaths = (rule: PlanRule): PlanRule => ({
  ...rule,
  paths: [...rule.paths, ...resolvedPatterns(rule.paths)],
});

/** The same paths where links lead, for those that lead elsewhere. */
export const resolvedPatterns = (paths: PlanRule["paths"]): PlanRule["paths"] =>
  paths.flatMap((names) => resolvePattern(names));

const resolvePattern = (names: Names): readonly Names[] => {
  const fixed: string[] = [];
  for (const name of names) {
    if (name === "**" || "glob" in name) break;
    fixed.push(name.name);
  }
  // As far as there is something: the rest need not be there yet.
  for (let end = fixed.length; end > 0; end -= 1) {
    const path = `/${fixed.slice(0, end).join("/")}`;
    if (!existsSync(path)) continue;
    const place = realPath(path);
    const parts = place.split("/").filter((name) => name !== "");
    return place === path ? [] : [[...parts.map((name) => ({ name })), ...names.slice(end)]];
  }
  return [];
};

/** Where does a name lead, as the kernel goes there?
 *  Invariant: nothing is folded: `..` after a link is the folder above where it leads, not the one above its name, so a
 *  name is looked at in just the file that the program will open.
 *  Elsewhere: names as they are written (../bash), what may not be read (render-pipe.ts). */

/** A name as it is asked for from a folder. Not for `cd`, which goes back by name. */
export const resolveName = (folder: string, name: string): string =>
  isAbsolute(name) ? name : `${folder}${folder.endsWith("/") ? "" : "/"}${name}`;

/** The place itself; the name where nothing is there. */
export const realPath = (path: string): string => {
  try {
    return realpathSync.native(path);
  } catch {
    return path;
  }
};
