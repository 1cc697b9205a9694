export { globMatcher, globProblem } from "./glob.ts";
export { isPseudoPath, type JudgedPath, judgeInside, judgePath, partsBelow, type Refused } from "./judge.ts";
export { caseInsensitive, fitsPattern, matchesTokens, type ParsedPattern, parsePattern } from "./name-pattern.ts";
export { isPrivatePlace, isProtectedBySystem } from "./private-places.ts";
export {
  protectedAtHome,
  protectedInRepository,
  protectedName,
  protectedTopNames,
  protectedWhenMissing,
  protectedWhenMissingAtHome,
  repositoryMarks,
} from "./protected.ts";
export { secretPatterns, secretSamples } from "./secret-globs.ts";
export { fromHome, isSecret, leadsToSecrets, mayContainSecrets } from "./secret-names.ts";
export { couldBeSecret } from "./secret-patterns.ts";
export { shownName } from "./shown-name.ts";
export { SYSTEM_FOLDERS } from "./system-folders.ts";
