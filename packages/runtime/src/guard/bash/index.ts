/** Bash commands: may they run unasked, and as what? */

export { belowProblem } from "./below.ts";
export { type ClassifyOptions, classify, type Verdict } from "./classify.ts";
export { fedProgram, LISTS_NAMES } from "./feeding.ts";
export { partsOf } from "./parts.ts";
export type { Plan, PlanCommand, PlanRedirect, PlanStep, PlanWord } from "./plan.ts";
export { isSecret, noFileProblem, pathProblem } from "./secrets.ts";
