/** One exchange: turns from a prompt until the model is done or a limit is reached.
 *  Whatever ends it, the context is well formed and every call in it has a result. The journal and the event give the
 *  same reason for the end.
 *  Elsewhere: one request (turn.ts), one tool batch (dispatch.ts), money and tokens (account.ts). */

import { estimatedPart, type ModelResponse, noUsage, text, type Usage } from "@prefork/wire";
import type { ExchangeEnd } from "../events.ts";
import { JournalError } from "../journal/index.ts";
import type { Shortage, Spent } from "../ports.ts";
import type { AcceptedAnswer } from "./answer.ts";
import { type Batch, type Dispatch, runBatch } from "./dispatch.ts";
import type { AgentParts, StartedFamily, TailNotes } from "./options.ts";
import { runTurn, type TurnResult } from "./turn.ts";

/** An agent's parts, with what its turns need besides. */
export type AgentRun = AgentParts & {
  readonly dispatch: Dispatch;
  readonly limits: TurnLimits;
  /** Notes about what happened since the last turn, for the tail. */
  readonly tail: () => TailNotes;
  /** Notes go inside the last result, because new user text would drop the thinking before it. */
  readonly insideLastResult: boolean;
  /** Makes room before a turn if little is left, or after a request did not fit. False: there is nothing to gain. */
  readonly makeRoom: (why: "threshold" | "context-full", signal: AbortSignal) => Promise<boolean>;
};

export type ExchangeResult = {
  readonly end: ExchangeEnd;
  readonly reason: string;
  /** The last answer's text. */
  readonly text: string;
  readonly turns: number;
  readonly usage: Usage;
  readonly usd: number;
};

/** How often an answer that was cut at its length limit is continued. */
const CONTINUATIONS = 3;
/** How many answers in a row may end without progress: paused, cut off, or with calls that cannot run. Otherwise a provider
 *  that keeps answering like this would be paid for ever. */
export const FRUITLESS_ANSWERS = 20;
export const CUT_AGAIN: ExchangeStop = { end: "done", reason: "the answer reached its length limit again and again" };
const INTERRUPTED: ExchangeStop = { end: "aborted", reason: "interrupted" };
const CONTINUE = "Your answer was cut at its length limit. Go on exactly where it stopped.";

type Progress = {
  turns: number;
  text: string;
  /** Answers in a row that were cut off. */
  cut: number;
  /** The next answer continues in the middle of the last one's text. */
  continuesText: boolean;
  /** Has room been made since the last answer that fitted? */
  madeRoom: boolean;
  /** Answers in a row that ran no call and did not end the exchange. */
  fruitless: number;
};

/** The prompt has been entered. */
export const runExchange = async (run: AgentRun, signal: AbortSignal): Promise<ExchangeResult> => {
  const before = run.account.spent;
  const progress: Progress = { turns: 0, text: "", cut: 0, continuesText: false, madeRoom: false, fruitless: 0 };
  const stop = await untilStop(run, progress, signal).catch(journalFailed);
  return { ...stop, text: progress.text, turns: progress.turns, ...spentSince(before, run.account.spent) };
};

/** A journal that cannot be written ends the exchange, because what cannot be recorded must not happen. */
const journalFailed = (error: unknown): ExchangeStop => {
  if (!(error instanceof JournalError)) throw error;
  return { end: "journal-failed", reason: error.message };
};

const untilStop = async (run: AgentRun, progress: Progress, signal: AbortSignal): Promise<ExchangeStop> => {
  for (;;) {
    const stopNow = (): ExchangeStop | undefined =>
      stopBeforeTurn(run.limits, { turns: progress.turns, now: run.options.clock.now(), aborted: signal.aborted });
    const before = stopNow();
    if (before) return before;
    await run.makeRoom("threshold", signal);
    const stop = stopNow(); // making room takes its time
    if (stop) return stop;
    const result = await runTurn(run, signal);
    if (result.kind !== "over-budget") progress.turns += 1;
    const ended =
      result.kind === "answered"
        ? await follow(run, { result, progress }, signal)
        : await recover(run, { result, progress }, signal);
    if (ended) return ended;
    const fruitless = fruitlessStop(progress, result);
    if (fruitless) return fruitless;
  }
};

