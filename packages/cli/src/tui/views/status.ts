/** The lines around the input: what is running above it, and the status line below it.
 *  Invariant: in a narrow terminal the least important figures are left out, never cut in the middle.
 *  Elsewhere: the fork strip (strip.ts), the input itself (../input.ts). */

import { formatMoney } from "../../numbers.ts";
import { type State, safeLine } from "../state/index.ts";
import { cut, duration, percent, shortTokens, widthOf } from "./lines.ts";
import type { Theme } from "./theme.ts";

const FRAMES = ["·", "✢", "✳", "✶", "✻", "✽"];

/** What the main agent does now, the to-dos, queued prompts, and a hint. */
export const renderActivity = (state: State, width: number, theme: Theme): readonly string[] => [
  ...(state.todos.filter(({ status }) => status !== "completed").length > 0 ? renderTodos(state, width, theme) : []),
  ...runningLine(state, width, theme),
  ...state.queue.map((text) => theme.faint(cut(`  queued: ${safeLine(text)}`, width))),
  ...renderSuggestions(state, width, theme),
  ...(state.hint === undefined ? [] : [theme.accent(cut(state.hint, width))]),
];

const renderSuggestions = ({ suggestions }: State, width: number, theme: Theme): readonly string[] =>
  suggestions.length === 0
    ? []
    : [
        theme.faint(cut("Prompts that work here (a number, or Tab, puts one on the input line):", width)),
        ...suggestions.map((text, index) => cut(`  ${theme.accent(String(index + 1))}  ${safeLine(text)}`, width)),
      ];

const renderTodos = ({ todos }: State, width: number, theme: Theme): readonly string[] =>
  todos.slice(-8).map(({ content, status }) => {
    const sign =
      status === "completed" ? theme.good("✓") : status === "in_progress" ? theme.accent("▸") : theme.faint("○");
    return cut(`  ${sign} ${status === "completed" ? theme.faint(content) : content}`, width);
  });

const runningLine = (state: State, width: number, theme: Theme): readonly string[] => {
  if (state.work) {
    const { label, since } = state.work;
    const took = state.now - since >= 1_000 ? `${duration(state.now - since)} · ` : "";
    return [cut(`${label} ${theme.faint(`${took}Esc stops it`)}`, width)];
  }
  if (state.isOpening) return [theme.faint("Opening the session…")];
  if (state.runningSince === undefined) return [];
  const ms = state.now - state.runningSince;
  const frame = FRAMES[Math.floor(state.now / 1000) % FRAMES.length] ?? "·";
  const retry = state.retry;
  const what = retry
    ? theme.warning(
        `Retrying: ${retry.reason}${retry.until === undefined || retry.until <= state.now ? "" : ` in ${duration(retry.until - state.now)}`}`,
      )
    : state.questions.some(({ agent }) => agent === "main")
      ? theme.warning("Waiting for your answer")
      : "Working";
  const stop = state.attached?.isReadOnly ? "" : " · Esc stops it";
  return [cut(`${theme.accent(frame)} ${what} ${theme.faint(`${duration(ms)}${stop}`)}`, width)];
};

const MODE_NAMES: Readonly<Record<string, string>> = {
  default: "asks first",
  "accept-edits": "accepts edits",
  plan: "plan only",
  bypass: "asks nothing",
};

/** Above this share of the window the agent will soon have to summarize. */
const NEARLY_FULL = 0.8;

const contextUsed = ({ cache, window }: State, theme: Theme): string => {
  if (!cache || cache.prompt === 0) return "";
  const text = `context ${shortTokens(cache.prompt)}${window ? ` of ${shortTokens(window)}` : ""}`;
  return window && cache.prompt > window * NEARLY_FULL ? theme.warning(`${text}, nearly full`) : theme.faint(text);
};

export const renderStatus = (state: State, width: number, theme: Theme): readonly string[] => {
  const { cache, now } = state;
  const used = contextUsed(state, theme);
  const isNearlyFull = used.includes("nearly full");
  const share = cache && cache.prompt > 0 ? `${percent(cache.read / cache.prompt)} cached` : "";
  const warm =
    cache?.warmUntil === undefined
      ? ""
      : cache.warmUntil > now
        ? `warm ${duration(cache.warmUntil - now)}`
        : "cache expired";
  const spent = formatMoney(state.usd, state.usd < 1 ? 4 : 2);
  const today = state.todayUsd === undefined ? "" : ` (today ${formatMoney(state.todayUsd, 2)})`;
  // Unknown until the session is open, or if it is attached to and its first events are no longer kept.
  const mode = state.engine === "" ? "" : (MODE_NAMES[state.mode] ?? state.mode);
  // Nobody is billed for a rehearsal.
  const bill = state.engine === "rehearsal" ? `${spent} if it were real` : `${spent}${today}`;
  const money = widthOf([mode, "? help", bill].filter(Boolean).join(" · ")) <= width ? bill : spent;
  const engine = state.engine === "rehearsal" ? "rehearsal engine, no model" : state.model;
  // The most important first; what does not fit is left out from the end.
  const parts = [...(isNearlyFull ? [used] : []), mode, "? help", money, engine, share, warm, used].filter(Boolean);
  const fitting: string[] = [];
  for (const part of new Set(parts)) if (widthOf([...fitting, part].join(" · ")) <= width) fitting.push(part);
  const order = [mode, engine, used, share, warm, money, "? help"].filter((part) => fitting.includes(part));
  return [
    order.map((part) => (part === used ? part : theme.faint(part))).join(theme.faint(" · ")),
    ...(!state.statusText ? [] : [theme.faint(cut(state.statusText, width))]),
  ];
};

const EMPTY_LABEL = "say what to do · / commands · @ files · ? help";

const hasPrompt = ({ main }: State): boolean =>
  main.dropped > 0 || [...main.done, ...main.open].some(({ kind }) => kind === "prompt");

/** The label at the left of the input's upper border. */
export const inputLabel = (state: State): string => {
  switch (state.composing.kind) {
    case "steer":
      return `message to ${state.children.get(state.composing.child)?.label ?? state.composing.child} (Enter sends, Esc cancels)`;
    case "rule":
      return "allow always by this rule (edit it; Enter accepts, Esc cancels)";
    case "prompt":
      if (!state.attached) return state.runningSince === undefined && !hasPrompt(state) ? EMPTY_LABEL : "";
      return state.attached.isReadOnly
        ? `watching process ${state.attached.pid} (read-only)`
        : `attached to process ${state.attached.pid}`;
  }
};
