/** @prefork/runtime: what a program needs to run agents and their forks. */

export {
  anthropicEngine,
  type CompactionResult,
  type Engine,
  type EngineOptions,
  type ExchangeResult,
  engineFor,
} from "./agent/index.ts";
export { type ForkHandle, type ForkOutcome, type MergeBackOptions, readReport } from "./children/index.ts";
export type { Section } from "./context/index.ts";
export type { CallFault, EventBody, ExchangeEnd, RuntimeEvent, Todo } from "./events.ts";
export {
  type Extension,
  type ExtensionApi,
  type ExtensionFactory,
  type McpOptions,
  mcp,
  readSkills,
  type ServerEntry,
  type Skill,
  skills,
} from "./extensions/index.ts";
export type { CacheSafeParams, ForkOptions, Observer } from "./fork/index.ts";
export { JournalError } from "./journal/index.ts";
export type {
  Answer,
  Ask,
  CallVerdict,
  Clock,
  ForkLimits,
  HookedCall,
  Hooks,
  Ids,
  Question,
  Report,
  RewindOptions,
  RewindResult,
  SessionControl,
  SpendLimits,
  Spent,
  TaskEnd,
  TaskResult,
  TreeNode,
} from "./ports.ts";
export {
  createSession,
  type EventReader,
  type Exchange,
  type ForkingOptions,
  type Permissions,
  type PromptOptions,
  resumeSession,
  type Session,
  type SessionLimits,
  type SessionOptions,
  type SessionSetup,
} from "./session/index.ts";
export type { Task, TaskState } from "./tasks/index.ts";
export { builtInTools, defineTool, failed, type Tool, type ToolContext, type ToolOutput } from "./tools/index.ts";