/** Only a call that ran, or could have run, counts as progress. */
const fruitlessStop = (progress: Progress, result: TurnResult): ExchangeStop | undefined => {
  const { calls, refused } = result.kind === "answered" ? result.answer : { calls: [], refused: [] };
  progress.fruitless = calls.length > refused.length ? 0 : progress.fruitless + 1;
  if (progress.fruitless < FRUITLESS_ANSWERS) return undefined;
  const last = result.kind === "answered" ? result.response.stop : result.kind;
  return {
    end: "provider-failed",
    reason: `${FRUITLESS_ANSWERS} answers in a row neither called a tool nor finished (the last: ${last}); no further request was sent`,
  };
};

type Unanswered = Exclude<TurnResult, { readonly kind: "answered" }>;

const recover = async (
  run: AgentRun,
  { result, progress }: { readonly result: Unanswered; readonly progress: Progress },
  signal: AbortSignal,
): Promise<ExchangeStop | undefined> => {
  switch (result.kind) {
    case "over-budget":
      return { end: "over-budget", reason: describeShortage(result.shortage) };
    case "aborted":
      return INTERRUPTED;
    case "failed":
      return { end: "provider-failed", reason: result.message };
    case "too-long":
      return makeRoomOnce(run, { progress, reason: result.message }, signal);
  }
};

/** Once only: if the prompt is too long right after room was made, making room again will not help. */
const makeRoomOnce = async (
  run: AgentRun,
  { progress, reason }: { readonly progress: Progress; readonly reason: string },
  signal: AbortSignal,
): Promise<ExchangeStop | undefined> => {
  const hasMade = !progress.madeRoom && (await run.makeRoom("context-full", signal));
  progress.madeRoom = true;
  if (hasMade) return undefined;
  return signal.aborted ? INTERRUPTED : { end: "context-full", reason };
};

/** What follows an answer: its calls, its continuation, or the end. */
const follow = async (
  run: AgentRun,
  {
    result,
    progress,
  }: { readonly result: Extract<TurnResult, { readonly kind: "answered" }>; readonly progress: Progress },
  signal: AbortSignal,
): Promise<ExchangeStop | undefined> => {
  const { response, answer } = result;
  if (answer.text !== "") progress.text = progress.continuesText ? progress.text + answer.text : answer.text;
  progress.continuesText = false;
  progress.cut = response.stop === "max-tokens" ? progress.cut + 1 : 0;
  if (response.stop !== "context-full") progress.madeRoom = false;
  if (answer.calls.length > 0) {
    const stopped = await answerCalls(run, answer, signal);
    if (stopped) return { end: "aborted", reason: "stopped by the answer to a question" };
    if (response.stop === "refusal") return refused(response);
    return progress.cut > CONTINUATIONS ? CUT_AGAIN : undefined;
  }
  switch (response.stop) {
    case "max-tokens": {
      if (progress.cut > CONTINUATIONS) return CUT_AGAIN;
      progress.continuesText = true;
      run.line.enter({ role: "user", content: [text(CONTINUE)] }, { source: "continuation" });
      return undefined;
    }
    case "pause":
      return undefined; // the provider continues with its own tools when the next request is sent
    case "refusal":
      return refused(response);
    case "context-full":
      return makeRoomOnce(run, { progress, reason: "the conversation fills the model's window" }, signal);
    case "end":
    case "stop-sequence":
    case "tool-use":
    case "other":
      return { end: "done", reason: response.stopDetail ?? response.stop };
  }
};

const refused = ({ stopDetail }: ModelResponse): ExchangeStop => ({
  end: "refused",
  reason: stopDetail ?? "the model declined to answer",
});

const answerCalls = async (run: AgentRun, answer: AcceptedAnswer, signal: AbortSignal): Promise<boolean> => {
  const known = new Map(answer.refused.map((result) => [result.toolUseId, result]));
  const batch = await runBatch(answer.calls, run.dispatch, { signal, known, enters: true });
  const family = run.family?.();
  if (family) await enterFamily(run, batch, family);
  else enterResults(run, batch, run.tail());
  return batch.stopped;
};

