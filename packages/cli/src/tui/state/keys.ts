/** What a key does: on the input line, in the fork strip, on a question, on a page.
 *  Invariant: pure. A question is answered only by a key that was pressed after it had been on the screen for half a second
 *  and that was not part of typing; a paste never answers anything. Keys that nobody wants go to the input line.
 *  Elsewhere: text editing (../input.ts), pages (page-keys.ts), what effects do (../effects.ts). */

import type { Mode } from "@prefork/guard";
import { alikeQuestions } from "./alike.ts";
import { childKey, handled, type InputFacts, type KeyPress, markStopped, TWICE_MS } from "./child-keys.ts";
import { reducePageKey } from "./page-keys.ts";
import { closePage, openPageAbove, withoutPage } from "./page-stack.ts";
import { type AnswerChoice, type Effect, type OpenQuestion, type State, type Step, stay } from "./state.ts";
import { stripRows } from "./strip-rows.ts";
import { reduceTrustKey } from "./trust-keys.ts";

const GRACE_MS = 500;
/** How long somebody may believe that a closed page is still open. */
const AFTER_PAGE_MS = 5_000;
const MODES: readonly Mode[] = ["default", "accept-edits", "plan"];

const notForUs = (state: State): Step => ({ state, effects: [], isHandled: false });

export const reduceKey = (before: State, press: KeyPress): Step => {
  const { hint: _hint, afterPage, ...rest } = before;
  const state: State = { ...rest, now: press.at, pagesBelow: before.page ? before.pagesBelow : [] };
  if (afterPage === "recalled" && press.key === "enter")
    return handled({ ...state, lastKeyAt: press.at, hint: "This is an earlier prompt. Press Enter again to send it." });
  const step = route(state, press);
  const next = afterPageOf(before, step, press);
  return { ...step, state: { ...step.state, lastKeyAt: press.at, ...(next === undefined ? {} : { afterPage: next }) } };
};

/** Somebody who still believes to be on a page that was just closed selects with the arrow keys. On the input line these
 *  recall a prompt, which Enter must not send at once. */
const afterPageOf = (before: State, { state, isHandled }: Step, { key, at }: KeyPress): State["afterPage"] => {
  if (before.page) return state.page ? undefined : "closed";
  const isRecall = (key === "up" || key === "down") && !isHandled;
  if (!isRecall || before.afterPage === undefined) return undefined;
  return before.afterPage === "recalled" || at - before.lastKeyAt < AFTER_PAGE_MS ? "recalled" : undefined;
};

const route = (state: State, press: KeyPress): Step => {
  if (state.trust) return reduceTrustKey(state, state.trust, press);
  const shared = sharedKey(state, press);
  if (shared) return shared;
  if (state.page) return reducePageKey(state, state.page, press);
  if (state.focus === "strip") return stripKey(state, press);
  const [question] = state.questions;
  if (question && state.composing.kind === "prompt") {
    if (state.focus === "question") return questionKey(state, question, press);
    if (isAnswer(state, press)) {
      const answered = questionKey(state, question, press);
      if (answered.isHandled) return answered; // an answer, or why this key is none
    }
  }
  return inputKey(state, press);
};

// --- keys that work everywhere -------------------------------------------------------------------------------------------

const sharedKey = (state: State, press: KeyPress): Step | undefined => {
  switch (press.key) {
    case "ctrl+c":
      return interrupt(state, press);
    case "ctrl+z":
      return handled(state, { kind: "suspend" });
    case "ctrl+l":
      return handled(state, { kind: "redraw" });
    case "ctrl+o":
      return handled(togglePage(state));
    case "ctrl+q":
      return state.questions.length === 0
        ? handled({ ...state, hint: "No question is open." })
        : handled(focusQuestion(withoutPage(state)));
    case "shift+tab":
      return state.page ? undefined : handled(state, { kind: "mode", mode: nextMode(state.mode) });
    default:
      return undefined;
  }
};

/** Stops what runs, then clears the input, then leaves: each needs its own press. Whoever is attached leaves without
 *  stopping anything. */
const interrupt = (state: State, { key, at, input }: KeyPress): Step => {
  if (state.page?.kind === "list" && state.page.otherwise) return handled(withoutPage(state), { kind: "quit" });
  if (state.page) return handled(withoutPage(state));
  if (!input.isEmpty) return handled({ ...state, composing: { kind: "prompt" } }, { kind: "type", text: "" });
  if (state.work) return handled(state, { kind: "cancel" });
  if (state.runningSince !== undefined && !state.attached) return stopExchange(state, state.runningSince);
  if (at - state.lastInterruptAt < TWICE_MS) return handled(state, { kind: "quit" });
  const name = key === "ctrl+d" ? "Ctrl-D" : "Ctrl-C";
  const hint = state.attached
    ? `Press ${name} again to detach. The session continues.`
    : `Press ${name} again to quit.${stoppedByQuitting(state)}`;
  return handled({ ...state, lastInterruptAt: at, hint });
};

