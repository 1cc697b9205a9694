/** What `explain`, `ps`, `tasks` and `sessions` share: where sessions are stored, how errors of a journal are reported,
 *  and how text is fitted into lines.
 *  Invariant: reading changes nothing and takes no lock.
 *  Elsewhere: reading journals (@prefork/runtime). */

import { homedir } from "node:os";
import { stateFolder } from "@prefork/guard";
import { JournalError } from "@prefork/runtime";
import type { SessionStore, UnreadableSession } from "@prefork/runtime/observe";
import { type Io, UsageError } from "../io.ts";
import { visible } from "../visible.ts";
import { terminalColumns, truncateText, widthOf } from "../width.ts";

export const storeFor = ({ env }: Io): SessionStore => ({
  state: stateFolder(env, env.HOME || homedir()),
  now: Date.now,
  newId: () => "",
});

/** The state could not be read or written. Every other reason is a usage error. */
const FAILURES: readonly JournalError["reason"][] = ["disk-full", "insecure", "damaged", "io"];

export const withJournalErrors = async (act: () => Promise<void>): Promise<void> => {
  try {
    await act();
  } catch (error) {
    if (error instanceof JournalError && !FAILURES.includes(error.reason))
      throw new UsageError(error.message, { cause: error });
    throw error;
  }
};

/** The list is incomplete without this session, so the exit code is 1. */
export const reportUnreadable =
  (io: Io) =>
  ({ id, reason }: UnreadableSession): void => {
    io.err(`prefork: session ${inLine(id)} cannot be read: ${inLine(reason)}\n`);
    io.exitWith(1);
  };

/** Damage is reported on standard error, whatever the output format. */
export const reportProblem =
  (io: Io) =>
  (problem: string): void =>
    io.err(`prefork: skipped: ${inLine(problem)}\n`);

/** Which of these sessions can be attached to? Each of them is open in a process. */
export const attachable = async (sessions: readonly string[], io: Io): Promise<readonly string[]> => {
  if (sessions.length === 0) return [];
  const { findSockets } = await import("../attach/index.ts");
  const open = new Set((await findSockets({ state: storeFor(io).state, env: io.env })).map(({ session }) => session));
  return [...new Set(sessions)].filter((session) => open.has(session));
};

const MAX_HINTS = 3;

/** One line for each running session that can be attached to, after a list. */
export const attachHints = async (sessions: readonly string[], io: Io): Promise<string> =>
  (await attachable(sessions, io))
    .slice(0, MAX_HINTS)
    .map((session) => `Session ${session} is running (attach: prefork attach ${session})\n`)
    .join("");

/** Text from a journal, made safe for one line of a terminal. */
export const inLine = (text: string, most = Number.POSITIVE_INFINITY): string => {
  return truncateText(visible(text.replace(/\s+/g, " ").trim()), most);
};

/** An id without the prefix that all task ids have; commands accept both forms. */
export const shortId = (id: string): string => inLine(id.replace(/^task-(?=.)/, ""));

type Wrapping = {
  readonly indent?: number; // before the first line; default: 0
  readonly hang?: number; // how much further to the right the other lines start; default: 2
};

/** Lines that fit the output, broken between words. */
export const wrapped = (text: string, { indent = 0, hang = 2 }: Wrapping = {}): string => {
  const [first = "", ...words] = text.split(" ");
  const lines = [`${" ".repeat(indent)}${first}`];
  for (const word of words) {
    const longer = `${lines.at(-1)} ${word}`;
    if (widthOf(longer) <= outputWidth()) lines[lines.length - 1] = longer;
    else lines.push(`${" ".repeat(indent + hang)}${word}`);
  }
  return lines.map((line) => `${line}\n`).join("");
};

const WIDTH = 100;

/** The terminal's columns, and never more than 100. */
export const outputWidth = (): number => Math.min(WIDTH, terminalColumns() ?? WIDTH);
