/** One tool batch: every call of a complete message gets one result.
 *  Results are in the order of the calls. Calls that only read run in parallel, all others run alone and in order. A
 *  call that may have an effect has a journal entry before it and one after it, and an observer that sees its end in an event
 *  finds it in the journal. After an abort every call still gets a result, so that the next request is valid.
 *  Elsewhere: may a call run (@prefork/guard), running its tool (run-tool.ts), the tools (../tools), the loop that
 *  asks for the batch (run.ts). */

import { type CommandPlan, type Decision, decide, type GuardContext, type ToolCall } from "@prefork/guard";
import { nextTurn } from "@prefork/guard/internal";
import type { JsonObject, RawJson, ToolResultBlock, ToolUseBlock } from "@prefork/wire";
import type { CallFault, EventBody } from "../events.ts";
import type { Answer, Question } from "../ports.ts";
import { type Registry, type Tool, type ToolContext, type ToolOutput, touchesOf } from "../tools/index.ts";
import type { Content, HookVerdict, SlowCallPolicy, WorkBounds } from "./options.ts";
import { checkOutput, toContent, waitUntilAborted } from "./run-tool.ts";

export type CallRecord = {
  readonly started: (callId: string, name: string, readOnly: boolean) => void;
  readonly ended: (callId: string, result: ToolResultBlock, ms: number) => void;
  /** A read-only call has a result. The message that contains it is its record. */
  readonly read: (result: ToolResultBlock) => void;
};

export type Dispatch = {
  readonly registry: Registry;
  /** Evaluated for each call, because mode and rules may have changed. */
  readonly guard: () => GuardContext;
  readonly ask: (question: Omit<Question, "id" | "agent">, signal: AbortSignal) => Promise<Answer>;
  /** The answer "always": the rule applies from now on. */
  readonly allowAlways: (rule: string) => Promise<void>;
  readonly contextOf: (call: ApprovedCall, signal: AbortSignal) => Promise<ToolContext>;
  /** What enters the conversation in place of a result that is too long. */
  readonly shorten: (callId: string, tool: string, content: Content) => Promise<Content>;
  /** The same for all results of one batch together. */
  readonly shortenBatch: (
    results: readonly ToolResultBlock[],
    toolOf: (callId: string) => string,
  ) => Promise<readonly ToolResultBlock[]>;
  readonly record: CallRecord;
  readonly emit: (event: EventBody) => void;
  readonly now: () => number;
  /** How long we wait for a tool after an abort. */
  readonly graceMs?: number; // default: 5,000
  /** Where it may work, if that is less than the guard allows. */
  readonly bounds?: WorkBounds | undefined;
  readonly hooks?: CallHooks;
  /** Resolves when a call that may change something may start. */
  readonly beforeEffect?: (() => Promise<void>) | undefined;
  /** Present if a batch must not wait for its slow calls. */
  readonly slowCalls?: ((calls: readonly ToolUseBlock[]) => SlowCallPolicy | undefined) | undefined;
};

/** What extensions decide before a call runs, and add after it ran. */
export type CallHooks = {
  readonly before: (callId: string, call: ToolCall, signal: AbortSignal) => Promise<HookVerdict>;
  /** Returns notes for the result. */
  readonly after: (callId: string, call: RanCall, signal: AbortSignal) => Promise<readonly string[]>;
};

export type RanCall = ToolCall & { readonly text: string; readonly fault?: CallFault; readonly ms: number };

export type ApprovedCall = {
  readonly callId: string;
  /** A read-only command as it was parsed. The plan runs instead of the text. */
  readonly plan?: CommandPlan;
  /** A person approved exactly this call. */
  readonly approved: boolean;
  readonly startsPrograms: boolean;
};

export type Batch = {
  readonly results: readonly ToolResultBlock[];
  /** Somebody answered a question with "no, and stop". */
  readonly stopped: boolean;
  /** Emits events that were postponed until the results are in the context. */
  readonly entered: () => void;
};

/** What is known of a call before it runs. */
type Ready = {
  readonly call: ToolUseBlock;
  readonly tool: Tool;
  readonly input: unknown;
  readonly readOnly: boolean;
  readonly plan?: CommandPlan;
  readonly approved: boolean;
  readonly reason: string;
  readonly judged: ToolCall;
  /** Part of its result. */
  readonly notes: readonly string[];
};