const stoppedByQuitting = ({ children }: State): string => {
  const running = [...children.values()].filter((child) => child.state !== "ended").length;
  if (running === 0) return "";
  return running === 1
    ? " 1 fork is running and would be stopped."
    : ` ${running} forks are running and would be stopped.`;
};

/** The exchange, and every child that it started, except those that were detached on purpose. */
const stopExchange = (state: State, since: number): Step => {
  const children = [...state.children.values()]
    .filter((child) => child.state !== "ended" && child.startedAt >= since && !child.isDetached)
    .map(({ id }) => id);
  return handled(
    markStopped(state, children),
    { kind: "stop" },
    ...children.map((child): Effect => ({ kind: "stop", child })),
  );
};

const nextMode = (mode: Mode): Mode => MODES[(MODES.indexOf(mode) + 1) % MODES.length] ?? "default";

const togglePage = (state: State): State =>
  state.page?.kind === "conversation" && state.page.agent === "main"
    ? closePage(state)
    : openPageAbove(state, { kind: "conversation", agent: "main", scroll: 0, isExpanded: true });

// --- the input line ------------------------------------------------------------------------------------------------------

const inputKey = (state: State, press: KeyPress): Step => {
  const { key, at, input } = press;
  switch (key) {
    case "escape":
      return input.isCompleting || input.takesEscape ? notForUs(state) : pressEscape(state, at, input);
    case "ctrl+d":
      return input.isEmpty ? interrupt(state, press) : notForUs(state);
    case "ctrl+g":
      return handled(state, { kind: "edit" });
    case "ctrl+b":
      return hasForeground(state) ? handled(state, { kind: "background" }) : notForUs(state);
    case "?":
      return input.isEmpty && state.composing.kind === "prompt"
        ? handled(state, { kind: "command", name: "help", args: "" })
        : notForUs(state);
    case "tab":
      if (!input.isEmpty || input.isCompleting) return notForUs(state);
      if (state.questions.length > 0) return handled(focusQuestion(state));
      return focusStrip(state) ?? insertSuggestion(state, 0) ?? notForUs(state);
    case "1":
    case "2":
    case "3":
      return (input.isEmpty ? insertSuggestion(state, Number(key) - 1) : undefined) ?? notForUs(state);
    case "down":
      if (!input.isOnLastLine || input.isCompleting || !input.isEmpty) return notForUs(state);
      return focusStrip(state) ?? notForUs(state);
    case "up":
      return input.isEmpty && state.queue.length > 0 ? recallQueued(state) : notForUs(state);
    default:
      return notForUs(state);
  }
};

const pressEscape = (state: State, at: number, input: InputFacts): Step => {
  if (state.composing.kind !== "prompt")
    return handled({ ...state, composing: { kind: "prompt" } }, { kind: "type", text: "" });
  if (state.work) return handled(state, { kind: "cancel" });
  if (state.runningSince !== undefined) return stopExchange(state, state.runningSince);
  const isSecond = at - state.lastEscapeAt < TWICE_MS;
  if (!input.isEmpty)
    return isSecond
      ? handled(state, { kind: "type", text: "" })
      : handled({ ...state, lastEscapeAt: at, hint: "Press Esc again to clear the input." });
  if (isSecond) return handled({ ...state, lastEscapeAt: 0 }, { kind: "command", name: "rewind", args: "" });
  return handled({ ...state, lastEscapeAt: at, hint: "Press Esc again to go back to an earlier prompt." });
};

/** Puts a suggested prompt on the input line, where it can be read and changed before it is sent. */
const insertSuggestion = (state: State, index: number): Step | undefined => {
  const text = state.composing.kind === "prompt" ? state.suggestions[index] : undefined;
  return text === undefined ? undefined : handled(state, { kind: "type", text });
};

const hasForeground = (state: State): boolean =>
  [...state.children.values()].some(({ isForeground, state: now }) => isForeground && now !== "ended");

const recallQueued = (state: State): Step =>
  handled({ ...state, queue: state.queue.slice(0, -1) }, { kind: "type", text: state.queue.at(-1) ?? "" });

const focusStrip = (state: State): Step | undefined => {
  const rows = stripRows(state);
  const [first] = rows;
  if (!first) return undefined;
  const isStill = rows.some(({ id }) => id === state.selectedChild);
  return handled({ ...state, focus: "strip", ...(isStill ? {} : { selectedChild: first.id }) });
};

// --- the fork strip ------------------------------------------------------------------------------------------------------

