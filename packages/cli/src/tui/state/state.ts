/** Everything the terminal shows, as data. A frame is a function of this state and nothing else.
 *  Invariant: every text from a model, a tool, a file or a provider went through safe-text.ts before it got here; only the
 *  arguments of calls and questions are kept as they came, and views make them safe.
 *  Elsewhere: how events and keys change it (reduce.ts), how it looks (../views), the text that is being typed
 *  (../input.ts). */

import type { Mode } from "@prefork/guard";
import type { CallFault, Question, Todo } from "@prefork/runtime";
import type { JsonObject } from "@prefork/wire";

// --- a conversation ------------------------------------------------------------------------------------------------------

export type CallBlock = {
  readonly kind: "call";
  readonly callId: string;
  readonly tool: string;
  readonly args: JsonObject;
  readonly state: "proposed" | "asking" | "running" | "ended";
  readonly fault?: CallFault;
  /** The last lines of its output while it runs, then its result. */
  readonly output: string;
  readonly startedAt: number;
  readonly ms?: number;
};

export type FamilyBlock = {
  readonly kind: "family";
  readonly family: string;
  readonly forks: number;
  readonly ends: Readonly<Record<string, number>>;
  readonly usd: number;
  readonly ms: number;
  /** Of what its forks could have read from the cache, the share that they read, from 0 to 1. */
  readonly warmShare?: number;
  /** What the same work would have cost with fresh sub-agents, if that can be said. */
  readonly freshUsd?: number;
  /** Its bill was explained, so the block can be printed. */
  readonly isDone: boolean;
};

export type Block =
  | { readonly kind: "prompt"; readonly text: string; readonly from?: "queue" | "steer" }
  | { readonly kind: "answer"; readonly text: string; readonly isDone: boolean }
  | { readonly kind: "thinking"; readonly text: string; readonly isDone: boolean }
  | CallBlock
  | FamilyBlock
  /** Something the person should know. */
  | { readonly kind: "notice"; readonly level: "info" | "warn" | "error"; readonly text: string }
  /** What a command of the terminal printed. `isMarkdown`: it is ours, not a program's output. */
  | { readonly kind: "output"; readonly title: string; readonly text: string; readonly isMarkdown?: boolean };

export type Conversation = {
  /** How many earlier blocks were dropped to bound memory. The journal has them. */
  readonly dropped: number;
  /** Finished blocks: they never change. */
  readonly done: readonly Block[];
  /** Blocks from the first unfinished one on. */
  readonly open: readonly Block[];
  /** The answer of the turn in flight was streamed, so that its complete text adds nothing. */
  readonly isStreamed: boolean;
};

export const emptyConversation: Conversation = { dropped: 0, done: [], open: [], isStreamed: false };

// --- agents --------------------------------------------------------------------------------------------------------------

export type CacheFigures = {
  /** Of the last request. */
  readonly read: number;
  readonly prompt: number;
  /** When its cache entry expires, in milliseconds since 1970. */
  readonly warmUntil?: number;
};

export type ChildState = "running" | "asking" | "ended";

export type ChildWorktree = {
  readonly path: string;
  readonly branch: string;
  readonly files?: number;
  /** `open` while the child works, `ready` to be merged, or what became of it. */
  readonly state: string;
};

/** A child as the fork strip shows it. */
export type Child = {
  readonly id: string;
  readonly label: string;
  readonly family: string;
  readonly parent: string;
  readonly state: ChildState;
  /** How it ended. */
  readonly end?: string;
  readonly reason?: string;
  /** What it does now, in a few words. */
  readonly activity: string;
  readonly turns: number;
  readonly tokens: number;
  readonly usd: number;
  readonly cache?: CacheFigures;
  /** Cache reads and prompt tokens of its first request, which shows whether it started warm. */
  readonly first?: CacheFigures;
  readonly startedAt: number;
  readonly endedAt?: number;
  readonly worktree?: ChildWorktree;
  readonly session?: string;
  readonly isForeground: boolean;
  /** It was detached on purpose, so stopping the exchange does not stop it. */
  readonly isDetached: boolean;
  /** The person stopped it, and it has not ended yet. */
  readonly isStopped?: boolean;
  readonly conversation: Conversation;
};

// --- what is open on the screen ------------------------------------------------------------------------------------------

