/** What a runtime event changes on the screen.
 *  Invariant: pure, and defined for every event in any order: an event of an unknown agent or call changes nothing.
 *  Elsewhere: conversations (conversation.ts), keys (keys.ts), the events themselves (RuntimeEvent of @prefork/runtime). */

import type { RuntimeEvent } from "@prefork/runtime";
import { describeCall } from "./call-line.ts";
import {
  addBlock,
  appendOutput,
  changeCall,
  cutResult,
  dropUnfinishedText,
  endConversation,
  enterText,
  finishTexts,
  growText,
} from "./conversation.ts";
import { info, isShown, noticeOf, warn } from "./notices.ts";
import { safeLine, safeText } from "./safe-text.ts";
import {
  type CacheFigures,
  type Child,
  type Conversation,
  type Effect,
  emptyConversation,
  type FamilyBlock,
  type State,
  type Step,
  stay,
} from "./state.ts";
import { stripRows } from "./strip-rows.ts";

type Of<T extends RuntimeEvent["type"]> = Extract<RuntimeEvent, { readonly type: T }>;

/** The conversations of ended children are kept for the latest ones only. */
const MAX_KEPT_CONVERSATIONS = 200;
/** The query source of children that the model itself started. */
const MODEL_STARTED = "agent:";
const LIFETIME_MS: Readonly<Record<string, number>> = { "5m": 300_000, "1h": 3_600_000 };

export const reduceEvent = (state: State, event: RuntimeEvent): Step => {
  const spoken = changeConversation(state, event);
  switch (event.type) {
    case "session_opened":
      return sendQueued({
        ...withModel(event.resumed ? spoken : greet(spoken, event), safeLine(event.model)),
        isOpening: false,
        session: event.sessionId,
        cwd: safeLine(event.cwd),
        engine: safeLine(event.engine),
        mode: event.mode as State["mode"],
      });
    case "prompt_entered":
      return stay(event.agent === "main" ? { ...spoken, runningSince: event.at, suggestions: [] } : spoken);
    case "turn_started":
      return stay(startTurn(withoutRetry(spoken), event));
    case "turn_ended":
      return endTurn(withoutRetry(spoken), event);
    case "request_retried":
      if (event.agent !== "main") return stay(spoken);
      return stay({
        ...spoken,
        retry: {
          reason: safeLine(event.message, 120),
          ...(event.waitMs === undefined ? {} : { until: event.at + event.waitMs }),
        },
      });
    case "todos_changed":
      return stay(
        event.agent === "main"
          ? { ...spoken, todos: event.todos.map((todo) => ({ ...todo, content: safeLine(todo.content) })) }
          : spoken,
      );
    case "mode_changed":
      return stay({ ...spoken, mode: event.to as State["mode"] });
    case "question_opened":
      return openQuestion(spoken, event);
    case "question_closed":
      return stay(closeQuestion(spoken, event));
    case "family_launched":
      return stay({ ...spoken, families: new Map(spoken.families).set(event.family, event.forks) });
    case "fork_started":
      return stay(startChild(spoken, event));
    case "task_backgrounded":
      return stay(changeChild(spoken, event.taskId, (child) => ({ ...child, isForeground: false, isDetached: true })));
    case "worktree_created":
      return stay(openWorktree(spoken, event));
    case "worktree_finished":
      return stay(
        changeChild(spoken, event.taskId, ({ worktree, ...child }) =>
          worktree
            ? { ...child, worktree: { ...worktree, files: event.files, state: event.isRemoved ? "empty" : "ready" } }
            : child,
        ),
      );
    case "worktree_merged":
      return stay(
        changeChild(spoken, event.taskId, ({ worktree, ...child }) =>
          worktree ? { ...child, worktree: { ...worktree, state: safeLine(event.outcome) } } : child,
        ),
      );
    case "task_ended":
      return endChild(spoken, event);
    case "fork_cache_missed":
      return event.isWarning ? explainMissOnce(spoken, event.taskId, safeLine(event.cause)) : stay(spoken);
    case "rewound":
      return event.restored === "files" ? stay(spoken) : { state: spoken, effects: [{ kind: "showConversation" }] };
    case "exchange_ended":
      return event.agent === "main" ? endExchange(spoken, event) : stay(spoken);
    default:
      return stay(spoken);
  }
};

/** Another model cannot read what this one has cached. */
const withModel = ({ cache, ...state }: State, model: string): State => ({
  ...state,
  model,
  ...(cache === undefined ? {} : { cache: state.model === model ? cache : { read: 0, prompt: cache.prompt } }),
});

/** Says once what this is and where. */
const greet = (state: State, { cwd, model, engine }: Of<"session_opened">): State => {
  const answers = engine === "rehearsal" ? "the rehearsal engine" : safeLine(model);
  return { ...state, main: addBlock(state.main, info(`Prefork in ${safeLine(cwd)}, with ${answers}`)) };
};

