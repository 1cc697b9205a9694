/** Rules about reading files, for whoever runs a plan: they hold for every file that a name turns out to be.
 *  Invariant: plain data in the plan, so that it holds wherever the plan is run; compared as forgivingly as when a command
 *  is judged, and with everything below what a rule names.
 *  Elsewhere: judging commands as they are written (decide.ts), asking about each file (../run). */

import type { PlanRule } from "../bash/index.ts";
import {
  coversFolded,
  foldedNames,
  isPlaced,
  type PathPattern,
  patternsBelow,
  reachesBelow,
  tighteningPattern,
  writtenPattern,
} from "./path-rules.ts";
import type { Policy } from "./policy.ts";

/** What denies reading, or says to ask: neither is for a plan that runs unasked. */
export const planRules = ({ deny, ask }: Pick<Policy, "deny" | "ask">): readonly PlanRule[] =>
  [...deny, ...ask].flatMap(({ form, text, origin }) =>
    form.kind === "path" && form.tool === "Read"
      ? [{ rule: `${text} (${origin})`, paths: writtenPattern(form.pattern) }]
      : [],
  );

export type ReadRules = {
  readonly isEmpty: boolean;
  /** Why a file must not be read. The path is absolute. */
  readonly problem: (path: string) => string | undefined;
  /** For a folder: which paths in it fall under a rule. Undefined where nothing below it can. */
  readonly inside: (folder: string) => ((path: string) => boolean) | undefined;
  /** The same for rules that name a place: does a path fall under one, or lead towards it? */
  readonly towards: (folder: string) => ((path: string) => "under" | "towards" | undefined) | undefined;
  /** Could what a rule names stand anywhere below the folder? */
  readonly isAnywhere: (folder: string) => boolean;
  /** The same as patterns below a folder, in the way of .gitignore. */
  readonly below: (folder: string) => readonly string[];
};

const namesOf = (path: string): readonly string[] => path.split("/").filter((name) => name !== "" && name !== ".");

export const readRules = (rules: readonly PlanRule[]): ReadRules => {
  const compiled = rules.map(({ rule, paths }) => ({ rule, pattern: tighteningPattern(paths) }));
  const isCovered = (patterns: readonly PathPattern[], path: string): boolean => {
    const folded = foldedNames(namesOf(path));
    return patterns.some((pattern) => coversFolded(pattern, folded));
  };
  const reaching = (folder: string): readonly PathPattern[] => {
    const folded = foldedNames(namesOf(folder));
    return compiled.map(({ pattern }) => pattern).filter((pattern) => reachesBelow(pattern, folded));
  };
  return {
    isEmpty: rules.length === 0,
    problem: (path) => {
      const found = compiled.find(({ pattern }) => isCovered([pattern], path));
      return found && `${path} falls under ${found.rule}; ask for it`;
    },
    inside: (folder) => {
      const patterns = reaching(folder);
      return patterns.length === 0 ? undefined : (path) => isCovered(patterns, path);
    },
    towards: (folder) => {
      const patterns = reaching(folder).filter(isPlaced);
      if (patterns.length === 0) return undefined;
      return (path) => {
        const folded = foldedNames(namesOf(path));
        if (patterns.some((pattern) => coversFolded(pattern, folded))) return "under";
        return patterns.some((pattern) => reachesBelow(pattern, folded)) ? "towards" : undefined;
      };
    },
    isAnywhere: (folder) => reaching(folder).some((pattern) => !isPlaced(pattern)),
    below: (folder) => [...new Set(compiled.flatMap(({ pattern }) => patternsBelow(pattern, namesOf(folder))))],
  };
};
