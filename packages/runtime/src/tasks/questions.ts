/** The questions of children, in one queue before whoever answers for the session.
 *  Invariant: one question is put at a time, in the order they came; each is answered once, whatever comes together; an
 *  answer belongs to the question it was given for, and where that no longer waits it changes nothing; whoever waits
 *  holds no timer and no connection.
 *  Equal questions are one question: put once, and the answer is that of each who asks it. So "no, and stop" ends each of
 *  them, since going on would only lead the others back to what was refused; `alike` tells whom an answer would reach.
 *  Elsewhere: what is asked (@prefork/guard), who answers (../ports.ts), how often a child may hear no (denials.ts). */

import { oneLine } from "../context/index.ts";
import type { Answer, Ask, Question } from "../ports.ts";

export type QuestionsOptions = {
  readonly ask: Ask;
  /** Told when a question begins and when it ends to wait: once each, also for those that nobody was asked about. */
  readonly waits?: (question: Question, isWaiting: boolean) => void;
  /** Would this rule allow that call? Default: a rule reaches equal questions only. */
  readonly covers?: (rule: string, question: Question) => boolean;
  /** Aborted when nobody is left who could answer. */
  readonly signal?: AbortSignal;
  /** What holds where nobody answers. */
  readonly policy?: "allow" | "deny"; // default: deny
};

type Waiting = {
  readonly question: Question;
  readonly key: string;
  readonly answered: (answer: Answer) => void;
};

export class Questions {
  readonly #options: QuestionsOptions;
  readonly #queue: Waiting[] = [];
  #isPutting = false;
  /** The one that is put now; its controller takes it back. */
  #put: { readonly waiting: Waiting; readonly over: AbortController } | undefined;

