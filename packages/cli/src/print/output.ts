/** What a headless run prints: the last answer, one JSON object, or every event as a line.
 *  Invariant: standard output holds only what was asked for; everything said beside it goes to the error output.
 *  Elsewhere: what happens (RuntimeEvent of @prefork/runtime), running it (../commands/print.ts). */

import type { ExchangeEnd, ExchangeResult, RuntimeEvent } from "@prefork/runtime";
import { modelFacts, promptTokens, writtenTokens } from "@prefork/wire";
import type { Io } from "../io.ts";
import { jsonLine } from "../lines.ts";
import { visible } from "../visible.ts";
import { type Said, type Warning, Warnings } from "./warnings.ts";

export type OutputFormat = "text" | "json" | "events" | "stream-json";
export const OUTPUT_FORMATS: readonly OutputFormat[] = ["text", "json", "events", "stream-json"];

/** Said on the error output alone, so that what reads the lines sees no difference. */
export const STREAM_JSON_CHANGES =
  "stream-json will become the form that scripts of other agents know; for these lines write --output-format events";

/** 0 done, 1 failed, 3 stopped by a limit, 4 refused by the model, 130 interrupted; 2 is for being called wrongly. */
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

/** Done, but not whole: every fork failed, the journal is damaged, or a merge left conflicts in files. */
export const INCOMPLETE = 5;

export type Finished = {
  readonly sessionId: string;
  readonly model: string;
  readonly engine: string;
  readonly result: ExchangeResult;
  readonly ms: number;
};

/** The last line of events, and all of json. */
export const resultObject = (
  { sessionId, model, engine, result, ms }: Finished,
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
    // Where the price is not known, nothing is better than a guess that looks like one.
    total_cost_usd: modelFacts(model) ? usd : null,
    usage: {
      prompt_tokens: promptTokens(usage),
      input_tokens: usage.plain,
      cache_read_input_tokens: usage.read,
      cache_creation_input_tokens: writtenTokens(usage),
      output_tokens: usage.output,
      // Counted by us: the provider did not report them.
      ...(usage.estimated === undefined ? {} : { estimated_tokens: usage.estimated }),
    },
    exit_code: code,
    warnings,
  };
};

export type Printer = {
  /** Said before anything happens; on the error output in every format. */
  readonly notice: (words: string) => void;
  readonly event: (event: RuntimeEvent) => void;
  /** Gives the exit code. */
  readonly finished: (finished: Finished) => number;
};

export const createPrinter = (format: OutputFormat, io: Io): Printer => {
  const warnings = new Warnings();
  const line = (value: object): void => io.out(jsonLine(value));
  const codeFor = ({ result }: Finished, { isIncomplete }: Said): number => {
    const code = result.end === "aborted" && io.interruptedCode ? io.interruptedCode() : exitCodeOf(result.end);
    return code === 0 && isIncomplete ? INCOMPLETE : code;
  };
  const notice = (words: string): void => {
    warnings.notice(words);
    tell(words, io);
  };
  if (format === "text")
    return {
      notice,
      event: (event) => tellAside(event, warnings.event(event), io),
      finished: (finished) => {
        const { result, sessionId } = finished;
        const answer = visible(result.text);
        if (answer !== "") io.out(answer.endsWith("\n") ? answer : `${answer}\n`);
        const said = warnings.finish();
        if (said.last) tell(said.last.message, io);
        if (result.end !== "done") tell(`stopped: ${result.reason} (--resume ${sessionId} goes on)`, io);
        return codeFor(finished, said);
      },
    };
  return {
    notice,
    event: (event) => {
      warnings.event(event);
      if (format !== "json") line(event);
    },
    finished: (finished) => {
      const said = warnings.finish();
      const code = codeFor(finished, said);
      line(resultObject(finished, { code, warnings: said.all }));
      return code;
    },
  };
};

/** What somebody who waits wants to know: what is being done, and what was not allowed. */
const tellAside = (event: RuntimeEvent, warning: Warning | undefined, io: Io): void => {
  if (warning) {
    tell(warning.message, io);
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
      // Work that nobody is told of would be looked for in the checkout.
      if (event.files > 0) tell(`${event.taskId} changed ${files(event.files)} in its worktree (prefork merge)`, io);
      return;
    case "worktree_merged":
      tell(`${event.taskId}: ${mergedWords(event)}`, io);
      return;
    case "compaction_started":
      io.err("prefork: the conversation is long; summing it up to make room\n");
      return;
    default:
      return;
  }
};

const files = (count: number): string => `${count} ${count === 1 ? "file" : "files"}`;

const mergedWords = ({ outcome, files: count }: Extract<RuntimeEvent, { type: "worktree_merged" }>): string =>
  outcome === "nothing-new"
    ? "all of its work stood in this checkout already"
    : `merged into this checkout, ${files(count)} (prefork merge --undo takes it back)`;

const tell = (words: string, io: Io): void => io.err(`prefork: ${visible(words)}\n`);

const firstLine = (text: string): string => text.split("\n", 1)[0] ?? "";
