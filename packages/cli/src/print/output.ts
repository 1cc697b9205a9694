/** What a headless run prints: the last answer, one JSON object, or one line per event.
 *  Invariant: standard output holds only the requested output; everything else goes to standard error.
 *  Elsewhere: the events (RuntimeEvent of @prefork/runtime), running it (../commands/print.ts). */

import type { ExchangeEnd, ExchangeResult, RuntimeEvent } from "@prefork/runtime";
import { modelFacts, promptTokens, writtenTokens } from "@prefork/wire";
import type { Io } from "../io.ts";
import { jsonLine } from "../lines.ts";
import { visible } from "../visible.ts";
import { type Warning, type WarningSummary, Warnings } from "./warnings.ts";

export type OutputFormat = "text" | "json" | "events" | "stream-json";
export const OUTPUT_FORMATS: readonly OutputFormat[] = ["text", "json", "events", "stream-json"];

/** Printed only on standard error, so programs that read the lines see no difference. */
export const STREAM_JSON_NOTICE =
  "stream-json will change to the format of other agents; for these lines use --output-format events";

/** 0 done, 1 failed, 3 stopped by a limit, 4 refused by the model, 130 interrupted; 2 is for usage errors. */
export const exitCodeOf = (end: ExchangeEnd): number => {
  switch (end) {
    case "done":
      return 0;
    case "max-turns":
    case "over-budget":
    case "out-of-time":
    case "context-full":
      return 3;
    case "refused":
      return 4;
    case "aborted":
      return 130;
    case "provider-failed":
    case "journal-failed":
      return 1;
  }
};

/** Done but incomplete: every fork failed, the journal is damaged, or a merge left conflicts in files. */
export const INCOMPLETE = 5;

export type FinishedRun = {
  readonly sessionId: string;
  readonly model: string;
  readonly engine: string;
  readonly result: ExchangeResult;
  readonly ms: number;
};

/** The last line of `events`, and the only one of `json`. */
export const resultObject = (
  { sessionId, model, engine, result, ms }: FinishedRun,
  { code, warnings }: { readonly code: number; readonly warnings: readonly Warning[] },
): Readonly<Record<string, unknown>> => {
  const { end, reason, text, turns, usage, usd } = result;
  return {
    type: "result",
    end,
    is_error: code !== 0,
    reason,
    result: text,
    session_id: sessionId,
    engine,
    model,
    num_turns: turns,
    duration_ms: ms,
    // Without a known price this is null rather than a guess.
    total_cost_usd: modelFacts(model) ? usd : null,
    usage: {
      prompt_tokens: promptTokens(usage),
      input_tokens: usage.plain,
      cache_read_input_tokens: usage.read,
      cache_creation_input_tokens: writtenTokens(usage),
      output_tokens: usage.output,
      // Our own estimate: the provider did not report them.
      ...(usage.estimated === undefined ? {} : { estimated_tokens: usage.estimated }),
    },
    exit_code: code,
    warnings,
  };
};

export type Printer = {
  /** Printed before anything happens, on standard error in every format. */
  readonly notice: (words: string) => void;
  readonly event: (event: RuntimeEvent) => void;
  /** Returns the exit code. */
  readonly finished: (finished: FinishedRun) => number;
};

export const createPrinter = (format: OutputFormat, io: Io): Printer => {
  const warnings = new Warnings();
  const line = (value: object): void => io.out(jsonLine(value));
  const codeFor = ({ result }: FinishedRun, { isIncomplete }: WarningSummary): number => {
    const code = result.end === "aborted" && io.interruptedCode ? io.interruptedCode() : exitCodeOf(result.end);
    return code === 0 && isIncomplete ? INCOMPLETE : code;
  };
  const notice = (words: string): void => {
    warnings.notice(words);
    printNotice(words, io);
  };
  if (format === "text")
    return {
      notice,
      event: (event) => printProgress(event, warnings.event(event), io),
      finished: (finished) => {
        const { result, sessionId } = finished;
        const answer = visible(result.text);
        if (answer !== "") io.out(answer.endsWith("\n") ? answer : `${answer}\n`);
        const summary = warnings.finish();
        if (summary.last) printNotice(summary.last.message, io);
        if (result.end !== "done") printNotice(`stopped: ${result.reason} (to resume: --resume ${sessionId})`, io);
        return codeFor(finished, summary);
      },
    };
  return {
    notice,
    event: (event) => {
      warnings.event(event);
      if (format !== "json") line(event);
    },
    finished: (finished) => {
      const summary = warnings.finish();
      const code = codeFor(finished, summary);
      line(resultObject(finished, { code, warnings: summary.all }));
      return code;
    },
  };
};

/** Progress for the person who waits: what is running, and what was denied. */
const printProgress = (event: RuntimeEvent, warning: Warning | undefined, io: Io): void => {
  if (warning) {
    printNotice(warning.message, io);
    return;
  }
  switch (event.type) {
    case "call_started":
      if (io.isTerminal) io.err(`· ${event.tool}\n`);
      return;
    case "fork_started":
      if (io.isTerminal) io.err(`· fork: ${visible(firstLine(event.label))}\n`);
      return;
    case "worktree_created":
      if (io.isTerminal) io.err(`· worktree: ${visible(event.path)}\n`);
      return;
    case "worktree_finished":
      // Otherwise the user would look for the work in the checkout.
      if (event.files > 0)
        printNotice(`${event.taskId} changed ${files(event.files)} in its worktree (prefork merge)`, io);
      return;
    case "worktree_merged":
      printNotice(`${event.taskId}: ${mergeText(event)}`, io);
      return;
    case "compaction_started":
      io.err("prefork: the conversation is long; summarizing it to make room\n");
      return;
    default:
      return;
  }
};

const files = (count: number): string => `${count} ${count === 1 ? "file" : "files"}`;

const mergeText = ({ outcome, files: count }: Extract<RuntimeEvent, { type: "worktree_merged" }>): string =>
  outcome === "nothing-new"
    ? "this checkout already had all of its work"
    : `merged into this checkout, ${files(count)} (to undo: prefork merge --undo)`;

const printNotice = (text: string, io: Io): void => io.err(`prefork: ${visible(text)}\n`);

const firstLine = (text: string): string => text.split("\n", 1)[0] ?? "";
