/** @prefork/runtime/internal: what our own command line shares with this package. No promise is made about these names. */

export type { LineageState, TurnLimits } from "./agent/index.ts";
export { ANTHROPIC_URL, toolEnvironment } from "./agent/index.ts";
export type { HandleParts, ReadReport } from "./children/index.ts";
export type {
  ConventionFile,
  Conventions,
  ConventionsNote,
  OfferedTool,
  OfferedTools,
  Prompt,
  ToolHashes,
} from "./context/index.ts";
export type { EpochReason, JournalDamage, Level, NoteKind } from "./events.ts";
export { levelOf } from "./events.ts";
export type { FoundSkills, SkillSources } from "./extensions/index.ts";
export {
  type ConfiguredServers,
  type Contribution,
  describeTarget,
  type ExtensionContext,
  type ExtensionSources,
  editServers,
  type HookTimes,
  type HttpServer,
  type LiveExtension,
  MCP_FILE,
  readEntry,
  readExtensions,
  readServers,
  type ServerSources,
  Servers,
  type ServersOptions,
  type ServerTimes,
  type SkippedServer,
  type StdioServer,
  type WrittenServer,
} from "./extensions/index.ts";
export { cacheKeyHash } from "./fork/index.ts";
export type {
  JournalFault,
  JournalReading,
  ListOptions,
  ParentPointer,
  ProblemKind,
  Replayed,
  StartedBy,
  StoredEntry,
} from "./journal/index.ts";
export { lineUpTo, REHEARSAL_SCHEME } from "./journal/index.ts";
export type { SentRequest } from "./observe/index.ts";
export type {
  Budget,
  ChildEnding,
  ChildEntry,
  ChildHost,
  ChildParent,
  ChildPlan,
  ChildResult,
  ContinuationPrice,
  DelegateMode,
  Delegation,
  FileRestore,
  ForkPlan,
  Happened,
  Hooked,
  HookNote,
  Isolation,
  Mail,
  OpenChild,
  PromptEnd,
  Reservation,
  RestoredFiles,
  Shortage,
  Siblings,
  Subscription,
  TailChoice,
} from "./ports.ts";
export type { ClosedSession, EndingReader, SessionParts, Switches } from "./session/index.ts";
export { addressIn, readSwitches, requestStop, rewindClosed } from "./session/index.ts";
export type { TaskKind } from "./tasks/index.ts";
export type {
  KeepStream,
  ReadState,
  Shells,
  TodoSlot,
  ToolFiles,
} from "./tools/index.ts";
export { createRegistry, hasForkAncestor } from "./tools/index.ts";
