/** The questions of children, in one queue before whoever answers for the session.
 *  Invariant: one question is put at a time, in the order they came; equal ones are put once and answered together; an
 *  answer belongs to the question it was given for; a child that is gone asks nothing any more.
 *  Elsewhere: what is asked (../guard), who answers (../ports.ts). */

import type { Answer, Ask, Question } from "../ports.ts";

type Waiting = {
  readonly question: Question;
  readonly key: string;
  readonly answer: (answer: Answer) => void;
  readonly signal: AbortSignal;
};

export type QuestionsOptions = {
  readonly ask: Ask;
  /** Told when a question begins and ends to wait. */
  readonly waits?: (question: Question, isWaiting: boolean) => void;
};

export class Questions {
  readonly #options: QuestionsOptions;
  readonly #queue: Waiting[] = [];
  #isAsking = false;

  constructor(options: QuestionsOptions) {
    this.#options = options;
  }

  /** Who waits, in the order of the queue. */
  get waiting(): readonly Question[] {
    return this.#queue.map(({ question }) => question);
  }

  /** Resolves with the answer; an abort of the asker is a denial. */
  ask(question: Question, signal: AbortSignal): Promise<Answer> {
    if (signal.aborted) return Promise.resolve(GONE);
    return new Promise((resolve) => {
      const answer = (given: Answer): void => {
        signal.removeEventListener("abort", leave);
        this.#options.waits?.(question, false);
        resolve(given);
      };
      const waiting: Waiting = { question, key: keyOf(question), answer, signal };
      const leave = (): void => {
        const at = this.#queue.indexOf(waiting);
        if (at >= 0) this.#queue.splice(at, 1);
        answer(GONE);
      };
      signal.addEventListener("abort", leave, { once: true });
      this.#queue.push(waiting);
      this.#options.waits?.(question, true);
      void this.#putNext();
    });
  }

  async #putNext(): Promise<void> {
    if (this.#isAsking) return;
    this.#isAsking = true;
    try {
      for (let first = this.#queue[0]; first; first = this.#queue[0]) {
        const { key, question } = first;
        const answer = await this.#put(question, first.signal);
        const alike = this.#queue.filter((waiting) => waiting.key === key);
        for (const waiting of alike) {
          this.#queue.splice(this.#queue.indexOf(waiting), 1);
          waiting.answer(answer);
        }
      }
    } finally {
      this.#isAsking = false;
    }
  }

  /** Whoever answers may fail; then the answer is no. */
  async #put(question: Question, signal: AbortSignal): Promise<Answer> {
    try {
      return await this.#options.ask(question, signal);
    } catch (error) {
      if (signal.aborted) return GONE;
      return {
        kind: "deny",
        reason: `the question could not be answered: ${error instanceof Error ? error.message : error}`,
      };
    }
  }
}

const GONE: Answer = { kind: "deny", reason: "the user interrupted before the question was answered" };

/** What makes two questions the same: what would be done, not who would do it. */
const keyOf = ({ tool, args }: Question): string => JSON.stringify([tool, args]);
