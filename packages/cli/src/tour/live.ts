/** What each fork is doing, while it does it.
 *  Invariant: on a terminal a line a fork, rewritten in place and gone at the end; elsewhere one line when a fork has
 *  ended, and an empty one below them. What a model chose to call things cannot act on the terminal.
 *  Elsewhere: what happens (RuntimeEvent of @prefork/runtime), what came of it (../commands/tour-report.ts). */

import type { RuntimeEvent } from "@prefork/runtime";
import type { JsonObject } from "@prefork/wire";
import type { Io } from "../io.ts";
import { visible } from "../visible.ts";

export type ForkProgress = {
  readonly id: string;
  readonly name: string;
  readonly turn: number;
  /** What it waits for, calls, or has come to. */
  readonly doing: string;
  readonly tools: readonly string[];
  readonly isEnded: boolean;
};

export type Progress = {
  /** Names below it are shown without it. */
  readonly folder: string;
  readonly forks: readonly ForkProgress[];
};

export const NOTHING_YET: Progress = { folder: "", forks: [] };

/** After something happened; the same object where it shows nowhere. */
export const afterEvent = (progress: Progress, event: RuntimeEvent): Progress => {
  const { folder, forks } = progress;
  if (event.type === "session_opened") return { ...progress, folder: event.cwd };
  if (event.type === "fork_started") {
    const { taskId: id, label: name } = event;
    return { folder, forks: [...forks, { id, name, turn: 0, doing: "starting", tools: [], isEnded: false }] };
  }
  const fork = forks.find(({ id }) => id === event.agent);
  const next = fork && forkAfter(fork, event, folder);
  return next ? { folder, forks: forks.map((each) => (each === fork ? next : each)) } : progress;
};

const forkAfter = (fork: ForkProgress, event: RuntimeEvent, folder: string): ForkProgress | undefined => {
  switch (event.type) {
    case "turn_started":
      return { ...fork, turn: event.turn, doing: "asking the engine" };
    case "call_proposed": {
      const doing = callWords(event.tool, event.args).replaceAll(`${folder}/`, "");
      return { ...fork, doing, tools: [...fork.tools, event.tool] };
    }
    case "question_asked":
      return { ...fork, doing: `waiting for leave: ${event.reason}` };
    case "task_ended":
      return { ...fork, doing: event.end, isEnded: true };
    default:
      return undefined;
  }
};

/** The tool, and the one argument that says most. */
const callWords = (tool: string, { command, pattern, file_path: file, path }: JsonObject): string => {
  const [what] = [command, pattern, file].filter((each) => typeof each === "string");
  return [tool, what, ...(typeof path === "string" ? [`in ${path}`] : [])].join(" ");
};

const MOST_LETTERS = 90;
const NAME_LETTERS = 8;

export const progressWords = ({ name, turn, doing, tools, isEnded }: ForkProgress): string => {
  const running = turn === 0 ? doing : `turn ${turn}  ${doing}`;
  const now = isEnded ? `${doing} after ${turn} ${turn === 1 ? "turn" : "turns"}: ${tools.join(", ")}` : running;
  const letters = [...visible(`  ${name.padEnd(NAME_LETTERS)} ${now}`.replace(/\s*[\n\t]\s*/g, " "))];
  return letters.length > MOST_LETTERS ? `${letters.slice(0, MOST_LETTERS - 1).join("")}…` : letters.join("");
};

export type Live = { readonly heard: (event: RuntimeEvent) => void; readonly clear: () => void };

export const openLive = (io: Io): Live => (io.isTerminal ? inPlace(io) : asLines(io));

/** Without wrapping: a line that became two would no longer be found again. */
const UNWRAPPED = ["\u001b[?7l", "\u001b[?7h"] as const;

const inPlace = (io: Io): Live => {
  let progress = NOTHING_YET;
  let drawn = 0;
  const back = (): string => (drawn === 0 ? "" : `\u001b[${drawn}A\r`);
  return {
    heard: (event) => {
      const { forks } = progress;
      progress = afterEvent(progress, event);
      if (progress.forks === forks) return;
      const lines = progress.forks.map((fork) => `\u001b[2K${progressWords(fork)}\n`);
      io.err(`${back()}${UNWRAPPED[0]}${lines.join("")}${UNWRAPPED[1]}`);
      drawn = lines.length;
    },
    clear: () => {
      if (drawn > 0) io.err(`${back()}\u001b[0J`);
      drawn = 0;
    },
  };
};

const asLines = (io: Io): Live => {
  let progress = NOTHING_YET;
  return {
    heard: (event) => {
      const { forks } = progress;
      progress = afterEvent(progress, event);
      for (const fork of progress.forks) if (fork.isEnded && !forks.includes(fork)) io.out(`${progressWords(fork)}\n`);
    },
    clear: () => {
      if (progress.forks.some(({ isEnded }) => isEnded)) io.out("\n");
      progress = NOTHING_YET;
    },
  };
};
