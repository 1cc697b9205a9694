/** Headless runs: what is asked, who answers, and what is printed. */

export {
  type Answered,
  chooseEngine,
  type EngineChoice,
  type EngineFlags,
  PROVIDERS,
} from "./engine-choice.ts";
export { promptOf, readPiped } from "./given-prompt.ts";
export { type OpenedSession, openSession } from "./open-session.ts";
export {
  createPrinter,
  exitCodeOf,
  type Finished,
  INCOMPLETE,
  OUTPUT_FORMATS,
  type OutputFormat,
  type Printer,
  resultObject,
  STREAM_JSON_CHANGES,
} from "./output.ts";
export { planSession, type SessionFlags, type SessionPlan } from "./session-flags.ts";
export { streamedPrompts } from "./stream-input.ts";
export { canAsk, TerminalAnswers } from "./terminal-answers.ts";
export { asUsage, type ResumeFlags, type WantedSession, wantedOf, wantedSession } from "./wanted-session.ts";
export type { Warning, WarningKind } from "./warnings.ts";