/** What all share enters first, then the children start from there, then the parent continues with its own words. */
const enterFamily = async (run: AgentRun, batch: Batch, family: StartedFamily): Promise<void> => {
  const { line, insideLastResult } = run;
  const { results } = batch;
  const lastResult = insideLastResult ? results.at(-1) : undefined;
  const shared = lastResult ? results.slice(0, -1) : results;
  if (shared.length > 0) line.enterOpen({ role: "user", content: shared });
  // Read before they start: a child that ends at once is reported at the next boundary, like any other.
  const { blocks, also, entered } = run.tail();
  const words = text(await family.launch(line, lastResult));
  const own = lastResult ? [{ ...lastResult, content: [...lastResult.content, words, ...blocks] }] : [words, ...blocks];
  if (shared.length > 0) line.extend(own, { also });
  else line.enter({ role: "user", content: own }, { also });
  batch.entered();
  entered();
};

/** Results, then the notes of the tail. */
const enterResults = (
  { line, insideLastResult }: AgentRun,
  batch: Batch,
  { blocks, also, entered }: TailNotes,
): void => {
  const { results } = batch;
  const last = results.at(-1);
  const inside = insideLastResult && last !== undefined && blocks.length > 0;
  const content = inside
    ? [...results.slice(0, -1), { ...last, content: [...last.content, ...blocks] }]
    : [...results, ...blocks];
  line.enter({ role: "user", content }, { also });
  batch.entered();
  entered();
};

const describeShortage = ({ limit, needed, left }: Shortage): string =>
  limit === "usd"
    ? needed === Number.POSITIVE_INFINITY
      ? "the price of the model is unknown, so a budget in dollars cannot be enforced"
      : left <= 0
        ? `the budget is used up; the next request could cost ${dollars(needed)}`
        : `the next request could cost ${dollars(needed)}, and ${dollars(left)} of the budget is left`
    : left <= 0
      ? `the tokens are used up; the next request could take ${needed}`
      : `the next request could take ${needed} tokens, and ${Math.max(0, left)} are left`;

/** A small amount is never shown as zero. */
const dollars = (usd: number): string => (usd < 0.000_05 ? "less than $0.0001" : `$${usd.toFixed(4)}`);

export const spentSince = (before: Spent, after: Spent): { readonly usage: Usage; readonly usd: number } => ({
  usage: subtract(after.usage, before.usage),
  usd: after.usd - before.usd,
});

const subtract = (a: Usage, b: Usage): Usage => {
  const written = Object.fromEntries(
    Object.entries(a.written).map(([ttl, tokens]) => [ttl, tokens - (b.written[ttl as keyof Usage["written"]] ?? 0)]),
  );
  return {
    ...{ ...noUsage, plain: a.plain - b.plain, read: a.read - b.read, written, output: a.output - b.output },
    ...estimatedPart((a.estimated ?? 0) - (b.estimated ?? 0)),
  };
};

// --- limits: checked before each request, never during one ---------------------------------------------------------------

export type TurnLimits = {
  /** Turns of one exchange. */
  readonly maxTurns?: number;
  /** Milliseconds since 1970 after which no request is sent. */
  readonly deadline?: number;
};

export type ExchangeStop = { readonly end: ExchangeEnd; readonly reason: string };

export const stopBeforeTurn = (
  { maxTurns, deadline }: TurnLimits,
  state: { readonly turns: number; readonly now: number; readonly aborted: boolean },
): ExchangeStop | undefined => {
  if (state.aborted) return { end: "aborted", reason: "interrupted" };
  if (maxTurns !== undefined && state.turns >= maxTurns)
    return { end: "max-turns", reason: `the limit of ${maxTurns} turn${maxTurns === 1 ? "" : "s"} is reached` };
  if (deadline !== undefined && state.now >= deadline)
    return { end: "out-of-time", reason: "the time limit is reached" };
  return undefined;
};
