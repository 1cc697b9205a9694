export {
  cleanEnvironment,
  endStragglers,
  eraseKeysFromBlock,
  isProviderKey,
  MARK,
  newMark,
  withoutProviderKeys,
} from "./environment.ts";
export { QUESTION_KIBIBYTES, withMemoryLimit } from "./limits.ts";
export { findProgram, findRipgrep, pinnedRipgrep, searchPath, whyMissing } from "./programs.ts";
