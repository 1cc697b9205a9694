/** Asks the person at the terminal the permission questions of `prefork -p` and `prefork attach`.
 *  Invariant: only a line typed after the question was shown answers it; after an unclear line it asks again, and the end
 *  of the input means no. Control characters in a model's text are spelled out.
 *  Elsewhere: asking one question at a time (Questions of @prefork/runtime). */

import { setTimeout as sleep } from "node:timers/promises";
import type { Answer, Ask, Question } from "@prefork/runtime";
import type { Io } from "../io.ts";
import { visible, visibleName } from "../visible.ts";

/** Is there a person to ask? */
export const canAsk = ({ inputIsTerminal, isTerminal }: Io): boolean => inputIsTerminal && isTerminal;

/** Lines that were typed while nobody read them arrive at once when reading begins, and are no answers. */
const TYPED_BEFORE_MS = 50;

export class TerminalAnswers implements Disposable {
  readonly #io: Io;
  readonly #closing = new AbortController();
  #lines: TypedLines | undefined;
  #asking: Question | undefined;

  constructor(io: Io) {
    this.#io = io;
  }

  readonly ask: Ask = async (question, signal) => {
    const answer = await this.read(question, signal);
    if (answer) return answer;
    if (signal.aborted && !this.#io.signal.aborted) this.#io.err("  No answer is needed any more.\n");
    return { kind: "deny", reason: "nobody answered" };
  };

  /** Undefined if the question was withdrawn, or the input has ended. */
  async read(question: Question, signal: AbortSignal): Promise<Answer | undefined> {
    const isNew = this.#lines === undefined;
    const lines = this.#open();
    if (isNew) await sleep(TYPED_BEFORE_MS);
    this.#io.err(questionText(question));
    this.#asking = question;
    try {
      for (;;) {
        this.#io.err(choicesText(question));
        const line = await lines.next(signal);
        if (line === undefined) {
          this.#io.err("\n");
          return undefined;
        }
        const answer = answerOf(line, question);
        if (answer) return answer;
      }
    } finally {
      this.#asking = undefined;
    }
  }

  /** Reads the input from now on, so that a line typed before a question is never its answer. Resolves when the input has
   *  ended. */
  async listen(): Promise<void> {
    await this.#open().ended;
  }

  /** Prints text without hiding the question that waits for an answer. */
  print(text: string): void {
    const { out, err } = this.#io;
    if (this.#asking) err("\n");
    out(text);
    if (this.#asking) err(choicesText(this.#asking));
  }

  #open(): TypedLines {
    this.#lines ??= new TypedLines(this.#io.input(this.#closing.signal));
    return this.#lines;
  }

  [Symbol.dispose](): void {
    this.#closing.abort();
  }
}

/** Typed lines; a line that arrives while no question is open is dropped. */
class TypedLines {
  /** Resolves when there are no more lines. */
  readonly ended: Promise<void>;
  #waiting: ((line: string | undefined) => void) | undefined;
  #hasEnded = false;

  constructor(lines: AsyncIterable<string>) {
    this.ended = this.#read(lines);
  }

  next(signal: AbortSignal): Promise<string | undefined> {
    if (this.#hasEnded || signal.aborted) return Promise.resolve(undefined);
    return new Promise((resolve) => {
      const give = (line: string | undefined): void => {
        signal.removeEventListener("abort", leave);
        this.#waiting = undefined;
        resolve(line);
      };
      const leave = (): void => give(undefined);
      signal.addEventListener("abort", leave, { once: true });
      this.#waiting = give;
    });
  }

  async #read(lines: AsyncIterable<string>): Promise<void> {
    try {
      for await (const line of lines) this.#waiting?.(line);
    } catch {
      // A broken input counts as ended.
    }
    this.#hasEnded = true;
    this.#waiting?.(undefined);
  }
}

/** More than anybody reads before answering. */
const MAX_SHOWN = 20_000;

/** The person must know if part of a call is not shown. */
const truncated = (text: string): string =>
  text.length <= MAX_SHOWN
    ? text
    : `${text.slice(0, MAX_SHOWN)}\n[${text.length - MAX_SHOWN} more characters not shown]`;

export const questionText = ({ agent, scope, tool, args, reason, notes }: Question): string => {
  const who = agent === "main" ? "The agent" : `Fork ${visibleName(agent)}${scope ? ` (${visibleName(scope)})` : ""}`;
  const what = truncated(visible(callText(tool, args))).replaceAll("\n", "\n    ");
  const more = notes.map((note) => `  note: ${visible(note)}\n`).join("");
  return `\n${who} wants to use ${visibleName(tool)}:\n    ${what}\n  reason: ${visible(reason)}\n${more}`;
};

export const callText = (tool: string, args: Question["args"]): string => {
  if (tool === "Bash" && typeof args.command === "string") return args.command;
  const { file_path: path, ...rest } = args;
  return typeof path === "string" ? `${path}\n${JSON.stringify(rest)}` : JSON.stringify(args);
};

const choicesText = ({ rule }: Question): string => {
  const always = rule === undefined ? "" : `, a: always (${visibleName(rule)})`;
  return `  y: yes, once${always}, n: no, s: no, and stop > `;
};

const answerOf = (line: string, { rule }: Question): Answer | undefined => {
  switch (line.trim().toLowerCase()) {
    case "y":
    case "yes":
      return { kind: "allow" };
    case "a":
    case "always":
      return rule === undefined ? undefined : { kind: "always", rule };
    case "n":
    case "no":
      return { kind: "deny" };
    case "s":
    case "stop":
      return { kind: "deny", stop: true };
    default:
      return undefined;
  }
};