type BatchOptions = {
  readonly signal: AbortSignal;
  /** Results that an earlier run of the session has recorded; those calls are not run again. */
  readonly known?: ReadonlyMap<string, ToolResultBlock>;
  /** The caller enters the results at once and then calls `entered`. So a single read-only call needs no journal entry
   *  in addition to its message. */
  readonly enters?: boolean; // default: false
};

export const runBatch = async (
  calls: readonly ToolUseBlock[],
  dispatch: Dispatch,
  { signal, known = new Map(), enters = false }: BatchOptions,
): Promise<Batch> => {
  const answers: Promise<ToolResultBlock>[] = [];
  const policy = dispatch.slowCalls?.(calls);
  const patience = policy && { policy, leftMs: policy.ms };
  const later: Later | undefined = enters && calls.length === 1 && !patience ? { emitEnded: () => {} } : undefined;
  try {
    const stopped = await answerEach(calls, dispatch, { signal, known, answers, patience, later });
    const names = new Map(calls.map(({ id, name }) => [id, name]));
    const results = await dispatch.shortenBatch(await Promise.all(answers), (callId) => names.get(callId) ?? "");
    return { results, stopped, entered: () => later?.emitEnded() };
  } catch (error) {
    // Calls that run in parallel with the failed one are not abandoned.
    await Promise.allSettled(answers);
    throw error;
  }
};

const NOT_BEGUN = { fault: "aborted", text: "Not run: the user interrupted before it began." } as const;

type Answering = {
  readonly signal: AbortSignal;
  readonly known: ReadonlyMap<string, ToolResultBlock>;
  readonly answers: Promise<ToolResultBlock>[];
  readonly patience: Patience | undefined;
  readonly later: Later | undefined;
};

/** Emits the end of a call once its result is in the context. */
type Later = { emitEnded: () => void };

/** How long slow calls may take. Calls that run one after another share the time; each gets at least a little. */
type Patience = { readonly policy: SlowCallPolicy; leftMs: number };
const LEAST_PATIENCE_MS = 500;

/** True if somebody asked to stop. */
const answerEach = async (
  calls: readonly ToolUseBlock[],
  dispatch: Dispatch,
  { signal, known, answers, patience, later }: Answering,
): Promise<boolean> => {
  let stopped = false;
  /** Answers before this index have arrived. */
  let settled = 0;
  const settle = async (): Promise<void> => {
    await Promise.all(answers.slice(settled));
    settled = answers.length;
  };
  const pause = pauser();
  for (const call of calls) {
    await pause();
    const before = known.get(call.id);
    if (before) {
      answers.push(Promise.resolve(before));
      continue;
    }
    if (signal.aborted || stopped) {
      answers.push(refuse(call, dispatch, NOT_BEGUN));
      continue;
    }
    const ready = await prepareCall(call, dispatch, { signal, settle });
    if ("refused" in ready) {
      stopped ||= ready.stop === true;
      answers.push(ready.refused);
    } else if (ready.readOnly) answers.push(runCall(ready, dispatch, { signal, patience, later }));
    else {
      await settle();
      const startedAt = dispatch.now();
      const answer = signal.aborted
        ? refuse(call, dispatch, NOT_BEGUN)
        : runCall(ready, dispatch, { signal, patience });
      answers.push(answer);
      await settle();
      if (patience) patience.leftMs = Math.max(LEAST_PATIENCE_MS, patience.leftMs - (dispatch.now() - startedAt));
    }
  }
  return stopped;
};

const MAX_BLOCKED_MICROSECONDS = 50_000;

/** Judging a call may take a second of computing, and a message may have hundreds of calls. In between, aborts, timers
 *  and other agents get a turn. Computing time is what counts, so that a busy machine keeps the order of events. */
const pauser = (): (() => Promise<void>) => {
  let start = process.cpuUsage();
  return async () => {
    const { user, system } = process.cpuUsage(start);
    if (user + system < MAX_BLOCKED_MICROSECONDS) return;
    await nextTurn();
    start = process.cpuUsage();
  };
};

