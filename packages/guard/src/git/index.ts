export { ownAnswer } from "./answers.ts";
export { askGit } from "./ask-git.ts";
export { isGiven, objectProblem } from "./objects.ts";
export { ReadBudget } from "./read-budget.ts";
export { isDoubt, orDoubt } from "./repository.ts";
export { linkedFolder } from "./tracked.ts";
export { remoteProblem, SHOWS_CHANGES, withoutRenames } from "./unhidden.ts";
export { GitViews, type View, viewProblem, WITHOUT_HIDDEN } from "./view.ts";
