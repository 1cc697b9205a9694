export { ownAnswer } from "./answers.ts";
export { askGit } from "./ask-git.ts";
export { ReadBudget } from "./checkout.ts";
export { isGiven, objectProblem, remoteProblem, SHOWS_CHANGES, withoutRenames } from "./objects.ts";
export { isApprovalNeeded, orApprovalNeeded } from "./repository.ts";
export { linkedFolder } from "./tracked.ts";
export { GitViews, type View, viewProblem, WITHOUT_HIDDEN } from "./view.ts";