export type ListItem = {
  readonly id: string;
  readonly label: string;
  readonly detail?: string;
  /** Shown below the list while it is selected. */
  readonly preview?: string;
};

/** A page covers the screen until it is closed. */
export type Page =
  /** The conversation of one agent, with its calls open or closed. */
  | {
      readonly kind: "conversation";
      readonly agent: string;
      /** Lines from the end; 0 follows new output. */
      readonly scroll: number;
      readonly isExpanded: boolean;
    }
  | {
      readonly kind: "text";
      readonly title: string;
      readonly text: string;
      /** Default: lines of a program's output, which keep their columns. */
      readonly isMarkdown?: boolean;
      /** Lines from the start. */
      readonly scroll: number;
    }
  | {
      readonly kind: "list";
      readonly title: string;
      /** Which command gets the choice. */
      readonly command: string;
      readonly items: readonly ListItem[];
      readonly selected: number;
      readonly filter: string;
      readonly hint: string;
      /** What Esc chooses instead of closing the list. */
      readonly otherwise?: { readonly id: string; readonly hint: string };
    };

/** What Enter does with the typed text. */
export type Composing =
  | { readonly kind: "prompt" }
  | { readonly kind: "steer"; readonly child: string }
  /** The rule of an "always" answer, edited. */
  | { readonly kind: "rule"; readonly questionId: string };

export type Focus = "input" | "question" | "strip";

export type TrustSection = {
  readonly title: string;
  readonly lines: readonly string[];
  /** Trusting it lets something run. */
  readonly isRisk: boolean;
};

/** What the files of a folder would do if they were trusted: asked before the session opens. It covers the screen. */
export type TrustQuestion = {
  readonly folder: string;
  /** What changed since the folder was trusted. Undefined: it was never trusted. */
  readonly changed?: readonly string[];
  readonly sections: readonly TrustSection[];
  /** How many calls its files would allow without asking. */
  readonly allowRules: number;
  /** Why the folder cannot be trusted as it is. */
  readonly problem?: string;
  /** Why it is asked again. */
  readonly note?: string;
  /** Lines from the start. */
  readonly scroll: number;
  readonly shownAt: number;
};

/** `accept`: trust, with the allow rules. `later`: open the session without these files. */
export type TrustChoice = "trust" | "accept" | "later" | "leave";

export type OpenQuestion = Pick<Question, "id" | "agent" | "tool" | "args" | "reason" | "rule" | "notes">;

export type State = {
  readonly session?: string;
  readonly cwd: string;
  readonly model: string;
  readonly engine: string;
  readonly mode: Mode;
  /** The session runs in another process. */
  readonly attached?: { readonly pid: number; readonly isReadOnly: boolean };
  /** The session is still being opened. */
  readonly isOpening: boolean;
  /** An exchange is running since then. */
  readonly runningSince?: number;
  /** A command of the terminal works since then; Esc cancels it. */
  readonly work?: { readonly label: string; readonly since: number };
  /** The turn in flight was retried: why, and until when it waits. */
  readonly retry?: { readonly reason: string; readonly until?: number };
  readonly main: Conversation;
  readonly children: ReadonlyMap<string, Child>;
  /** How many forks each family has, from when it is launched until it is done. */
  readonly families: ReadonlyMap<string, number>;
  /** Worktrees of tasks that have not started yet. */
  readonly worktrees: ReadonlyMap<string, ChildWorktree>;
  readonly todos: readonly Todo[];
  /** Oldest first; the first one is shown. */
  readonly questions: readonly OpenQuestion[];
  /** Since when the first question is on the screen. */
  readonly questionShownAt: number;
  /** Prompts that were typed while an exchange ran, oldest first. */
  readonly queue: readonly string[];
  readonly cache?: CacheFigures;
  readonly window?: number;
  readonly usd: number;
  readonly todayUsd?: number;
  /** Output of the user's own status command. */
  readonly statusText?: string;
  /** The causes of misses that were already explained. */
  readonly explainedMisses: readonly string[];
  readonly focus: Focus;
  readonly selectedChild?: string;
  /** Families that are done and shown child by child all the same. */
  readonly unfolded: readonly string[];
  readonly composing: Composing;
  readonly page?: Page;
  /** The pages that closing it leads back to, the nearest last. */
  readonly pagesBelow: readonly Page[];
  /** A page was just closed, and since then an arrow key has recalled an earlier prompt. */
  readonly afterPage?: "closed" | "recalled";
  readonly trust?: TrustQuestion;
  /** Prompts that work here, offered until the first one is sent. */
  readonly suggestions: readonly string[];
  /** A short message above the input, until the next key. */
  readonly hint?: string;
  readonly hintAt: number;
  readonly lastKeyAt: number;
  readonly lastEscapeAt: number;
  readonly lastInterruptAt: number;
  /** The child that a second `x` would stop. */
  readonly stopping?: { readonly child: string; readonly at: number };
  readonly columns: number;
  readonly rows: number;
  /** Milliseconds since 1970, of the last action. Views use this one only. */
  readonly now: number;
};

