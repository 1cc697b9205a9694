/** Bash commands: may they run unasked, and as what? */

export { belowProblem, fedProgram, findStarts } from "./below.ts";
export { type ClassifyOptions, classify, type Verdict } from "./classify.ts";
export { LISTS_NAMES, PRINTS_WORDS } from "./feeding.ts";
export { opensNoFile } from "./no-files.ts";
export { partsOf } from "./parts.ts";
export type { Plan, PlanCommand, PlanRedirect, PlanRule, PlanStep, PlanWord, WrittenPattern } from "./plan.ts";
export { type GitAsked, readGitAsked, repeatsProblem } from "./programs/index.ts";
export { folded, gluedValues, noFileProblem, pathProblem } from "./secrets.ts";
export { walkOf } from "./walking.ts";
