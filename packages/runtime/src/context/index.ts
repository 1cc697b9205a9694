/** What the model is told that no tool returned: the system prompt, the first content, notes, previews, the next
 *  epoch. */

export {
  compactionThreshold,
  type NextEpoch,
  nextEpochContent,
  type OpenTask,
  type ReadFile,
  readSummary,
  rewriteEconomics,
  SUMMARY_MAX_TOKENS,
  shouldCompact,
  summaryDirective,
} from "./compaction.ts";
export {
  type ConventionFile,
  type Conventions,
  type ConventionsNote,
  type ConventionsOptions,
  readConventions,
} from "./conventions.ts";
export type { GitSummary } from "./environment.ts";
export { type Environment, localDate, readEnvironment } from "./environment.ts";
export {
  type Budget,
  budgetFor,
  DEFAULT_WINDOW,
  decideBatch,
  decideReplacement,
  type IncomingResult,
  ReplacementState,
  tokensOfBlocks,
} from "./replacement.ts";
export {
  changesBetween,
  firstContent,
  type KnownSurroundings,
  type Note,
  noteText,
  type Prompt,
  type Section,
  type Surroundings,
  toKnownSurroundings,
} from "./surroundings.ts";
export { agentPrompt, type SystemPromptOptions, systemPrompt } from "./system-prompt.ts";
export { escapeTags, oneLine } from "./text.ts";
export { type OfferedTool, type OfferedTools, type ToolHashes, toolName } from "./tool-servers.ts";
