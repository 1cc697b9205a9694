/** Processes that a command left behind by leaving its process group (setsid), found again and ended.
 *  Invariant: a process is ours only if its environment holds our mark, which is a number that nobody can guess; it is
 *  ended only while it is still the process that was looked at (same number, same start). Linux alone: elsewhere nothing
 *  is found, and nothing is ended.
 *  Not found: what was started without its environment (`env -i`), and what another user owns.
 *  Elsewhere: the group itself (../tools), the sandbox, where everything ends with its first process (sandbox.ts). */

import { randomBytes } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as after } from "node:timers/promises";

export const MARK = "PREFORK_COMMAND";

type Environment = Readonly<Record<string, string | undefined>>;

/** Deeper than anybody nests; a mark that grew for ever would fill the environment. */
const MAX_MARK_LENGTH = 400;

/** A mark below the one that stands in the environment, if one does: whoever ends that one ends this one too. */
export const newMark = ({ [MARK]: above }: Environment = {}): string => {
  const own = randomBytes(8).toString("hex");
  return above === undefined || above.length > MAX_MARK_LENGTH ? own : `${above}/${own}`;
};

type Straggler = { readonly pid: number; readonly started: string };

const startOf = (pid: number): string | undefined => {
  try {
    const line = readFileSync(`/proc/${pid}/stat`, "latin1");
    const fields = line.slice(line.lastIndexOf(")") + 2).split(" ");
    return fields[0] === "Z" || fields[0] === "X" ? undefined : fields[19];
  } catch {
    return undefined;
  }
};

const carriesMark = (pid: number, mark: string): boolean => {
  try {
    const entry = `\0${readFileSync(`/proc/${pid}/environ`, "latin1")}`;
    const at = entry.indexOf(`\0${MARK}=${mark}`);
    return at >= 0 && /^(?:\0|\/|$)/.test(entry.slice(at + MARK.length + mark.length + 2));
  } catch {
    return false; // it has ended, or is another user's
  }
};

const findStragglers = (mark: string): readonly Straggler[] => {
  if (process.platform !== "linux") return [];
  return readdirSync("/proc").flatMap((name) => {
    const pid = Number(name);
    if (!Number.isInteger(pid) || pid === process.pid || !carriesMark(pid, mark)) return [];
    const started = startOf(pid);
    return started === undefined ? [] : [{ pid, started }];
  });
};

const signal = ({ pid, started }: Straggler, name: NodeJS.Signals): void => {
  if (startOf(pid) !== started) return;
  try {
    process.kill(pid, name);
  } catch {
    // it has ended meanwhile
  }
};

const GRACE_MS = 1_000;
const MAX_ROUNDS = 10;

/** Asks all that bear the mark to end, and after a while makes them: also those that they start meanwhile. */
export const endStragglers = async (mark: string): Promise<void> => {
  let left = findStragglers(mark);
  if (left.length === 0) return;
  for (const one of left) signal(one, "SIGTERM");
  for (let waited = 0, step = 5; left.length > 0 && waited < GRACE_MS; waited += step, step = Math.min(2 * step, 80)) {
    await after(step);
    left = left.filter(({ pid, started }) => startOf(pid) === started);
  }
  for (let round = 0; round < MAX_ROUNDS; round++) {
    left = findStragglers(mark);
    if (left.length === 0) return;
    for (const one of left) signal(one, "SIGKILL");
    await after(10);
  }
};
