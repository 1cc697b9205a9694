export { cleanEnvironment, eraseKeysFromBlock, isProviderKey, withoutProviderKeys } from "./environment.ts";
export { findProgram, findRipgrep, pinnedRipgrep, searchPath, whyMissing } from "./programs.ts";
export { endStragglers, MARK, newMark } from "./stragglers.ts";
