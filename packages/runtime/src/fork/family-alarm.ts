/** One broken family is one finding: who says so, and when?
 *  Invariant: of all members that warn, the first does it for the others, with their number; it speaks once nobody of
 *  the family waits for its first answer any more, and only once. What is no warning passes as it is.
 *  Elsewhere: what is a warning (verify.ts), who is a member (../children: family-starts.ts). */

import type { EventBody } from "../events.ts";
import type { CacheMiss } from "./verify.ts";

type Missed = Extract<EventBody, { readonly type: "fork_cache_missed" }>;

type Held = { readonly event: Missed; readonly emit: (event: EventBody) => void };

export class FamilyAlarm {
  /** Members whose first answer nobody has looked at yet. */
  readonly #waiting: Set<string>;
  #held: Held | undefined;
  #siblings = 0;
  #isRaised = false;

  constructor(members: readonly string[]) {
    this.#waiting = new Set(members);
  }

  /** A member's first answer was looked at. */
  checked(taskId: string, miss: CacheMiss | undefined, emit: (event: EventBody) => void): void {
    if (miss) this.#take({ type: "fork_cache_missed", taskId, ...miss }, emit);
    this.left(taskId);
  }

  /** A member has ended, or never began: nobody waits for its answer. */
  left(taskId: string): void {
    this.#waiting.delete(taskId);
    if (this.#waiting.size > 0 || !this.#held) return;
    const { event, emit } = this.#held;
    this.#held = undefined;
    this.#isRaised = true;
    emit(this.#siblings === 0 ? event : { ...event, siblings: this.#siblings });
  }

  #take(event: Missed, emit: (event: EventBody) => void): void {
    if (!event.isWarning) emit(event);
    else if (!this.#held && !this.#isRaised) this.#held = { event, emit };
    else {
      this.#siblings += 1;
      emit({ ...event, isWarning: false });
    }
  }
}