/** A prompt that was typed before the session was open. */
const sendQueued = (state: State): Step => {
  const [next, ...queue] = state.queue;
  return next === undefined ? stay(state) : { state: { ...state, queue }, effects: [{ kind: "prompt", text: next }] };
};

// --- conversations -------------------------------------------------------------------------------------------------------

/** The conversation of the agent that the event belongs to. */
const changeConversation = (state: State, event: RuntimeEvent): State => {
  const change = (conversation: Conversation): Conversation => converse(conversation, event);
  if (event.agent === "main") {
    const main = change(state.main);
    return main === state.main ? state : { ...state, main };
  }
  const child = state.children.get(event.agent);
  if (!child) return state;
  const conversation = change(child.conversation);
  const activity = activityOf(event) ?? child.activity;
  const family = event.family ?? child.family;
  if (conversation === child.conversation && activity === child.activity && family === child.family) return state;
  return withChild(state, { ...child, conversation, activity, family });
};

const converse = (conversation: Conversation, event: RuntimeEvent): Conversation => {
  switch (event.type) {
    case "prompt_entered":
      return addBlock(finishTexts(conversation), { kind: "prompt", text: safeText(event.text) });
    case "text_grew":
      return growText(conversation, "answer", safeText(event.text));
    case "thinking_grew":
      return growText(conversation, "thinking", safeText(event.text));
    case "text_entered":
      return enterText(conversation, safeText(event.text));
    case "answer_restarted":
      return dropUnfinishedText(conversation);
    case "turn_ended":
      return finishTexts(conversation);
    case "call_proposed":
      return addBlock(finishTexts(conversation), {
        kind: "call",
        ...{ callId: event.callId, tool: safeLine(event.tool), args: event.args },
        ...{ state: "proposed", output: "", startedAt: event.at },
      });
    case "call_changed":
      return changeCall(conversation, event.callId, (call) => ({ ...call, args: event.args }));
    case "question_asked":
      return changeCall(conversation, event.callId, (call) => ({ ...call, state: "asking" }));
    case "question_answered":
      return changeCall(conversation, event.callId, (call) => ({ ...call, state: "proposed" }));
    case "call_started":
      return changeCall(conversation, event.callId, (call) => ({ ...call, state: "running", startedAt: event.at }));
    case "call_progressed":
      return changeCall(conversation, event.callId, (call) => appendOutput(call, safeText(event.text)));
    case "call_ended":
      return changeCall(conversation, event.callId, (call) => ({
        ...call,
        state: "ended",
        ms: event.ms,
        output: cutResult(safeText(event.text)),
        ...(event.fault === undefined ? {} : { fault: event.fault }),
      }));
    case "exchange_ended":
      return endConversation(conversation);
    default: {
      const notice = noticeOf(event);
      if (notice === undefined || (event.type === "server_lost" && isShown(conversation, notice))) return conversation;
      return addBlock(conversation, notice);
    }
  }
};

const activityOf = (event: RuntimeEvent): string | undefined => {
  switch (event.type) {
    case "call_proposed":
    case "call_changed":
      return describeCall({ tool: safeLine(event.tool), args: event.args });
    case "turn_started":
      return "thinking";
    case "text_grew":
      return "writing";
    case "request_retried":
      return `retrying: ${safeLine(event.message, 120)}`;
    default:
      return undefined;
  }
};

// --- requests and the cache ----------------------------------------------------------------------------------------------

const withoutRetry = ({ retry: _retry, ...state }: State): State => state;

/** A request refreshes the entry that it reads, so its time counts from when it was sent. */
const startTurn = (state: State, event: Of<"turn_started">): State => {
  const ttl = event.markers.at(-1)?.ttl;
  const lifetime = ttl === undefined ? undefined : LIFETIME_MS[ttl];
  const until = lifetime === undefined ? {} : { warmUntil: event.at + lifetime };
  if (event.agent === "main")
    return {
      ...state,
      runningSince: state.runningSince ?? event.at,
      cache: { read: 0, prompt: 0, ...state.cache, ...until },
    };
  return changeChild(state, event.agent, (child) => ({
    ...child,
    turns: event.turn,
    cache: { read: 0, prompt: 0, ...child.cache, ...until },
  }));
};

const endTurn = (state: State, event: Of<"turn_ended">): Step => {
  const { plain, read, written, output } = event.usage;
  const prompt = plain + read + Object.values(written).reduce((sum, tokens) => sum + tokens, 0);
  const usd = event.usd ?? 0;
  const figures = (before: CacheFigures | undefined): CacheFigures => ({ ...before, read, prompt });
  if (event.agent !== "main") {
    const counted = changeChild(spend(state, usd), event.agent, (child) => ({
      ...child,
      turns: event.turn,
      tokens: child.tokens + prompt + output,
      usd: child.usd + usd,
      cache: figures(child.cache),
      first: child.first ?? { read, prompt },
    }));
    return stay(counted);
  }
  const next = { ...spend(state, usd), cache: figures(state.cache) };
  return isMiss(state.cache, next.cache, event.at)
    ? { state: next, effects: [{ kind: "explainMiss", agent: "main" }] }
    : stay(next);
};

