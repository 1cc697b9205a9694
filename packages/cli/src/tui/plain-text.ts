/** The state as plain lines: what a reader has not been told yet.
 *  Invariant: pure; a line is never changed after it was given, and nothing is given twice; no colour, no cursor, no spinner.
 *  Every text from outside is safe: the state holds it so, and arguments of calls are made safe here.
 *  Elsewhere: reading answers (plain.ts), the same state as a screen (views). */

import { formatMoney } from "../numbers.ts";
import {
  type Block,
  type CallBlock,
  type Child,
  type Conversation,
  callText,
  describeCall,
  type OpenQuestion,
  type Page,
  type State,
  safeLine,
  safeText,
  type TrustQuestion,
  trustOptions,
} from "./state/index.ts";

/** What was told so far. */
export type Told = {
  readonly blocks: number;
  /** Calls whose start was told, and whether their end was. */
  readonly calls: ReadonlyMap<string, "started" | "ended">;
  readonly children: ReadonlyMap<string, Child["state"]>;
  readonly todos: string;
  readonly queued: number;
  readonly question?: string;
  readonly trust?: number;
  readonly page?: Page;
  readonly hint?: string;
  readonly suggestions: readonly string[];
  readonly mode?: string;
  readonly isOpen: boolean;
  readonly runningSince?: number;
  readonly lastKind?: Block["kind"];
};

export const nothingTold: Told = {
  ...{ blocks: 0, calls: new Map(), children: new Map(), todos: "", queued: 0, suggestions: [], isOpen: false },
};

export type News = { readonly lines: readonly string[]; readonly told: Told };

export const newsIn = (state: State, told: Told): News => {
  const blocks = blockNews(state.main, told);
  const children = childNews(state, told);
  const todos = todoLine(state);
  const [question] = state.questions;
  const { page, trust, hint, runningSince } = state;
  const lines = [
    ...(trust && trust.shownAt !== told.trust ? trustLines(trust) : []),
    ...(!state.isOpening && !told.isOpen ? openLines(state) : []),
    ...blocks.lines,
    ...children.lines,
    ...(todos === told.todos || todos === "" ? [] : [todos]),
    ...state.queue.slice(told.queued).map((text) => `Queued: ${safeLine(text)}`),
    ...(told.mode !== undefined && told.mode !== state.mode ? [`Mode: ${MODE_NAMES[state.mode] ?? state.mode}.`] : []),
    ...(question && question.id !== told.question ? questionLines(question, state) : []),
    ...(page && page !== told.page ? pageLines(page, state) : []),
    ...(state.suggestions === told.suggestions ? [] : suggestionLines(state.suggestions)),
    ...(hint !== undefined && hint !== told.hint ? [hint] : []),
    ...(told.runningSince !== undefined && runningSince === undefined ? [doneLine(state, told.runningSince)] : []),
  ];
  return {
    lines,
    told: {
      blocks: state.main.dropped + state.main.done.length,
      calls: blocks.calls,
      children: children.told,
      todos,
      queued: state.queue.length,
      suggestions: state.suggestions,
      isOpen: told.isOpen || !state.isOpening,
      ...(state.isOpening ? {} : { mode: state.mode }),
      ...(question ? { question: question.id } : {}),
      ...(trust ? { trust: trust.shownAt } : {}),
      ...(page ? { page } : {}),
      ...(hint === undefined ? {} : { hint }),
      ...(runningSince === undefined ? {} : { runningSince }),
      ...(blocks.lastKind === undefined ? {} : { lastKind: blocks.lastKind }),
    },
  };
};

const MODE_NAMES: Readonly<Record<string, string>> = {
  default: "asks first",
  "accept-edits": "accepts edits",
  plan: "plan only",
  bypass: "asks nothing",
};

const openLines = ({ engine, model, mode }: State): readonly string[] => [
  `The session is open. ${engine === "rehearsal" ? "The rehearsal engine answers, without a model" : `Model: ${model}`}. Mode: ${MODE_NAMES[mode] ?? mode}.`,
  "Type a prompt and press Enter. A line that ends with a backslash continues on the next line. /help lists commands. Ctrl-C stops what runs; Ctrl-C twice, or Ctrl-D, leaves.",
];

