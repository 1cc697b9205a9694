/** Shows what each fork is doing while it works.
 *  Invariant: on a terminal there is one line per fork, rewritten in place and removed at the end. Elsewhere there is one
 *  line when a fork ends, and an empty line after the last. No name that a model chose can control the terminal.
 *  Elsewhere: the events (RuntimeEvent of @prefork/runtime), the results (../commands/tour-report.ts). */

import type { RuntimeEvent } from "@prefork/runtime";
import type { JsonObject } from "@prefork/wire";
import type { Io } from "../io.ts";
import { visible } from "../visible.ts";
import { terminalColumns, truncateText } from "../width.ts";

export type ForkProgress = {
  readonly id: string;
  readonly name: string;
  readonly turn: number;
  /** What it waits for, what it calls, or how it ended. */
  readonly doing: string;
  readonly tools: readonly string[];
  readonly isEnded: boolean;
};

export type Progress = {
  /** Paths below this folder are shown relative to it. */
  readonly folder: string;
  readonly forks: readonly ForkProgress[];
};

export const NOTHING_YET: Progress = { folder: "", forks: [] };

/** Returns the same object when the event changes nothing that is shown. */
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
      const doing = callText(event.tool, event.args).replaceAll(`${folder}/`, "");
      return { ...fork, doing, tools: [...fork.tools, event.tool] };
    }
    case "question_asked":
      return { ...fork, doing: `waiting for permission: ${event.reason}` };
    case "task_ended":
      return { ...fork, doing: event.end, isEnded: true };
    default:
      return undefined;
  }
};

/** The tool and its most telling argument. */
const callText = (tool: string, { command, pattern, file_path: file, path }: JsonObject): string => {
  const [what] = [command, pattern, file].filter((each) => typeof each === "string");
  return [tool, what, ...(typeof path === "string" ? [`in ${path}`] : [])].join(" ");
};

const MAX_WIDTH = 90;
const NAME_WIDTH = 8;

export const progressText = ({ name, turn, doing, tools, isEnded }: ForkProgress): string => {
  const running = turn === 0 ? doing : `turn ${turn}  ${doing}`;
  const now = isEnded ? `${doing} after ${turn} ${turn === 1 ? "turn" : "turns"}: ${tools.join(", ")}` : running;
  const line = visible(`  ${name.padEnd(NAME_WIDTH)} ${now}`.replace(/\s*[\n\t]\s*/g, " "));
  return truncateText(line, Math.min(MAX_WIDTH, terminalColumns() ?? MAX_WIDTH));
};

export type Live = { readonly show: (event: RuntimeEvent) => void; readonly clear: () => void };

export const openLive = (io: Io): Live => (io.isTerminal ? inPlace(io) : asLines(io));

/** Turns line wrapping off and on: a wrapped line would take two rows, and moving back up would miss it. */
const UNWRAPPED = ["\u001b[?7l", "\u001b[?7h"] as const;

const inPlace = (io: Io): Live => {
  let progress = NOTHING_YET;
  let drawn = 0;
  const back = (): string => (drawn === 0 ? "" : `\u001b[${drawn}A\r`);
  return {
    show: (event) => {
      const { forks } = progress;
      progress = afterEvent(progress, event);
      if (progress.forks === forks) return;
      const lines = progress.forks.map((fork) => `\u001b[2K${progressText(fork)}\n`);
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
    show: (event) => {
      const { forks } = progress;
      progress = afterEvent(progress, event);
      for (const fork of progress.forks) if (fork.isEnded && !forks.includes(fork)) io.out(`${progressText(fork)}\n`);
    },
    clear: () => {
      if (progress.forks.some(({ isEnded }) => isEnded)) io.out("\n");
      progress = NOTHING_YET;
    },
  };
};
