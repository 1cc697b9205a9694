/** Bash commands: may they run without approval, and as which plan? */

export { type ClassifyOptions, classify, type OwnProgram, opensNoFile, type Verdict, walkOf } from "./classify.ts";
export { broadFolderProblem, findStarts, innerProgramIndex, LISTS_NAMES, PRINTS_WORDS } from "./indirect-reads.ts";
export { splitCommands } from "./parts.ts";
export type {
  CommandPlan,
  GitFolder,
  PathPatternData,
  PlanCommand,
  PlanRedirect,
  PlanRule,
  PlanStep,
  PlanWord,
} from "./plan.ts";
export { type GitInvocation, readGitInvocation, repetitionProblem } from "./programs/index.ts";
export { gluedValues, namedProblem, normalizePath, pathProblem, specialFileProblem } from "./secrets.ts";