type Refused = { readonly refused: Promise<ToolResultBlock>; readonly stop?: boolean };

const prepareCall = async (
  call: ToolUseBlock,
  dispatch: Dispatch,
  { signal, settle }: { readonly signal: AbortSignal; readonly settle: () => Promise<unknown> },
): Promise<Ready | Refused> => {
  const no = (fault: CallFault, text: string, args: JsonObject = {}): Refused => {
    dispatch.emit({ type: "call_proposed", callId: call.id, tool: call.name, args });
    return { refused: refuse(call, dispatch, { fault, text }) };
  };
  const tool = dispatch.registry.find(call.name);
  if (!tool) return no("unknown-tool", `There is no tool ${call.name}. ${dispatch.registry.advice(call.name)}`);
  const flat = dispatch.registry.unwrap(tool, call.input);
  const proposed = judgeInput({ call, tool, dispatch }, flat);
  if (!proposed.ok) return no("bad-input", `${call.name}: ${proposed.reason}`);
  dispatch.emit({ type: "call_proposed", callId: call.id, ...proposed.judged });
  const { decision, input, judged, notes } = await afterHooks({ call, tool, dispatch }, proposed, signal);
  // A person is asked about the state after all earlier calls, so these finish first.
  if (decision.kind === "ask") await settle();
  const settled = decision.kind === "ask" ? await askAbout(call, { judged, decision, dispatch }, signal) : decision;
  if (settled.kind === "deny") {
    const text = `Not allowed: ${settled.reason}`;
    const refused = refuse(call, dispatch, { fault: signal.aborted ? "aborted" : "denied", text });
    return { refused, ...("stop" in settled && settled.stop ? { stop: true } : {}) };
  }
  const { plan } = decision;
  const readOnly = tool.readOnly || plan !== undefined;
  const ready = { call, tool, input, judged, readOnly, notes, approved: decision.kind === "ask" };
  return { ...ready, reason: settled.reason, ...(plan ? { plan } : {}) };
};

type Proposing = { readonly call: ToolUseBlock; readonly tool: Tool; readonly dispatch: Dispatch };

type Judged = {
  readonly ok: true;
  readonly judged: ToolCall;
  readonly input: unknown;
  readonly decision: HookedDecision;
  readonly notes: readonly string[];
};

/** A call that a hook asks about may still run as a plan. */
type HookedDecision = Decision & { readonly plan?: CommandPlan };

/** What would the call do, and may it? */
const judgeInput = (
  { call, tool, dispatch }: Proposing,
  rawInput: RawJson,
): Judged | { readonly ok: false; readonly reason: string } => {
  const moved = dispatch.bounds?.relocate?.({ ...call, input: rawInput });
  const checked = dispatch.registry.check(tool, moved?.input ?? rawInput);
  if (!checked.ok) return checked;
  const { input, args } = checked;
  const touches = touchesOf(tool, input);
  const judged: ToolCall = { tool: call.name, args, ...(touches ? { touches } : {}) };
  const decision = decide(judged, dispatch.guard());
  return { ok: true, judged, input, decision, notes: moved === undefined ? [] : [moved.note] };
};

/** Extensions may deny the call, ask a person, or change what is executed. A changed call is judged like any other, and the
 *  result says what ran. */
const afterHooks = async (proposing: Proposing, proposed: Judged, signal: AbortSignal): Promise<Judged> => {
  const { call, dispatch } = proposing;
  if (!dispatch.hooks || proposed.decision.kind === "deny") return proposed;
  const verdict = await dispatch.hooks.before(call.id, proposed.judged, signal);
  if (verdict.kind === "deny") return { ...proposed, decision: { kind: "deny", reason: verdict.reason } };
  const { changed } = verdict;
  const now = changed ? judgeInput(proposing, JSON.stringify(changed.args)) : proposed;
  if (!now.ok) {
    const reason = `${changed?.by} changed its arguments into some that ${call.name} does not take: ${now.reason}`;
    return { ...proposed, decision: { kind: "deny", reason } };
  }
  const decision = withHookQuestions(now.decision, verdict.asks, dispatch.guard());
  if (!changed) return { ...now, decision };
  dispatch.emit({ type: "call_changed", callId: call.id, ...now.judged, extension: changed.by });
  const note = `[${changed.by} changed this call; it ran with ${JSON.stringify(now.judged.args)}]`;
  return { ...now, decision, notes: [note, ...now.notes] };
};