const stripKey = (state: State, press: KeyPress): Step => {
  const { key, at } = press;
  const rows = stripRows(state);
  const index = rows.findIndex(({ id }) => id === state.selectedChild);
  const row = rows[index];
  const toInput: State = { ...state, focus: "input" };
  if (key === "escape") return handled(toInput);
  if (!row) return inputKey(toInput, press); // the row is gone, and the key was typed for the input line
  switch (key) {
    case "up":
      return handled(index === 0 ? toInput : select(state, rows[index - 1]?.id));
    case "down":
      return handled(select(state, rows[index + 1]?.id));
    case "home":
      return handled(select(state, rows[0]?.id));
    case "end":
      return handled(select(state, rows.at(-1)?.id));
    case "enter":
    case "right":
      if (row.kind === "family") return handled({ ...state, unfolded: [...state.unfolded, row.family] });
      return handled(openPageAbove(state, { kind: "conversation", agent: row.id, scroll: 0, isExpanded: false }));
    default:
      return row.kind === "family"
        ? inputKey(toInput, press)
        : (childKey(state, row.id, { key, at }) ?? inputKey(toInput, press));
  }
};

const select = (state: State, id: string | undefined): State =>
  id === undefined ? state : { ...state, selectedChild: id };

// --- questions -----------------------------------------------------------------------------------------------------------

/** The key is meant for the question, although it was not asked for: nothing is typed, nothing was typed just now, and the
 *  question has been visible long enough to be read. */
const isAnswer = (state: State, { at, input }: KeyPress): boolean =>
  input.isEmpty && at - state.lastKeyAt >= GRACE_MS && isReadable(state, at);

/** Whoever asks for the question has seen it. The next question has its own time to be read. */
const focusQuestion = (state: State): State => ({ ...state, focus: "question", questionShownAt: 0 });

const isReadable = (state: State, at: number): boolean => at - state.questionShownAt >= GRACE_MS;

const CHOICES: Readonly<Record<string, AnswerChoice | "all">> = {
  ...{ y: "once", a: "always", n: "no", s: "stop", l: "all" },
  ...{ "1": "once", "2": "always", "3": "no", "4": "stop", "5": "all" },
};

const questionKey = (state: State, question: OpenQuestion, press: KeyPress): Step => {
  const { key, at } = press;
  if (key === "escape" || key === "tab") return handled({ ...state, focus: "input" });
  const choice = CHOICES[key];
  if (choice === undefined)
    return state.focus === "question" && key.length > 1
      ? handled(state)
      : inputKey({ ...state, focus: "input" }, press);
  if (!isReadable(state, at)) return handled({ ...state, hint: "The question just appeared. Press the key again." });
  if (choice === "all") return answerAlike(state);
  if (choice === "always") {
    if (question.rule === undefined)
      return handled({ ...state, hint: "No rule can describe this call, so it is asked each time." });
    return handled(
      { ...state, focus: "input", composing: { kind: "rule", questionId: question.id } },
      { kind: "type", text: question.rule },
    );
  }
  return handled(state, { kind: "answer", questionId: question.id, answer: choice });
};

/** Each is answered by its own id, so one that appears meanwhile is not. */
const answerAlike = (state: State): Step => {
  const alike = alikeQuestions(state);
  if (alike.length < 2) return handled({ ...state, hint: "No other question is like this one." });
  return handled(state, ...alike.map(({ id }): Effect => ({ kind: "answer", questionId: id, answer: "once" })));
};

// --- what was typed ------------------------------------------------------------------------------------------------------

/** Enter was pressed on the input line. */
export const reduceSubmit = (state: State, text: string): Step => {
  const { composing } = state;
  const trimmed = text.trim();
  if (composing.kind === "steer") {
    if (trimmed === "") return stay({ ...state, composing: { kind: "prompt" } });
    return {
      state: { ...state, composing: { kind: "prompt" }, hint: "Sent. It reads the message at its next turn." },
      effects: [{ kind: "steer", text: trimmed, child: composing.child }],
    };
  }
  if (composing.kind === "rule") {
    if (trimmed === "")
      return stay({ ...state, composing: { kind: "prompt" }, hint: "The rule is empty; the question is still open." });
    return {
      state: { ...state, composing: { kind: "prompt" } },
      effects: [{ kind: "answer", questionId: composing.questionId, answer: "always", rule: trimmed }],
    };
  }
  if (trimmed === "") return stay(state);
  const command = /^\/([a-z][\w:-]*)(?:\s+([\s\S]*))?$/.exec(trimmed);
  if (command) {
    const [, name = "", args = ""] = command;
    return { state, effects: [{ kind: "command", name, args, typed: trimmed }] };
  }
  if (trimmed.startsWith("!") && trimmed.length > 1)
    return { state, effects: [{ kind: "shell", command: trimmed.slice(1).trim() }] };
  if (trimmed.startsWith("#") && /^#\s*[^#\s]/.test(trimmed) && !trimmed.includes("\n"))
    return { state, effects: [{ kind: "remember", text: trimmed.slice(1).trim() }] };
  if (state.isOpening || state.runningSince !== undefined) return stay({ ...state, queue: [...state.queue, text] });
  return { state, effects: [{ kind: "prompt", text }] };
};