const doneLine = ({ now, usd }: State, since: number): string =>
  `Done after ${timeText(now - since)}. This session: ${formatMoney(usd, usd < 1 ? 4 : 2)}.`;

const timeText = (ms: number): string => {
  const seconds = Math.max(0, Math.round(ms / 1000));
  return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
};

const suggestionLines = (suggestions: readonly string[]): readonly string[] =>
  suggestions.length === 0
    ? []
    : [
        "Prompts that work here. Type a number to take one:",
        ...suggestions.map((text, index) => `${index + 1}: ${text}`),
      ];

// --- a conversation ------------------------------------------------------------------------------------------------------

type BlockNews = Pick<News, "lines"> & Pick<Told, "calls" | "lastKind">;

const blockNews = ({ dropped, done, open }: Conversation, told: Told): BlockNews => {
  const calls = new Map(told.calls);
  const lines: string[] = [];
  let { lastKind } = told;
  for (const block of done.slice(Math.max(0, told.blocks - dropped))) {
    lines.push(...(block.kind === "call" ? callNews(block, calls) : blockLines(block, lastKind)));
    if (block.kind === "call") calls.delete(block.callId);
    lastKind = block.kind;
  }
  for (const block of open) if (block.kind === "call") lines.push(...callNews(block, calls));
  return { lines, calls, ...(lastKind === undefined ? {} : { lastKind }) };
};

/** What is new about a call; notes it in `calls`. */
const callNews = (call: CallBlock, calls: Map<string, "started" | "ended">): readonly string[] => {
  const before = calls.get(call.callId);
  const isEnded = call.state === "ended";
  if (before === "ended" || (!isEnded && (before === "started" || call.state !== "running"))) return [];
  calls.set(call.callId, isEnded ? "ended" : "started");
  const title = describeCall(call);
  if (!isEnded) return [`Tool: ${title}`];
  if (call.fault !== undefined)
    return [`Tool: ${title}: ${call.fault}`, ...firstLines(call.output.trim(), 3).map((line) => `    ${line}`)];
  if ((call.ms ?? 0) >= 1_000) return [`Tool: ${title}: done after ${timeText(call.ms ?? 0)}`];
  return before === undefined ? [`Tool: ${title}`] : [];
};

const firstLines = (text: string, count: number): readonly string[] =>
  text === "" ? [] : text.split("\n").slice(0, count);

const LEVELS = { info: "Note", warn: "Warning", error: "Error" } as const;

const blockLines = (block: Exclude<Block, CallBlock>, lastKind: Block["kind"] | undefined): readonly string[] => {
  switch (block.kind) {
    case "prompt":
      return `You: ${block.text.trim()}`.split("\n");
    case "answer": {
      const text = block.text.trim();
      return text === "" ? [] : `${lastKind === "answer" ? "" : "Agent: "}${text}`.split("\n");
    }
    case "thinking":
      return [];
    case "notice":
      return `${LEVELS[block.level]}: ${block.text}`.split("\n");
    case "output":
      return [block.title, ...(block.isMarkdown ? unmarked(block.text) : block.text).trimEnd().split("\n")];
    case "family": {
      const ends = Object.entries(block.ends).map(([end, count]) => `${count} ${end}`);
      const saved =
        block.freshUsd === undefined || block.freshUsd <= block.usd
          ? ""
          : ` Fresh sub-agents would have cost ${formatMoney(block.freshUsd)}.`;
      return [`Forks: ${ends.join(", ")} after ${timeText(block.ms)}, for ${formatMoney(block.usd)}.${saved}`];
    }
  }
};

