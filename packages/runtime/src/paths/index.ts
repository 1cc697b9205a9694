export { isPseudoPath, type Judged, judgeInside, judgePath, partsBelow, type Refused } from "./judge.ts";
export {
  protectedInRepository,
  protectedName,
  protectedTopNames,
  protectedWhenMissing,
  protectedWhenMissingAtHome,
  repositoryMarks,
} from "./protected.ts";
