/** What a model is told that no tool returned: the frozen prompt, the first content, notes, previews, the next epoch. */

export {
  compactionPoint,
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
export { type Conventions, type ConventionsQuestion, readConventions } from "./conventions.ts";
export type { GitSummary } from "./environment.ts";
export { type Environment, localDate, readEnvironment } from "./environment.ts";
export {
  type Budget,
  budgetFor,
  DEFAULT_WINDOW,
  decideBatch,
  decideReplacement,
  type Entering,
  ReplacementState,
  tokensOfBlocks,
} from "./replacement.ts";
export {
  changesBetween,
  firstContent,
  type Note,
  noteText,
  type Prompt,
  type Section,
  type Surroundings,
  type Told,
  toldOf,
} from "./surroundings.ts";
export { agentPrompt, type SystemPromptOptions, systemPrompt } from "./system-prompt.ts";
export { escapeTags, oneLine } from "./text.ts";
export { type Offered, type OfferedTool, type ToolHashes, toolName } from "./tool-servers.ts";
