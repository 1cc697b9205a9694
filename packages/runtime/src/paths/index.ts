export { isPseudoPath, type Judged, judgeInside, judgePath, partsBelow, type Refused } from "./judge.ts";
export { protectedName, protectedTopNames, protectedWhenMissing, protectedWhenMissingAtHome } from "./protected.ts";
