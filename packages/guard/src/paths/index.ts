export { globMatcher, globProblem } from "./glob.ts";
export { isPseudoPath, type Judged, judgeInside, judgePath, partsBelow, type Refused } from "./judge.ts";
export { anyCase, fitsPattern, isMatch, readPart, type Sign } from "./name-pattern.ts";
export {
  protectedInRepository,
  protectedName,
  protectedTopNames,
  protectedWhenMissing,
  protectedWhenMissingAtHome,
  repositoryMarks,
} from "./protected.ts";
export { secretPatterns, secretSamples } from "./secret-globs.ts";
export { fromHome, isSecret, leadsToSecrets, mayHoldKeys } from "./secret-names.ts";
export { couldBeSecret } from "./secret-patterns.ts";
export { shownName } from "./shown-name.ts";
export { SYSTEM_FOLDERS } from "./system-folders.ts";