const withHookQuestions = (
  decision: HookedDecision,
  asks: readonly string[],
  { asks: who }: GuardContext,
): HookedDecision => {
  if (asks.length === 0 || decision.kind === "deny") return decision;
  const reasons = [...(decision.kind === "ask" ? [decision.reason] : []), ...asks].join("; ");
  if (who === "nobody") return { kind: "deny", reason: `${reasons}; there is nobody to ask` };
  const { plan } = decision;
  const notes = decision.kind === "ask" ? decision.notes : [];
  return { kind: "ask", reason: reasons, notes, ...(plan ? { plan } : {}) };
};

type Settled =
  | Extract<Decision, { kind: "allow" }>
  | { readonly kind: "deny"; readonly reason: string; readonly stop?: boolean };

type Asking = {
  readonly judged: ToolCall;
  readonly decision: Extract<Decision, { kind: "ask" }>;
  readonly dispatch: Dispatch;
};

const askAbout = async (call: ToolUseBlock, asking: Asking, signal: AbortSignal): Promise<Settled> => {
  const { judged, decision, dispatch } = asking;
  const { reason, rule, notes } = decision;
  const offered = rule === undefined ? {} : { rule };
  dispatch.emit({ type: "question_asked", callId: call.id, reason, ...offered });
  const answer = await answerOf(dispatch, { ...judged, reason, notes, ...offered }, signal);
  dispatch.emit({ type: "question_answered", callId: call.id, answer: answer.kind });
  switch (answer.kind) {
    case "allow":
      return { kind: "allow", reason: answer.reason ?? "allowed by the user" };
    case "always":
      return { kind: "allow", reason: `allowed by the user, with ${answer.rule} from now on` };
    case "deny":
      return { kind: "deny", reason: answer.reason ?? "the user said no", ...(answer.stop ? { stop: true } : {}) };
  }
};

/** The person or program that answers may miss an abort or fail. Neither may delay the batch. */
const answerOf = async (
  { ask, allowAlways }: Dispatch,
  question: Omit<Question, "id" | "agent">,
  signal: AbortSignal,
): Promise<Answer> => {
  try {
    const ifAborted: Answer = { kind: "deny", reason: UNANSWERED };
    const answer = await waitUntilAborted(ask(question, signal), { signal, graceMs: 0, ifGivenUp: ifAborted });
    if (answer.kind === "always") await allowAlways(answer.rule);
    return answer;
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return { kind: "deny", reason: signal.aborted ? UNANSWERED : `the question could not be answered: ${reason}` };
  }
};

const UNANSWERED = "the user interrupted before the question was answered";

type Running = Pick<Answering, "signal" | "patience"> & { readonly later?: Later | undefined };

const runCall = async (
  ready: Ready,
  dispatch: Dispatch,
  { signal, patience, later }: Running,
): Promise<ToolResultBlock> => {
  const { call, readOnly, reason, plan } = ready;
  const startedAt = dispatch.now();
  const closed = await dispatch.bounds?.begin?.(ready.judged.touches);
  if (closed !== undefined) return refuse(call, dispatch, { fault: "denied", text: closed });
  dispatch.record.started(call.id, call.name, readOnly);
  const asPlan = plan ? { asPlan: true as const } : {};
  dispatch.emit({ type: "call_started", callId: call.id, tool: call.name, reason, ...asPlan });
  const output = patience
    ? await orMoved(ready, dispatch, { patience, signal })
    : await resultOf(ready, dispatch, signal);
  const ended = { ...output, ms: dispatch.now() - startedAt };
  if (!later) return enter(call, dispatch, ended);
  const result = resultWith(call, ended);
  dispatch.record.read(result);
  later.emitEnded = () => emitEnded(call, dispatch, ended);
  return result;
};

type CallResult = { readonly content: Content; readonly fault?: CallFault };