export type Opening = Pick<State, "cwd" | "columns" | "rows" | "now"> &
  Partial<Pick<State, "model" | "engine" | "mode">>;

export const initialState = (opening: Opening): State => ({
  model: "",
  engine: "",
  mode: "default",
  ...opening,
  isOpening: true,
  main: emptyConversation,
  children: new Map(),
  families: new Map(),
  worktrees: new Map(),
  todos: [],
  questions: [],
  questionShownAt: 0,
  queue: [],
  usd: 0,
  explainedMisses: [],
  unfolded: [],
  suggestions: [],
  pagesBelow: [],
  focus: "input",
  composing: { kind: "prompt" },
  hintAt: 0,
  lastKeyAt: 0,
  lastEscapeAt: 0,
  lastInterruptAt: 0,
});

/** The screen and what is on it stay; everything that belongs to the session starts anew. */
export const withoutSession = ({ cwd, columns, rows, now, model, engine, mode, ...state }: State): State => {
  const { main, focus: _focus, composing: _composing, todayUsd, window, statusText } = state;
  return {
    ...initialState({ cwd, columns, rows, now, model, engine, mode }),
    isOpening: state.isOpening,
    main,
    ...(todayUsd === undefined ? {} : { todayUsd }),
    ...(window === undefined ? {} : { window }),
    ...(statusText === undefined ? {} : { statusText }),
    ...(state.session === undefined ? {} : { session: state.session }),
    ...(state.work === undefined ? {} : { work: state.work }),
  };
};

// --- what a change asks for ----------------------------------------------------------------------------------------------

/** What the program around the state has to do. The state itself never acts. */
export type Effect =
  | { readonly kind: "prompt"; readonly text: string }
  | { readonly kind: "steer"; readonly text: string; readonly child?: string }
  | { readonly kind: "stop"; readonly child?: string }
  | { readonly kind: "background"; readonly child?: string }
  | { readonly kind: "answer"; readonly questionId: string; readonly answer: AnswerChoice; readonly rule?: string }
  | { readonly kind: "trust"; readonly choice: TrustChoice }
  | { readonly kind: "mode"; readonly mode: Mode }
  | { readonly kind: "command"; readonly name: string; readonly args: string; readonly typed?: string }
  | { readonly kind: "chosen"; readonly command: string; readonly id: string }
  | { readonly kind: "shell"; readonly command: string }
  | { readonly kind: "remember"; readonly text: string }
  | { readonly kind: "edit" }
  /** Cancels the command that works. */
  | { readonly kind: "cancel" }
  /** Puts text on the input line. */
  | { readonly kind: "type"; readonly text: string }
  | { readonly kind: "redraw" }
  | { readonly kind: "suspend" }
  | { readonly kind: "notify"; readonly text: string }
  /** The status line shows figures that are read from elsewhere. */
  | { readonly kind: "refresh"; readonly isMoneyToo: boolean }
  /** The conversation continues at another point, so the screen shows what was said up to there. */
  | { readonly kind: "showConversation" }
  | { readonly kind: "explainFamily"; readonly family: string }
  | { readonly kind: "explainMiss"; readonly agent: string }
  | { readonly kind: "quit" };

export type AnswerChoice = "once" | "always" | "no" | "stop";

export type Step = {
  readonly state: State;
  readonly effects: readonly Effect[];
  /** False: the key was not for the screen, so the input line gets it. */
  readonly isHandled?: boolean;
};

export const stay = (state: State): Step => ({ state, effects: [] });
