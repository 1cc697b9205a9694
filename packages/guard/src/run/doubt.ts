/** Why a repository is not read unasked.
 *  Invariant: thrown while it is read, and a value outside (`orDoubt`, `viewProblem`).
 *  Elsewhere: reading (git-checkout.ts), the bounds of it (read-budget.ts). */

export class Doubt extends Error {}
