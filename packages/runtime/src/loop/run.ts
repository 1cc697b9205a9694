/** From a prompt to the stop: turns until the model is done or a limit is reached.
 *  Invariant: whatever ends it, the context is well formed and every call in it is answered; the same reason for the end
 *  stands in the journal and in the event.
 *  Elsewhere: one request (turn.ts), one tool batch (dispatch.ts), limits (stop.ts, account.ts). */

import { noUsage, type TextBlock, type ToolResultBlock, text, type Usage } from "@prefork/wire";
import type { ExchangeEnd } from "../events.ts";
import type { PlainEntry } from "../journal/index.ts";
import type { Shortage, Spent } from "./account.ts";
import type { Answered } from "./answer.ts";
import { type Dispatch, runBatch } from "./dispatch.ts";
import { type Stop, stopBefore, type TurnLimits } from "./stop.ts";
import { runTurn, type TurnAround, type TurnResult } from "./turn.ts";

export type Run = TurnAround & {
  readonly dispatch: Dispatch;
  readonly limits: TurnLimits;
  /** What has come up since the last turn and is told at the tail. */
  readonly tail: () => Tail;
  /** Notes go inside the last result, where new text of the user would cost the thinking before it. */
  readonly insideLastResult: boolean;
  /** Makes room before a turn where there is little left, or because there was none. False: there is nothing to gain. */
  readonly makeRoom: (why: "threshold" | "context-full", signal: AbortSignal) => Promise<boolean>;
};

/** What is told beside results, and what is true once it is. */
export type Tail = { readonly blocks: readonly TextBlock[]; readonly also: readonly PlainEntry[] };

export type ExchangeResult = {
  readonly end: ExchangeEnd;
  readonly reason: string;
  /** The last answer's text. */
  readonly text: string;
  readonly turns: number;
  readonly usage: Usage;
  readonly usd: number;
};

/** How often an answer that reached its length limit is continued. */
const CONTINUATIONS = 3;
const GO_ON = "Your answer was cut at its length limit. Go on exactly where it stopped.";

type Progress = { turns: number; continued: number; text: string; madeRoom: boolean };

/** The prompt has been entered. */
export const runExchange = async (run: Run, signal: AbortSignal): Promise<ExchangeResult> => {
  const before = run.account.spent;
  const progress: Progress = { turns: 0, continued: 0, text: "", madeRoom: false };
  const stop = await untilStop(run, progress, signal);
  return { ...stop, text: progress.text, turns: progress.turns, ...since(before, run.account.spent) };
};

const untilStop = async (run: Run, progress: Progress, signal: AbortSignal): Promise<Stop> => {
  for (;;) {
    const stop = stopBefore(run.limits, { turns: progress.turns, now: run.now(), aborted: signal.aborted });
    if (stop) return stop;
    await run.makeRoom("threshold", signal);
    progress.turns += 1;
    const result = await runTurn(run, signal);
    const ended =
      result.kind === "answered"
        ? await follow(run, { result, progress }, signal)
        : await recover(run, { result, progress }, signal);
    if (ended) return ended;
  }
};

type Unanswered = Exclude<TurnResult, { readonly kind: "answered" }>;

const recover = async (
  run: Run,
  { result, progress }: { readonly result: Unanswered; readonly progress: Progress },
  signal: AbortSignal,
): Promise<Stop | undefined> => {
  switch (result.kind) {
    case "short":
      return { end: "over-budget", reason: describeShortage(result.shortage) };
    case "aborted":
      return { end: "aborted", reason: "interrupted" };
    case "failed":
      return { end: "provider-failed", reason: result.message };
    case "too-long": {
      // Once: if the prompt is too long right after room was made, making more will not help.
      if (!progress.madeRoom && (await run.makeRoom("context-full", signal))) {
        progress.madeRoom = true;
        return undefined;
      }
      return { end: "context-full", reason: result.message };
    }
  }
};

/** What follows an answer: its calls, its continuation, or the end. */
const follow = async (
  run: Run,
  {
    result,
    progress,
  }: { readonly result: Extract<TurnResult, { readonly kind: "answered" }>; readonly progress: Progress },
  signal: AbortSignal,
): Promise<Stop | undefined> => {
  const { response, answer } = result;
  if (answer.text !== "") progress.text = progress.continued > 0 ? progress.text + answer.text : answer.text;
  if (answer.calls.length > 0) {
    progress.continued = 0;
    const stopped = await answerCalls(run, answer, signal);
    return stopped ? { end: "aborted", reason: "stopped by the answer to a question" } : undefined;
  }
  switch (response.stop) {
    case "max-tokens": {
      if (progress.continued >= CONTINUATIONS)
        return { end: "done", reason: "the answer reached its length limit again and again" };
      progress.continued += 1;
      run.line.enter({ role: "user", content: [text(GO_ON)] }, { source: "continuation" });
      return undefined;
    }
    case "pause":
      return undefined; // the provider goes on with its own tools when it is asked again
    case "refusal":
      return { end: "refused", reason: response.stopDetail ?? "the model declined to answer" };
    case "context-full": {
      if (!progress.madeRoom && (await run.makeRoom("context-full", signal))) {
        progress.madeRoom = true;
        return undefined;
      }
      return { end: "context-full", reason: "the conversation fills the model's window" };
    }
    case "end":
    case "stop-sequence":
    case "tool-use":
    case "other":
      return { end: "done", reason: response.stopDetail ?? response.stop };
  }
};

const answerCalls = async (run: Run, answer: Answered, signal: AbortSignal): Promise<boolean> => {
  const known = new Map([...answer.unsound].map(([id, why]) => [id, refusedCall(id, why)]));
  const { results, stopped } = await runBatch(answer.calls, run.dispatch, { signal, known });
  enterResults(run, results, run.tail());
  return stopped;
};

/** Results, then what is told beside them. */
const enterResults = (
  { line, insideLastResult }: Run,
  results: readonly ToolResultBlock[],
  { blocks, also }: Tail,
): void => {
  const last = results.at(-1);
  const inside = insideLastResult && last !== undefined && blocks.length > 0;
  const content = inside
    ? [...results.slice(0, -1), { ...last, content: [...last.content, ...blocks] }]
    : [...results, ...blocks];
  line.enter({ role: "user", content }, { also });
};

const refusedCall = (toolUseId: string, why: string): ToolResultBlock => ({
  type: "tool_result",
  toolUseId,
  content: [text(why)],
  isError: true,
});

const describeShortage = ({ limit, needed, left }: Shortage): string =>
  limit === "usd"
    ? `the next request could cost $${needed.toFixed(4)}, and $${Math.max(0, left).toFixed(4)} of the budget are left`
    : `the next request could take ${needed} tokens, and ${Math.max(0, left)} are left`;

const since = (before: Spent, after: Spent): { readonly usage: Usage; readonly usd: number } => ({
  usage: subtract(after.usage, before.usage),
  usd: after.usd - before.usd,
});

const subtract = (a: Usage, b: Usage): Usage => {
  const written = Object.fromEntries(
    Object.entries(a.written).map(([ttl, tokens]) => [ttl, tokens - (b.written[ttl as keyof Usage["written"]] ?? 0)]),
  );
  return { ...noUsage, plain: a.plain - b.plain, read: a.read - b.read, written, output: a.output - b.output };
};
