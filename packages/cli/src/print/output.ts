/** What a headless run prints: the last answer, one JSON object, or every event as a line.
 *  Invariant: standard output holds only what was asked for; everything said beside it goes to the error output.
 *  Elsewhere: what happens (RuntimeEvent of @prefork/runtime), running it (../commands/print.ts). */

import type { ExchangeEnd, ExchangeResult, RuntimeEvent } from "@prefork/runtime";
import { modelFacts, promptTokens, writtenTokens } from "@prefork/wire";
import type { Io } from "../io.ts";
import { jsonLine } from "../lines.ts";
import { visible } from "../visible.ts";

export type OutputFormat = "text" | "json" | "stream-json";
export const OUTPUT_FORMATS: readonly OutputFormat[] = ["text", "json", "stream-json"];

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

export type Finished = {
  readonly sessionId: string;
  readonly model: string;
  readonly engine: string;
  readonly result: ExchangeResult;
  readonly ms: number;
};

/** The last line of stream-json, and all of json. */
export const resultObject = ({ sessionId, model, engine, result, ms }: Finished): Readonly<Record<string, unknown>> => {
  const { end, reason, text, turns, usage, usd } = result;
  return {
    type: "result",
    end,
    is_error: exitCodeOf(end) !== 0,
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
    },
  };
};

export type Printer = {
  readonly event: (event: RuntimeEvent) => void;
  readonly finished: (finished: Finished) => void;
};

export const createPrinter = (format: OutputFormat, io: Io): Printer => {
  const line = (value: object): void => io.out(jsonLine(value));
  switch (format) {
    case "stream-json":
      return { event: line, finished: (finished) => line(resultObject(finished)) };
    case "json":
      return { event: () => undefined, finished: (finished) => line(resultObject(finished)) };
    case "text":
      return {
        event: (event) => tellAside(event, io),
        finished: ({ result, sessionId }) => {
          const answer = visible(result.text);
          if (answer !== "") io.out(answer.endsWith("\n") ? answer : `${answer}\n`);
          if (result.end !== "done") tell(`stopped: ${result.reason} (--resume ${sessionId} goes on)`, io);
        },
      };
  }
};

/** What somebody who waits wants to know: what is being done, and what was not allowed. */
const tellAside = (event: RuntimeEvent, io: Io): void => {
  switch (event.type) {
    case "call_started":
      if (io.isTerminal) io.err(`· ${event.tool}\n`);
      return;
    case "call_ended":
      if (event.fault === "denied") tell(`${event.tool}: ${firstLine(event.text)}`, io);
      return;
    case "request_retried":
      tell(`trying again (${event.attempt}): ${event.message}`, io);
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
      tell(`${event.taskId}: ${mergeWords(event)}`, io);
      return;
    case "worktree_repaired":
      tell(`${event.what}: ${event.done}`, io);
      return;
    case "fork_cache_missed":
      if (event.isWarning)
        tell(`a fork read ${event.read} of ${event.expected} tokens that it could have read: ${event.cause}`, io);
      return;
    case "observer_failed":
      tell(`an observer of ${event.taskId} failed: ${event.reason}`, io);
      return;
    case "journal_troubled":
      tell(`journal: ${event.problem}`, io);
      return;
    case "settings_noticed":
      tell(event.notice, io);
      return;
    case "compaction_started":
      io.err("prefork: the conversation is long; summing it up to make room\n");
      return;
    default:
      return;
  }
};

const files = (count: number): string => `${count} ${count === 1 ? "file" : "files"}`;

const mergeWords = ({ outcome, files: count, taskId }: Extract<RuntimeEvent, { type: "worktree_merged" }>): string => {
  if (outcome === "merged") return `merged into this checkout, ${files(count)} (prefork merge --undo takes it back)`;
  if (outcome === "nothing-new") return "all of its work stood in this checkout already";
  const why = outcome === "conflicts" ? "it conflicts" : outcome === "check-failed" ? "the check failed" : "it failed";
  return `not merged: ${why} (prefork merge --preview ${taskId})`;
};

const tell = (words: string, io: Io): void => io.err(`prefork: ${visible(words)}\n`);

const firstLine = (text: string): string => text.split("\n", 1)[0] ?? "";