const resultOf = async (ready: Ready, dispatch: Dispatch, signal: AbortSignal): Promise<CallResult> => {
  const { call, tool, judged, notes } = ready;
  const startedAt = dispatch.now();
  const output = await outputOf(ready, dispatch, signal);
  const content = await dispatch.shorten(call.id, tool.name, [...asBlocks(notes), ...toContent(output)]);
  const fault = output.fault ? { fault: output.fault } : {};
  if (!dispatch.hooks) return { content, ...fault };
  const ran = { ...judged, ...fault, text: shownText(content), ms: dispatch.now() - startedAt };
  const added = await dispatch.hooks.after(call.id, ran, signal);
  return { content: [...content, ...asBlocks(added.map((note) => `[${note}]`))], ...fault };
};

const asBlocks = (texts: readonly string[]): Content => texts.map((text) => ({ type: "text", text }));

const shownText = (content: Content): string =>
  content.map((block) => (block.type === "text" ? block.text : "[image]")).join("\n");

type Moving = { readonly patience: Patience; readonly signal: AbortSignal };

/** After an abort we still wait for it: nothing may continue without the user knowing. */
const orMoved = async (ready: Ready, dispatch: Dispatch, { patience, signal }: Moving): Promise<CallResult> => {
  const { policy, leftMs } = patience;
  const { call } = ready;
  const own = new AbortController();
  const running = resultOf(ready, dispatch, AbortSignal.any([signal, own.signal]));
  const over = Promise.withResolvers<"over">();
  const timer = setTimeout(() => over.resolve("over"), leftMs);
  const first = await Promise.race([running, over.promise]).finally(() => clearTimeout(timer));
  if (first !== "over") return first;
  if (signal.aborted) return running;
  return { content: policy.move({ callId: call.id, tool: call.name, result: running, stop: () => own.abort() }) };
};

const outputOf = async (
  { call, tool, input, plan, approved, readOnly }: Ready,
  dispatch: Dispatch,
  signal: AbortSignal,
): Promise<ToolOutput> => {
  try {
    if (!readOnly && dispatch.beforeEffect) {
      await dispatch.beforeEffect();
      signal.throwIfAborted();
    }
    const { startsPrograms = true } = tool;
    const approval = { callId: call.id, approved, startsPrograms, ...(plan ? { plan } : {}) };
    const context = await dispatch.contextOf(approval, signal);
    const { graceMs = 5_000 } = dispatch;
    const running = Promise.resolve(tool.run(input, context));
    return checkOutput(await waitUntilAborted(running, { signal, graceMs, ifGivenUp: HALF_DONE }));
  } catch (error) {
    if (signal.aborted) return HALF_DONE;
    // A defect of one tool must not cost the session.
    return { content: `The tool failed: ${error instanceof Error ? error.message : String(error)}`, fault: "failed" };
  }
};

const HALF_DONE: ToolOutput = {
  content: "Interrupted by the user; what it had begun may be half done.",
  fault: "aborted",
};

type Ended = { readonly content: Content; readonly ms: number; readonly fault?: CallFault };

const enter = (call: ToolUseBlock, dispatch: Dispatch, ended: Ended): ToolResultBlock => {
  const result = resultWith(call, ended);
  dispatch.record.ended(call.id, result, ended.ms);
  emitEnded(call, dispatch, ended);
  return result;
};

const resultWith = ({ id: toolUseId }: ToolUseBlock, { content, fault }: Ended): ToolResultBlock => ({
  type: "tool_result",
  toolUseId,
  content,
  ...(fault === undefined ? {} : { isError: true }),
});

const emitEnded = (call: ToolUseBlock, { emit }: Dispatch, { content, ms, fault }: Ended): void => {
  const text = shownText(content);
  emit({ type: "call_ended", callId: call.id, tool: call.name, text, ms, ...(fault === undefined ? {} : { fault }) });
};

const refuse = async (
  call: ToolUseBlock,
  dispatch: Dispatch,
  { fault, text }: { readonly fault: CallFault; readonly text: string },
): Promise<ToolResultBlock> => enter(call, dispatch, { content: [{ type: "text", text }], ms: 0, fault });