const spend = (state: State, usd: number): State => ({
  ...state,
  usd: state.usd + usd,
  ...(state.todayUsd === undefined ? {} : { todayUsd: state.todayUsd + usd }),
});

/** Less than half of the previous prompt was read although its entry had not expired. */
const isMiss = (before: CacheFigures | undefined, now: CacheFigures, at: number): boolean =>
  before !== undefined && before.prompt > 4_000 && (before.warmUntil ?? 0) > at && now.read < before.prompt / 2;

/** Each cause is explained once. */
export const explainMissOnce = (state: State, agent: string, cause: string): Step => {
  if (state.explainedMisses.includes(cause)) return stay(state);
  const text = `Cache miss (${agent === "main" ? "main agent" : agent}): ${cause}. /explain shows what it cost.`;
  return stay({
    ...state,
    explainedMisses: [...state.explainedMisses, cause],
    main: addBlock(state.main, warn(text)),
  });
};

// --- children ------------------------------------------------------------------------------------------------------------

const withChild = (state: State, child: Child): State => ({
  ...state,
  children: new Map(state.children).set(child.id, child),
});

const changeChild = (state: State, id: string, change: (child: Child) => Child): State => {
  const child = state.children.get(id);
  return child ? withChild(state, change(child)) : state;
};

const startChild = (state: State, event: Of<"fork_started">): State => {
  const before = state.children.get(event.taskId);
  const worktree = state.worktrees.get(event.taskId);
  const fresh: Child = {
    id: event.taskId,
    label: safeLine(event.label, 80),
    family: event.family ?? event.taskId,
    parent: event.parent,
    state: "running",
    activity: "starting",
    ...{ turns: 0, tokens: 0, usd: 0, startedAt: event.at },
    ...(event.session === undefined ? {} : { session: event.session }),
    isForeground: event.mode === "sync",
    isDetached: !event.querySource.startsWith(MODEL_STARTED),
    ...(worktree ? { worktree } : {}),
    conversation: emptyConversation,
  };
  if (!before) {
    const worktrees = new Map(state.worktrees);
    worktrees.delete(event.taskId);
    return withChild({ ...state, worktrees }, fresh);
  }
  // Resumed: its figures and its conversation continue.
  const { end: _end, reason: _reason, endedAt: _endedAt, ...kept } = before;
  return withChild(state, { ...kept, state: "running", activity: "starting", isForeground: fresh.isForeground });
};

/** Its worktree is created before the task starts. */
const openWorktree = (state: State, { taskId, path, branch }: Of<"worktree_created">): State => {
  const worktree = { path: safeLine(path), branch: safeLine(branch), state: "open" };
  if (state.children.has(taskId)) return changeChild(state, taskId, (child) => ({ ...child, worktree }));
  return { ...state, worktrees: new Map(state.worktrees).set(taskId, worktree) };
};

const endChild = (state: State, event: Of<"task_ended">): Step => {
  const ended = changeChild(state, event.taskId, ({ isStopped, ...child }) => ({
    ...child,
    state: "ended",
    ...(isStopped && event.end === "aborted"
      ? { end: "stopped by you" }
      : { end: safeLine(event.end), ...(event.reason === undefined ? {} : { reason: safeLine(event.reason) }) }),
    activity: safeLine(event.end),
    turns: Math.max(child.turns, event.turns),
    usd: Math.max(child.usd, event.usd),
    endedAt: event.at,
    conversation: endConversation(child.conversation),
  }));
  const child = ended.children.get(event.taskId);
  if (!child) return stay(ended);
  const selected = keepSelection(ended);
  const family = [...selected.children.values()].filter((one) => one.family === child.family);
  const isDone =
    family.every(({ state: now }) => now === "ended") && family.length >= (ended.families.get(child.family) ?? 1);
  if (!isDone) return stay(selected);
  const effects: readonly Effect[] = [
    { kind: "explainFamily", family: child.family },
    ...notifyAfter(
      Math.min(...family.map(({ startedAt }) => startedAt)),
      event.at,
      `${family.length} ${family.length === 1 ? "fork is" : "forks are"} done`,
    ),
  ];
  const families = new Map(selected.families);
  families.delete(child.family);
  return { state: dropOldConversations({ ...fold(selected, family), families }), effects };
};

