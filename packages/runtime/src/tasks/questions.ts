/** How do children's questions reach the session's approver, and when has a child been denied too often?
 *  Invariant: questions are asked one at a time, in the order they came. Each is answered once, even if several answers
 *  arrive at once. An answer belongs to its question; if that no longer waits, the answer changes nothing. A waiting
 *  question holds no timer and no connection.
 *  Equal questions are one question: asked once, and everybody who asked gets the answer. So "no, and stop" ends
 *  every task that asked, because continuing would only lead the others back to what was refused. `equalQuestions` tells whom an
 *  answer would reach.
 *  Elsewhere: what is asked (@prefork/guard), who answers (../ports.ts), ending a child (../children). */

import { oneLine } from "../context/index.ts";
import type { Answer, Ask, Question } from "../ports.ts";

export type QuestionsOptions = {
  readonly ask: Ask;
  /** Called when a question starts and stops waiting: once each, even for questions that never reached anybody. */
  readonly onWaiting?: (question: Question, isWaiting: boolean) => void;
  /** Would this rule allow that call? Default: a rule only reaches equal questions. */
  readonly covers?: (rule: string, question: Question) => boolean;
  /** Aborted when nobody is left who could answer. */
  readonly signal?: AbortSignal;
  /** The answer if nobody answers. */
  readonly policy?: "allow" | "deny"; // default: deny
};

type WaitingQuestion = {
  readonly question: Question;
  readonly key: string;
  readonly answered: (answer: Answer) => void;
};

export class Questions {
  readonly #options: QuestionsOptions;
  readonly #queue: WaitingQuestion[] = [];
  #isAsking = false;
  /** The question that is being asked now. Its controller withdraws it. */
  #current: { readonly waiting: WaitingQuestion; readonly over: AbortController } | undefined;

