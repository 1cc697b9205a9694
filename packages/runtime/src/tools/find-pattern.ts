/** Which lines of a text match a regular expression that a model wrote?
 *  Invariant: the main thread runs the expression for a few milliseconds at most. A search that takes longer moves to a
 *  worker thread, because backtracking may never end and can be stopped there without blocking anybody. The text is
 *  never split, so memory does not grow with the number of lines.
 *  Elsewhere: translating the pattern and limiting its length (search-pattern.ts), which texts (search-text.ts). */

import { once } from "node:events";
import { createContext, Script } from "node:vm";
import { Worker } from "node:worker_threads";

export type PatternSearch = {
  readonly source: string;
  readonly flags: string;
  /** A match may span several lines; `flags` then includes `g`. */
  readonly isMultiline: boolean;
  /** How many matching lines are reported; more are only counted. */
  readonly maxLines: number;
  /** Stops at the first match. */
  readonly firstIsEnough: boolean;
  readonly signal: AbortSignal;
};

/** Indices of the matching lines, and the number of matches: a match across several lines counts once. */
export type LineMatches = { readonly lines: Uint32Array; readonly count: number };

const MAX_MAIN_THREAD_MS = 20;
/** V8 cannot be stopped while it compiles an expression. A longer one could take 100 ms, or seconds. */
const MAX_MAIN_THREAD_LENGTH = 400;
const MAX_WORKER_MS = 2_000;
const MAX_WORKER_MEGABYTES = 1_024;

/** A program as text, because only a script has a time limit, and a worker starts the same way from the bundle. */
const FIND = String.raw`
const lineEnd = (text, from) => {
  const end = text.indexOf("\n", from);
  return end === -1 ? text.length : end;
};

const findLines = (text, { pattern, maxLines, firstIsEnough }) => {
  const lines = [];
  let count = 0;
  for (let line = 0, from = 0; from < text.length; line += 1) {
    const end = lineEnd(text, from);
    const isCrlf = end > from && end < text.length && text[end - 1] === "\r";
    if (pattern.test(text.slice(from, isCrlf ? end - 1 : end))) {
      count += 1;
      if (lines.length < maxLines) lines.push(line);
      if (firstIsEnough) break;
    }
    from = end + 1;
  }
  return { lines: Uint32Array.from(lines), count };
};

// Matches are in order and do not overlap, so one pass over the lines is enough.
const findSpans = (given, { pattern, maxLines, firstIsEnough }) => {
  const text = given.replaceAll("\r\n", "\n");
  const lines = [];
  let [count, line, start, end] = [0, 0, 0, lineEnd(text, 0)];
  const nextLine = () => {
    start = end + 1;
    end = lineEnd(text, start);
    line += 1;
  };
  for (const match of text.matchAll(pattern)) {
    const last = match.index + Math.max(0, match[0].length - 1);
    count += 1;
    if (firstIsEnough) break;
    while (start < text.length && end < match.index) nextLine();
    while (start < text.length && start <= last) {
      if (lines.length < maxLines && lines.at(-1) !== line) lines.push(line);
      if (end >= last) break; // the next match may begin on the same line
      nextLine();
    }
  }
  return { lines: Uint32Array.from(lines), count };
};

const find = (text, search) => (search.isMultiline ? findSpans : findLines)(text, search);
`;

const WORKER = `${FIND}
const { parentPort, workerData } = require("node:worker_threads");
try {
  const search = { ...workerData, pattern: new RegExp(workerData.source, workerData.flags) };
  parentPort.on("message", (text) => parentPort.postMessage(find(text, search)));
  parentPort.postMessage("ready");
} catch (error) {
  parentPort.postMessage("the pattern cannot be read: " + error.message);
}
`;

const MAIN_THREAD = new Script(`(() => {${FIND}\nreturn find(text, search);})()`);

export class PatternFinder implements AsyncDisposable {
  readonly #signal: AbortSignal;
  readonly #search: Omit<PatternSearch, "signal">;
  readonly #scope = createContext({ text: "", search: {} });
  #isQuick: boolean;
  #worker: Promise<Worker | string> | undefined;

  /** May throw SyntaxError for an invalid pattern. */
  constructor({ signal, ...search }: PatternSearch) {
    this.#signal = signal;
    this.#search = search;
    this.#isQuick = search.source.length <= MAX_MAIN_THREAD_LENGTH;
    if (this.#isQuick) this.#scope.search = { ...search, pattern: new RegExp(search.source, search.flags) };
  }

  /** The matches in a text, or why they are unknown; after that the search is over. One text at a time. */
  async find(text: string): Promise<LineMatches | string> {
    const matches = this.#isQuick ? this.#findQuickly(text) : undefined;
    if (matches !== undefined) return matches;
    this.#isQuick = false;
    this.#worker ??= this.#startWorker();
    const worker = await this.#worker;
    return typeof worker === "string" ? worker : this.#findSlowly(worker, text);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const worker = await this.#worker?.catch(() => undefined);
    if (worker instanceof Worker) await worker.terminate();
  }

  #findQuickly(text: string): LineMatches | undefined {
    this.#scope.text = text;
    try {
      return MAIN_THREAD.runInContext(this.#scope, { timeout: MAX_MAIN_THREAD_MS }) as LineMatches;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ERR_SCRIPT_EXECUTION_TIMEOUT") return undefined;
      throw error;
    }
  }

  async #findSlowly(worker: Worker, text: string): Promise<LineMatches | string> {
    const patience = AbortSignal.timeout(MAX_WORKER_MS);
    try {
      const answered = once(worker, "message", { signal: AbortSignal.any([this.#signal, patience]) });
      worker.postMessage(text);
      const [matches] = (await answered) as [LineMatches];
      return matches;
    } catch (error) {
      this.#signal.throwIfAborted();
      if (patience.aborted) return "the pattern takes too long; make it simpler";
      if ((error as NodeJS.ErrnoException).code === "ERR_WORKER_OUT_OF_MEMORY")
        return "the pattern takes too much memory; make it simpler";
      throw error;
    }
  }

  /** A string says why the pattern cannot be used. */
  async #startWorker(): Promise<Worker | string> {
    const worker = new Worker(WORKER, {
      eval: true,
      workerData: this.#search,
      execArgv: [],
      env: {},
      resourceLimits: { maxOldGenerationSizeMb: MAX_WORKER_MEGABYTES },
    });
    worker.on("error", () => undefined); // reported by the code that waits for an answer
    const answered = once(worker, "message", { signal: this.#signal });
    const [answer] = (await answered.catch(async (error: unknown) => {
      await worker.terminate();
      throw error;
    })) as [string];
    if (answer === "ready") return worker;
    await worker.terminate();
    return answer;
  }
}
