/** What `explain`, `ps` and `tasks` have in common: where sessions are kept, and how a journal's refusal is told.
 *  Invariant: looking changes nothing and takes no lock; what a journal says about itself is for whoever called.
 *  Elsewhere: reading journals (@prefork/runtime). */

import { homedir } from "node:os";
import { stateFolder } from "@prefork/guard";
import { JournalError } from "@prefork/runtime";
import type { SessionStore, UnreadableSession } from "@prefork/runtime/observe";
import { type Io, UsageError } from "../io.ts";
import { visible } from "../visible.ts";
import { shortened, terminalColumns, widthOf } from "../width.ts";

export const storeFor = ({ env }: Io): SessionStore => ({
  state: stateFolder(env, env.HOME || homedir()),
  now: Date.now,
  newId: () => "",
});

/** State that cannot be read or written; everything else is about what the caller asked for. */
const FAILURES: readonly JournalError["reason"][] = ["disk-full", "insecure", "damaged", "io"];

export const said = async (act: () => Promise<void>): Promise<void> => {
  try {
    await act();
  } catch (error) {
    if (error instanceof JournalError && !FAILURES.includes(error.reason))
      throw new UsageError(error.message, { cause: error });
    throw error;
  }
};

/** A list without this session is incomplete, which is a failure. */
export const reportUnreadable =
  (io: Io) =>
  ({ id, reason }: UnreadableSession): void => {
    io.err(`prefork: session ${inLine(id)} cannot be read: ${inLine(reason)}\n`);
    io.exitWith(1);
  };

/** Damage is told beside what could be read, whatever the format. */
export const reportProblem =
  (io: Io) =>
  (problem: string): void =>
    io.err(`prefork: passed over: ${inLine(problem)}\n`);

/** Text from a journal as it may stand in one line of a terminal. */
export const inLine = (text: string, most = Number.POSITIVE_INFINITY): string => {
  return shortened(visible(text.replace(/\s+/g, " ").trim()), most);
};

/** An id without the word that all ids of tasks begin with: commands take both. */
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