  constructor(options: QuestionsOptions) {
    this.#options = options;
    options.signal?.addEventListener("abort", () => this.#leaveToPolicy(), { once: true });
  }

  /** All waiting questions, in the order of the queue. */
  get waiting(): readonly Question[] {
    return this.#queue.map(({ question }) => question);
  }

  /** The questions that an answer to this one would settle, including itself. */
  equalQuestions(id: string): readonly Question[] {
    const key = this.#find(id)?.key;
    return this.#queue.flatMap((waiting) => (waiting.key === key ? [waiting.question] : []));
  }

  /** Resolves with the answer. If the asker aborts, the answer is a denial. */
  ask(question: Question, signal: AbortSignal): Promise<Answer> {
    if (signal.aborted) return Promise.resolve(INTERRUPTED);
    if (this.#options.signal?.aborted) return Promise.resolve(this.#byPolicy(SESSION_ENDED));
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    const { onWaiting } = this.#options;
    const leave = (): void => void this.#settle(waiting, INTERRUPTED);
    const waiting: WaitingQuestion = {
      question,
      key: questionKey(question),
      answered: (answer) => {
        signal.removeEventListener("abort", leave);
        try {
          onWaiting?.(question, false);
          resolve(answer);
        } catch (error) {
          reject(error); // one asker's failure must not keep the others waiting
        }
      },
    };
    this.#queue.push(waiting);
    signal.addEventListener("abort", leave, { once: true });
    try {
      onWaiting?.(question, true);
    } catch (error) {
      signal.removeEventListener("abort", leave);
      this.#take(waiting);
      reject(error);
    }
    void this.#askAll();
    return promise;
  }

  /** Answers a waiting question, whether it is being asked or not. False if no question with this id waits; then
   *  nothing happens. */
  answer(id: string, answer: Answer): boolean {
    const waiting = this.#find(id);
    return waiting !== undefined && this.#answer(waiting, answer);
  }

  async #askAll(): Promise<void> {
    if (this.#isAsking) return;
    this.#isAsking = true;
    for (let first = this.#queue[0]; first; first = this.#queue[0]) await this.#askOne(first);
    this.#isAsking = false;
  }

  /** Until it is answered or withdrawn. If asking fails, nobody is there to answer. */
  async #askOne(waiting: WaitingQuestion): Promise<void> {
    const over = new AbortController();
    const withdrawn = Promise.withResolvers<"withdrawn">();
    over.signal.addEventListener("abort", () => withdrawn.resolve("withdrawn"), { once: true });
    this.#current = { waiting, over };
    try {
      const outcome = await Promise.race([this.#options.ask(waiting.question, over.signal), withdrawn.promise]);
      this.#current = undefined;
      if (outcome !== "withdrawn") this.#answer(waiting, outcome);
    } catch (error) {
      this.#current = undefined;
      this.#settle(waiting, this.#byPolicy(error instanceof Error ? error.message : String(error)));
    }
  }

  #answer(waiting: WaitingQuestion, { all = false, ...answer }: Answer): boolean {
    if (!this.#queue.includes(waiting)) return false;
    const affected = this.#queue.filter(
      (other) => other.key === waiting.key || (all && this.#covers(answer, other.question)),
    );
    for (const one of affected) this.#settle(one, answer);
    return true;
  }

  #covers(answer: Answer, question: Question): boolean {
    if (answer.kind !== "always") return true;
    return this.#options.covers?.(answer.rule, question) ?? false;
  }

  #leaveToPolicy(): void {
    for (const waiting of [...this.#queue]) this.#settle(waiting, this.#byPolicy(SESSION_ENDED));
  }

  #byPolicy(why: string): Answer {
    const { policy = "deny" } = this.#options;
    const verdict = policy === "allow" ? "yes" : "no";
    return { kind: policy, reason: `nobody could answer (${why}), so the policy did: ${verdict}` };
  }

  /** Ends the wait of one question. */
  #settle(waiting: WaitingQuestion, answer: Answer): void {
    if (!this.#take(waiting)) return;
    if (this.#current?.waiting === waiting) this.#current.over.abort();
    waiting.answered(answer);
  }

  /** False if it no longer waits. */
  #take(waiting: WaitingQuestion): boolean {
    const at = this.#queue.indexOf(waiting);
    if (at >= 0) this.#queue.splice(at, 1);
    return at >= 0;
  }

  #find(id: string): WaitingQuestion | undefined {
    return this.#queue.find(({ question }) => question.id === id);
  }
}

const INTERRUPTED: Answer = { kind: "deny", reason: "the user interrupted before the question was answered" };
const SESSION_ENDED = "the session ended";

/** Questions are equal if they would do the same thing, regardless of who asks and of the command's description. */
const questionKey = ({ tool, args }: Question): string => {
  const { description: _description, ...done } = args;
  return JSON.stringify([tool, tool === "Bash" ? done : args]);
};

/** Counts the turns of one child in which a call was denied, and decides when the child should end. The caller records at
 *  most one denial per turn.
 *  Invariant: the verdict depends only on the recorded calls and their order. Once the child should end, nothing
 *  changes that, and the reason names what was refused. */

export type DenialLimits = {
  readonly consecutiveTurns?: number; // default: 3
  readonly totalTurns?: number; // default: 8
};

export type DenialVerdict =
  | { readonly kind: "go-on" }
  /** `reason`: for its report. */
  | { readonly kind: "end"; readonly reason: string };

const SHOWN_KINDS = 3;
const SHOWN_CHARACTERS = 80;

export class Denials {
  readonly #consecutiveTurns: number;
  readonly #totalTurns: number;
  readonly #denied: string[] = [];
  #consecutive = 0;
  #verdict: DenialVerdict = { kind: "go-on" };

  constructor({ consecutiveTurns = 3, totalTurns = 8 }: DenialLimits = {}) {
    this.#consecutiveTurns = consecutiveTurns;
    this.#totalTurns = totalTurns;
  }

  get verdict(): DenialVerdict {
    return this.#verdict;
  }

  /** `key` says for people what was refused: the tool and what it was meant to do. */
  recordDenial(key: string): DenialVerdict {
    if (this.#verdict.kind === "end") return this.#verdict;
    this.#denied.push(key);
    this.#consecutive += 1;
    if (this.#consecutive >= this.#consecutiveTurns)
      this.#verdict = endVerdict(this.#denied.slice(-this.#consecutive), " in a row");
    else if (this.#denied.length >= this.#totalTurns) this.#verdict = endVerdict(this.#denied, "");
    return this.#verdict;
  }

  /** A call was allowed that could have been refused. */
  recordApproval(): void {
    this.#consecutive = 0;
  }
}

const endVerdict = (denied: readonly string[], how: string): DenialVerdict => {
  const kinds = [...Map.groupBy(denied, (key) => key)].map(([key, { length }]) => {
    const shown = oneLine(key, SHOWN_CHARACTERS);
    return length === 1 ? shown : `${shown} (${length} times)`;
  });
  const more = kinds.length > SHOWN_KINDS ? [`${kinds.length - SHOWN_KINDS} more`] : [];
  const what = [...kinds.slice(0, SHOWN_KINDS), ...more].join(", ");
  const calls = denied.length === 1 ? "1 call was" : `${denied.length} calls${how} were`;
  return { kind: "end", reason: `${calls} not allowed: ${what}.` };
};
