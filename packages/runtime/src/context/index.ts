/** What a model is told that no tool returned: the frozen prompt, the first content, notes, previews, the next epoch. */

export { agentPrompt } from "./agent-prompt.ts";
export {
  type CompactionQuestion,
  compactionPoint,
  type DirectiveOptions,
  readSummary,
  SUMMARY_MAX_TOKENS,
  type SummaryReading,
  shouldCompact,
  summaryDirective,
} from "./compaction.ts";
export {
  type ConventionFile,
  type Conventions,
  type ConventionsLimits,
  type ConventionsNote,
  type ConventionsQuestion,
  readConventions,
} from "./conventions.ts";
export { type Environment, type EnvironmentQuestion, localDate, readEnvironment } from "./environment.ts";
export { type ContentBlock, firstContent, type Prompt, type Section, type Surroundings } from "./first-content.ts";
export type { GitSummary } from "./git-summary.ts";
export { type NextEpoch, nextEpochContent, type OpenTask, type ReadFile } from "./next-epoch.ts";
export { changesBetween, type Note, notesIn, noteText, type Told, toldOf } from "./notes.ts";
export {
  type Budget,
  budgetFor,
  DEFAULT_WINDOW,
  type Decision,
  decideBatch,
  decideReplacement,
  type Entering,
  type ResultBlock,
  tokensOfBlocks,
} from "./replacement.ts";
export { ReplacementState } from "./replacement-state.ts";
export { type RewriteEconomics, type RewriteQuestion, rewriteEconomics } from "./rewrite-economics.ts";
export { type SystemPromptOptions, systemPrompt } from "./system-prompt.ts";
export { escapeTags, oneLine } from "./tags.ts";
export { type Offered, type OfferedTool, type ToolHashes, toolName } from "./tool-servers.ts";
