/** Shows a session as plain lines, and answers its questions from the terminal. It knows the session only through its
 *  SessionControl, so the session may run in this process or in another one.
 *  Invariant: a question is answered only by a line typed after it was shown; when somebody else settles it first, it is
 *  withdrawn and a line says how. Without a terminal, or to watch only, nothing is sent.
 *  Elsewhere: events as lines (attach-lines.ts), asking (../print), the connection (../attach). */

import type { Question, RuntimeEvent, SessionControl } from "@prefork/runtime";
import type { Io } from "../io.ts";
import { questionText, TerminalAnswers } from "../print/index.ts";
import { EventLines } from "./attach-lines.ts";

export type DisplayOptions = {
  readonly io: Io;
  /** Default: the whole session. */
  readonly task?: string | undefined;
  /** Questions are shown but not answered here; the text says why. */
  readonly unanswered?: string | undefined;
  /** Ends of the task before this time are history. */
  readonly since: number;
};

/** `input-ended`: the person closed the input. `events-ended`: there are no more events; the control knows why. */
export type DisplayEnd = "task-ended" | "input-ended" | "events-ended";

type ShownQuestion = { readonly question: Question; readonly over: AbortController };

export class SessionDisplay implements Disposable {
  readonly #options: DisplayOptions;
  readonly #lines: EventLines;
  readonly #answers: TerminalAnswers | undefined;
  readonly #inputEnded = Promise.withResolvers<"input-ended">();
  #control: SessionControl | undefined;
  #shown: ShownQuestion[] = [];
  #isAsking = false;
  /** Agents whose question was settled by somebody else; the answer follows in its own event. */
  readonly #settled = new Set<string>();
  #lastSeq = 0;

  constructor(options: DisplayOptions) {
    this.#options = options;
    this.#lines = new EventLines({ colour: options.io.colour, task: options.task });
    if (options.unanswered !== undefined) return;
    this.#answers = new TerminalAnswers(options.io);
    void this.#answers.listen().then(() => this.#inputEnded.resolve("input-ended"));
  }

  /** Shows everything after the last event that was shown. May be called again with a new connection. */
  async show(control: SessionControl): Promise<DisplayEnd> {
    this.#control = control;
    using events = control.subscribe(this.#lastSeq + 1);
    // Otherwise each question that waits is opened by an event that follows.
    if (events.keptFrom > 1 || this.#lastSeq > 0)
      for (const question of control.questions()) if (this.#isTheirs(question)) this.#show(question);
    const reading = this.#read(events);
    try {
      return await Promise.race([reading, this.#inputEnded.promise]);
    } finally {
      for (const { over } of this.#shown) over.abort();
      this.#shown = [];
    }
  }

  [Symbol.dispose](): void {
    this.#answers?.[Symbol.dispose]();
  }

  async #read(events: ReturnType<SessionControl["subscribe"]>): Promise<DisplayEnd> {
    let isFirst = true;
    for await (const event of events) {
      if (isFirst && events.keptFrom > this.#lastSeq + 1)
        this.#print(`(earlier events are in the journal: prefork sessions export ${event.session})\n`);
      isFirst = false;
      this.#lastSeq = event.seq;
      this.#print(this.#lines.text(event));
      if (this.#lines.isShown(event)) this.#follow(event);
      const { task, since } = this.#options;
      if (event.type === "task_ended" && event.taskId === task && event.at >= since) return "task-ended";
    }
    return "events-ended";
  }

  #follow(event: RuntimeEvent): void {
    if (event.type === "question_opened") this.#opened(event);
    if (event.type === "question_closed") this.#closed(event.questionId);
    if (event.type === "question_answered" && this.#settled.delete(event.agent))
      this.#print(`${this.#lines.who(event.agent)}  settled elsewhere: ${OUTCOMES[event.answer]}\n`);
  }

  #opened(event: Extract<RuntimeEvent, { type: "question_opened" }>): void {
    const question = this.#control?.questions().find(({ id }) => id === event.questionId);
    if (question) {
      if (!this.#shown.some((shown) => shown.question.id === question.id)) this.#show(question);
      return;
    }
    // A question of the past; its answer follows.
    const { questionId: id, type: _type, ...rest } = event;
    this.#print(questionText({ id, ...rest }));
    this.#settled.add(event.agent);
  }

  #isTheirs({ agent }: Question): boolean {
    const { task } = this.#options;
    return task === undefined || agent === task;
  }

  #show(question: Question): void {
    this.#shown.push({ question, over: new AbortController() });
    if (this.#answers) void this.#askAll(this.#answers);
    else this.#print(`${questionText(question)}  ${this.#options.unanswered ?? ""}\n`);
  }

  #closed(id: string): void {
    const closed = this.#shown.find(({ question }) => question.id === id);
    if (!closed) return;
    this.#shown = this.#shown.filter((shown) => shown !== closed);
    this.#settled.add(closed.question.agent);
    closed.over.abort();
  }

  async #askAll(answers: TerminalAnswers): Promise<void> {
    if (this.#isAsking) return;
    this.#isAsking = true;
    for (let first = this.#shown[0]; first; first = this.#shown[0]) {
      const isOpen = await this.#askOne(first, answers);
      if (!isOpen) break;
    }
    this.#isAsking = false;
  }

  /** False if nobody is left who could answer. */
  async #askOne(shown: ShownQuestion, answers: TerminalAnswers): Promise<boolean> {
    const { question, over } = shown;
    const answer = await answers.read(question, over.signal);
    if (answer === undefined) return over.signal.aborted;
    this.#shown = this.#shown.filter((one) => one !== shown);
    try {
      const counts = await this.#control?.answer(question.id, answer);
      if (!counts) this.#print("  Too late: it was settled elsewhere.\n");
    } catch (error) {
      this.#print(`  The answer was not delivered: ${error instanceof Error ? error.message : error}\n`);
    }
    return true;
  }

  #print(text: string): void {
    if (text === "") return;
    if (this.#answers) this.#answers.print(text);
    else this.#options.io.out(text);
  }
}

const OUTCOMES: Readonly<Record<Extract<RuntimeEvent, { type: "question_answered" }>["answer"], string>> = {
  allow: "allowed",
  always: "allowed from now on",
  deny: "denied",
};
