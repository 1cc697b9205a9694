export {
  cleanEnvironment,
  endStragglers,
  eraseKeysFromBlock,
  isProviderKey,
  MARK,
  newMark,
  withoutProviderKeys,
} from "./environment.ts";
export { findProgram, findRipgrep, pinnedRipgrep, searchPath, whyMissing } from "./programs.ts";