/** Our own Markdown, without its signs. */
const unmarked = (text: string): string => text.replace(/\*\*(.+?)\*\*/g, "$1").replace(/^#+ /gm, "");

// --- forks and to-dos ----------------------------------------------------------------------------------------------------

const childNews = (state: State, told: Told): Pick<News, "lines"> & { readonly told: Told["children"] } => {
  const lines = [...state.children.values()].flatMap((child) => {
    const before = told.children.get(child.id);
    if (before === undefined && child.state !== "ended") return [`Fork ${child.id} started: ${child.label}`];
    if (child.state === "ended" && before !== "ended")
      return [`Fork ${child.id} ${child.end ?? "ended"}: ${child.label}${child.reason ? ` (${child.reason})` : ""}`];
    return [];
  });
  return { lines, told: new Map([...state.children.values()].map(({ id, state: now }) => [id, now])) };
};

const todoLine = ({ todos }: State): string => {
  const done = todos.filter(({ status }) => status === "completed").length;
  const now = todos.find(({ status }) => status === "in_progress")?.content;
  return todos.length === 0 ? "" : `To do: ${done} of ${todos.length} done${now === undefined ? "" : `; now: ${now}`}.`;
};

// --- questions -----------------------------------------------------------------------------------------------------------

/** The numbers are those of the screen's keys. */
const questionLines = (question: OpenQuestion, state: State): readonly string[] => {
  const { agent, tool, args, reason, notes, rule } = question;
  const asker = agent === "main" ? "The agent" : `Fork ${agent} (${state.children.get(agent)?.label ?? ""})`;
  const others = state.questions.length - 1;
  return [
    `Question: ${asker} wants to use ${tool}:`,
    ...callText(tool, args)
      .split("\n")
      .map((line) => `    ${line}`),
    `Why: ${reason}`,
    ...notes.map((note) => `Note: ${note}`),
    "1: yes, once",
    ...(rule === undefined ? [] : [`2: yes, always, by the rule ${safeLine(rule)}`]),
    "3: no",
    "4: no, and stop",
    ...(others > 0 ? [`5: yes, once, to this and the ${others} other open questions`] : []),
    "Type a number and press Enter.",
  ];
};

const trustLines = (question: TrustQuestion): readonly string[] => [
  ...(question.note === undefined ? [] : [question.note]),
  `Trust ${question.folder}?`,
  question.changed === undefined
    ? "Its files can change what prefork does. None of them is used until you trust them. This is what they would do:"
    : `It has changed since you trusted it: ${question.changed.join(", ")}. This is what its files would do now:`,
  ...(question.problem === undefined ? [] : [`It cannot be trusted as it is: ${question.problem}`]),
  ...question.sections.flatMap(({ title, lines }) => [`${title}:`, ...lines.map((line) => `    ${line}`)]),
  ...trustOptions(question).map(({ label }, index) => `${index + 1}: ${label}`),
  "Type a number and press Enter.",
];

// --- pages ---------------------------------------------------------------------------------------------------------------

const pageLines = (page: Page, state: State): readonly string[] => {
  switch (page.kind) {
    case "text":
      return [
        page.title,
        ...safeText(page.isMarkdown ? unmarked(page.text) : page.text)
          .trimEnd()
          .split("\n"),
      ];
    case "list": {
      const [preview, ...others] = [...new Set(page.items.flatMap((item) => item.preview ?? []))];
      return [
        page.title,
        ...(preview === undefined || others.length > 0 ? [] : safeText(preview).trimEnd().split("\n")),
        ...page.items.map(
          ({ label, detail }, index) => `${index + 1}: ${label}${detail === undefined ? "" : `, ${detail}`}`,
        ),
        page.items.length === 0
          ? "Nothing here yet."
          : "Type a number and press Enter, or press Enter alone to close the list.",
      ];
    }
    case "conversation": {
      const conversation = page.agent === "main" ? state.main : state.children.get(page.agent)?.conversation;
      const { done, open } = conversation ?? { done: [], open: [] };
      return [...done, ...open].flatMap((block, index, all) =>
        block.kind === "call" ? [`Tool: ${describeCall(block)}`] : blockLines(block, all[index - 1]?.kind),
      );
    }
  }
};
