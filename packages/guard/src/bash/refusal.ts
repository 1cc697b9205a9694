/** Why a text cannot be taken as read-only, and what form would pass. Thrown inside this folder and caught in
 *  classify.ts. No Error: most verdicts are refusals, and recording a stack for each would take longer than judging. */
export class Refusal {
  readonly message: string;
  readonly verdict: "write" | "unknown";

  constructor(message: string, verdict: "write" | "unknown" = "unknown") {
    this.message = message;
    this.verdict = verdict;
  }
}
