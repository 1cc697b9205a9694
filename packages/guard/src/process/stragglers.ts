/** Finds and ends processes that a command left behind by leaving its process group (setsid).
 *  Invariant: a process is ours only if its environment contains our mark, a number that nobody can guess. It is signalled only
 *  while it is still the process that was inspected (same pid, same start time). Linux only: elsewhere nothing is found.
 *  Not found: processes started without the environment (`env -i`), and those of another user.
 *  Elsewhere: the process group itself (../tools), the sandbox, where everything ends with its first process (../run). */

import { randomBytes } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as after } from "node:timers/promises";

export const MARK = "PREFORK_COMMAND";

type Environment = Readonly<Record<string, string | undefined>>;

/** Deeper than anybody nests. Without a limit, the mark could fill the environment. */
const MAX_MARK_LENGTH = 400;

/** A new mark, nested below the one in the environment if there is one: ending the outer command ends this one too. */
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
    return false; // it has ended, or belongs to another user
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
    // it has ended in the meantime
  }
};

const GRACE_MS = 1_000;
const MAX_ROUNDS = 10;

/** Sends SIGTERM to all processes with the mark, then SIGKILL after a grace period, including any they start meanwhile. */
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
