/** May this call run? Pure judgement: rules, modes, filters, and what a bash command does. */

export {
  broadFolderProblem,
  type ClassifyOptions,
  type CommandPlan,
  classify,
  findStarts,
  type GitInvocation,
  gluedValues,
  innerProgramIndex,
  LISTS_NAMES,
  namedProblem,
  type PlanCommand,
  type PlanRedirect,
  type PlanRule,
  type PlanStep,
  type PlanWord,
  PRINTS_WORDS,
  pathProblem,
  readGitInvocation,
  repetitionProblem,
  specialFileProblem,
  splitCommands,
  type Verdict,
  walkOf,
} from "../bash/index.ts";
export {
  type JsonLine,
  readArguments,
  readJsonLine,
  type Target,
  type ToolName,
  targetOf,
  toolNamed,
} from "./arguments.ts";
export { type Decision, onlyReads, type ToolCall, type Touches } from "./call.ts";
export { type CallLine, readCallLine } from "./call-line.ts";
export { parseClaudeSettings } from "./claude-settings.ts";
export { decide, type GuardContext } from "./decide.ts";
export { type EditableSettings, type Edited, editableSettings } from "./edit-settings.ts";
export {
  allowAll,
  applyFilter,
  both,
  type FilterContext,
  type FilterVerdict,
  type MemoryFolder,
  only,
  readOnly,
  type ToolFilter,
  writesInside,
} from "./filters.ts";
export { memoryOnly } from "./memory-folder.ts";
export { inBoth, movedPath, movedPolicy } from "./moved-policy.ts";
export { type NotesPlace, notesFor } from "./notes.ts";
export type { PathPlace } from "./path-rules.ts";
export { type Move, type ReadRules, readRules, tighteningPattern, writtenPattern } from "./path-rules.ts";
export {
  type Layer,
  type LayerSettings,
  type Mode,
  mergeLayers,
  type Policy,
  planRules,
  type ReadOnlyProgram,
  type SandboxMode,
  TIGHTENING,
} from "./policy.ts";
export type { RuleForm, RuleOptions, RuleReading } from "./rules.ts";
export { parseRule, type Rule, type RuleList } from "./rules.ts";
export {
  describeProblem,
  type PermissionFlags,
  parseSettings,
  placedText,
  type SettingsProblem,
  type SettingsReading,
  type SettingsSource,
  settingsOfFlags,
} from "./settings.ts";
export {
  type ForkRules,
  settingsJsonSchema,
  type TerminalFields,
  type WorktreeRules,
  type WrittenServers,
} from "./settings-file.ts";
export type { SuggestionPlace } from "./suggest.ts";
export { suggestRule } from "./suggest.ts";
