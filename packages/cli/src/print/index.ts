/** Headless runs: the prompt, the engine, the session, and what is printed. */

export {
  chooseEngine,
  type EngineChoice,
  type EngineFlags,
  PROVIDERS,
  type PreviousEngine,
} from "./engine-choice.ts";
export { type OpenedSession, openSession } from "./open-session.ts";
export {
  createPrinter,
  exitCodeOf,
  type FinishedRun,
  INCOMPLETE,
  OUTPUT_FORMATS,
  type OutputFormat,
  type Printer,
  resultObject,
  STREAM_JSON_NOTICE,
} from "./output.ts";
export { promptOf, readPiped, streamedPrompts } from "./prompt-input.ts";
export {
  findResumeTarget,
  type ResumeFlags,
  type ResumeTarget,
  resumeTargetOf,
  toUsageError,
} from "./resume-target.ts";
export { planSession, type SessionFlags, type SessionPlan } from "./session-flags.ts";
export { callText, canAsk, questionText, TerminalAnswers } from "./terminal-answers.ts";
export { type Warning, type WarningKind, Warnings } from "./warnings.ts";