/** A row stays selected as long as it is shown: somebody may be about to press a key for it. */
const keepSelection = (state: State): State => {
  const selected = state.children.get(state.selectedChild ?? "");
  const isShownRow = stripRows(state).some(({ id }) => id === selected?.id);
  return !selected || selected.worktree || isShownRow ? state : forgetSelection(state);
};

const forgetSelection = ({ selectedChild: _selected, ...state }: State): State => ({
  ...state,
  focus: state.focus === "strip" ? "input" : state.focus,
});

/** One line in the conversation for a family that is done. */
const fold = (state: State, family: readonly Child[]): State => {
  const ends: Record<string, number> = {};
  for (const { end = "ended" } of family) ends[end] = (ends[end] ?? 0) + 1;
  const firsts = family.flatMap(({ first }) => (first && first.prompt > 0 ? [first.read / first.prompt] : []));
  const block: FamilyBlock = {
    kind: "family",
    isDone: false,
    family: family[0]?.family ?? "",
    forks: family.length,
    ends,
    usd: family.reduce((sum, { usd }) => sum + usd, 0),
    ms: Math.max(...family.map(({ endedAt = 0 }) => endedAt)) - Math.min(...family.map(({ startedAt }) => startedAt)),
    ...(firsts.length === 0 ? {} : { warmShare: firsts.reduce((sum, share) => sum + share, 0) / firsts.length }),
  };
  return { ...state, main: addBlock(state.main, block) };
};

const dropOldConversations = (state: State): State => {
  const kept = [...state.children.values()].filter(
    ({ state: now, conversation }) => now === "ended" && conversation !== emptyConversation,
  );
  if (kept.length <= MAX_KEPT_CONVERSATIONS) return state;
  const children = new Map(state.children);
  for (const child of kept.slice(0, kept.length - MAX_KEPT_CONVERSATIONS))
    children.set(child.id, { ...child, conversation: emptyConversation });
  return { ...state, children };
};

// --- questions -----------------------------------------------------------------------------------------------------------

const openQuestion = (state: State, event: Of<"question_opened">): Step => {
  const { questionId: id, agent, tool, args, reason, rule, notes, at } = event;
  const question = {
    ...{ id, agent, args },
    tool: safeLine(tool),
    reason: safeLine(reason, 1_000),
    notes: notes.map((note) => safeLine(note, 1_000)),
    ...(rule === undefined ? {} : { rule: safeText(rule) }),
  };
  const others = state.questions.filter((open) => open.id !== id);
  // An attached terminal gets questions that were asked before it could show them.
  const shown = others.length === 0 ? { questionShownAt: Math.max(at, state.now) } : {};
  const asked: State = { ...state, questions: [...others, question], ...shown };
  return {
    state: changeChild(asked, agent, (child) => ({ ...child, state: "asking" })),
    effects: [{ kind: "notify", text: "Prefork needs an answer" }],
  };
};

const closeQuestion = (state: State, { questionId: id, at }: Of<"question_closed">): State => {
  const closed = state.questions.find((question) => question.id === id);
  if (!closed) return state;
  const questions = state.questions.filter((question) => question !== closed);
  const stillAsks = questions.some(({ agent }) => agent === closed.agent);
  const isEdited = state.composing.kind === "rule" && state.composing.questionId === id;
  const next: State = {
    ...state,
    questions,
    ...(closed === state.questions[0] ? { questionShownAt: at } : {}),
    focus: state.focus === "question" && questions.length === 0 ? "input" : state.focus,
    composing: isEdited ? { kind: "prompt" } : state.composing,
  };
  return stillAsks
    ? next
    : changeChild(next, closed.agent, (child) => ({
        ...child,
        state: child.state === "asking" ? "running" : child.state,
      }));
};

// --- the end of an exchange ----------------------------------------------------------------------------------------------

const endExchange = (state: State, event: Of<"exchange_ended">): Step => {
  const { runningSince, retry: _retry, ...rest } = state;
  const [next, ...queue] = rest.queue;
  const ended: State =
    event.end === "done"
      ? rest
      : {
          ...rest,
          main: addBlock(
            rest.main,
            event.end === "aborted" ? info("Stopped.") : warn(`Stopped: ${safeLine(event.reason, 1_000)}`),
          ),
        };
  // After an interrupt the person decides what happens next; queued prompts wait on the input line.
  if (next === undefined) return { state: ended, effects: notifyAfter(runningSince, event.at) };
  if (event.end === "aborted")
    return { state: { ...ended, queue: [] }, effects: [{ kind: "type", text: rest.queue.join("\n") }] };
  return { state: { ...ended, queue }, effects: [{ kind: "prompt", text: next }] };
};

/** Shorter work needs no notification: the person is still looking. */
const notifyAfter = (since: number | undefined, at: number, text = "Prefork is done"): readonly Effect[] =>
  since !== undefined && at - since > 15_000 ? [{ kind: "notify", text }] : [];
