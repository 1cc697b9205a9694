/** Why a command does not count as read-only, and which form would. Thrown inside this folder and caught in classify.ts.
 *  It is not an Error: most verdicts are refusals, and recording a stack for each would take longer than classifying. */
export class Refusal {
  readonly message: string;
  readonly verdict: "write" | "unknown";

  constructor(message: string, verdict: "write" | "unknown" = "unknown") {
    this.message = message;
    this.verdict = verdict;
  }
}
