/** @prefork/guard/internal: what our other packages share with this one. No promise is made about these names. */

export type { GitFolder, OwnProgram, PlanRule } from "./bash/index.ts";
export type { FolderAccess, Kind } from "./files/index.ts";
export {
  acquireLock,
  Folder,
  firstLock,
  type Lock,
  LockError,
  type LockHolder,
  livenessOf,
  lockHolder,
  readBounded,
  refusalOf,
  removeAbandonedDrafts,
  resolvedPatterns,
  thisProcess,
} from "./files/index.ts";
export { GitViews } from "./git/index.ts";
export type { JsonObject } from "./json.ts";
export {
  globMatcher,
  globProblem,
  isPseudoPath,
  isSecret,
  judgeInside,
  judgePath,
  mayContainSecrets,
  partsBelow,
  protectedWhenMissing,
  type Refused,
  shownName,
} from "./paths/index.ts";
export {
  cleanEnvironment,
  endStragglers,
  eraseKeysFromBlock,
  isProviderKey,
  MARK,
  newMark,
  pinnedRipgrep,
  withMemoryLimit,
  withoutProviderKeys,
} from "./process/index.ts";
export type {
  NotesPlace,
  PathPlace,
  RuleForm,
  RuleOptions,
  RuleReading,
  SuggestionPlace,
  WorktreeRules,
} from "./rules/index.ts";
export {
  type ForkRules,
  inBoth,
  type MemoryFolder,
  type Move,
  movedPath,
  movedPolicy,
  pathProblem,
  planRules,
  readArguments,
  readRules,
  type TerminalFields,
  tighteningPattern,
  type WrittenServers,
  writtenPattern,
} from "./rules/index.ts";
export type {
  Comparison,
  Held,
  Keep,
  RecordedTree,
  RevertedBreach,
  SandboxEntryOptions,
  SandboxMounts,
  WritableRoot,
} from "./run/index.ts";
export {
  type DatedBreach,
  type Entered,
  editText,
  findBlockingFile,
  findOccurrences,
  mayRunOutsideSandbox,
  nextTurn,
  type TextEdit,
  Turns,
} from "./run/index.ts";
export { isEntryOf } from "./trust/index.ts";