  constructor(options: QuestionsOptions) {
    this.#options = options;
    options.signal?.addEventListener("abort", () => this.#leaveToPolicy(), { once: true });
  }

  /** Who waits, in the order of the queue. */
  get waiting(): readonly Question[] {
    return this.#queue.map(({ question }) => question);
  }

  /** The questions that an answer to this one would settle, itself among them. */
  alike(id: string): readonly Question[] {
    const key = this.#find(id)?.key;
    return this.#queue.flatMap((waiting) => (waiting.key === key ? [waiting.question] : []));
  }

  /** Resolves with the answer; an abort of the asker is a denial. */
  ask(question: Question, signal: AbortSignal): Promise<Answer> {
    if (signal.aborted) return Promise.resolve(GONE);
    if (this.#options.signal?.aborted) return Promise.resolve(this.#byPolicy(ENDED));
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    const { waits } = this.#options;
    const leave = (): void => void this.#settle(waiting, GONE);
    const waiting: Waiting = {
      question,
      key: keyOf(question),
      answered: (answer) => {
        signal.removeEventListener("abort", leave);
        try {
          waits?.(question, false);
          resolve(answer);
        } catch (error) {
          reject(error); // what one asker could not write down must not keep the others waiting
        }
      },
    };
    this.#queue.push(waiting);
    signal.addEventListener("abort", leave, { once: true });
    try {
      waits?.(question, true);
    } catch (error) {
      signal.removeEventListener("abort", leave);
      this.#take(waiting);
      reject(error);
    }
    void this.#putAll();
    return promise;
  }

  /** Answers a question that waits, put or not. False where none with this id does: then nothing has happened. */
  answer(id: string, answer: Answer): boolean {
    const waiting = this.#find(id);
    return waiting !== undefined && this.#answer(waiting, answer);
  }

  async #putAll(): Promise<void> {
    if (this.#isPutting) return;
    this.#isPutting = true;
    for (let first = this.#queue[0]; first; first = this.#queue[0]) await this.#putOne(first);
    this.#isPutting = false;
  }

  /** Until it is answered or taken back. Whoever answers may fail; then nobody is there. */
  async #putOne(waiting: Waiting): Promise<void> {
    const over = new AbortController();
    const takenBack = Promise.withResolvers<"taken back">();
    over.signal.addEventListener("abort", () => takenBack.resolve("taken back"), { once: true });
    this.#put = { waiting, over };
    try {
      const given = await Promise.race([this.#options.ask(waiting.question, over.signal), takenBack.promise]);
      this.#put = undefined;
      if (given !== "taken back") this.#answer(waiting, given);
    } catch (error) {
      this.#put = undefined;
      this.#settle(waiting, this.#byPolicy(error instanceof Error ? error.message : String(error)));
    }
  }

  #answer(waiting: Waiting, { all = false, ...answer }: Answer): boolean {
    if (!this.#queue.includes(waiting)) return false;
    const reached = this.#queue.filter(
      (other) => other.key === waiting.key || (all && this.#covers(answer, other.question)),
    );
    for (const one of reached) this.#settle(one, answer);
    return true;
  }

  #covers(answer: Answer, question: Question): boolean {
    if (answer.kind !== "always") return true;
    return this.#options.covers?.(answer.rule, question) ?? false;
  }

  #leaveToPolicy(): void {
    for (const waiting of [...this.#queue]) this.#settle(waiting, this.#byPolicy(ENDED));
  }

  #byPolicy(why: string): Answer {
    const { policy = "deny" } = this.#options;
    const said = policy === "allow" ? "yes" : "no";
    return { kind: policy, reason: `nobody could answer (${why}), so the policy did: ${said}` };
  }

  /** Ends the wait of one. */
  #settle(waiting: Waiting, answer: Answer): void {
    if (!this.#take(waiting)) return;
    if (this.#put?.waiting === waiting) this.#put.over.abort();
    waiting.answered(answer);
  }

  /** False where it does not wait any more. */
  #take(waiting: Waiting): boolean {
    const at = this.#queue.indexOf(waiting);
    if (at >= 0) this.#queue.splice(at, 1);
    return at >= 0;
  }

  #find(id: string): Waiting | undefined {
    return this.#queue.find(({ question }) => question.id === id);
  }
}

const GONE: Answer = { kind: "deny", reason: "the user interrupted before the question was answered" };
const ENDED = "the session ended";

/** What makes two questions the same: what would be done, not who would do it, nor how a command is described. */
const keyOf = ({ tool, args }: Question): string => {
  const { description: _description, ...done } = args;
  return JSON.stringify([tool, tool === "Bash" ? done : args]);
};

/** Has a child been told no so often that it should end? Counts for one child.
 *  Invariant: it depends on what was told and in which order, on nothing else; once it should end, nothing takes that
 *  back, and the reason names what was refused.
 *  Elsewhere: asking (questions.ts), ending the child (../fork). */

export type DenialLimits = {
  readonly inARow?: number; // default: 3
  readonly inAll?: number; // default: 8
};

export type DenialVerdict =
  | { readonly kind: "go-on" }
  /** `reason`: for its report. */
  | { readonly kind: "end"; readonly reason: string };

const SHOWN_KINDS = 3;
const SHOWN_CHARACTERS = 80;

export class Denials {
  readonly #inARow: number;
  readonly #inAll: number;
  readonly #denied: string[] = [];
  #row = 0;
  #verdict: DenialVerdict = { kind: "go-on" };

  constructor({ inARow = 3, inAll = 8 }: DenialLimits = {}) {
    this.#inARow = inARow;
    this.#inAll = inAll;
  }

  get verdict(): DenialVerdict {
    return this.#verdict;
  }

  /** `key` says what was refused, for people: the tool and what it was to do. */
  denied(key: string): DenialVerdict {
    if (this.#verdict.kind === "end") return this.#verdict;
    this.#denied.push(key);
    this.#row += 1;
    if (this.#row >= this.#inARow) this.#verdict = end(this.#denied.slice(-this.#row), " in a row");
    else if (this.#denied.length >= this.#inAll) this.#verdict = end(this.#denied, "");
    return this.#verdict;
  }

  /** A call was allowed that might have been refused. */
  allowed(): void {
    this.#row = 0;
  }
}

const end = (denied: readonly string[], how: string): DenialVerdict => {
  const kinds = [...Map.groupBy(denied, (key) => key)].map(([key, { length }]) => {
    const shown = oneLine(key, SHOWN_CHARACTERS);
    return length === 1 ? shown : `${shown} (${length} times)`;
  });
  const more = kinds.length > SHOWN_KINDS ? [`${kinds.length - SHOWN_KINDS} more`] : [];
  const what = [...kinds.slice(0, SHOWN_KINDS), ...more].join(", ");
  const calls = denied.length === 1 ? "1 call was" : `${denied.length} calls${how} were`;
  return { kind: "end", reason: `${calls} not allowed: ${what}.` };
};
