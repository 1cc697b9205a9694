/** Which processes are still running? A zombie, which exited but was not collected yet, does not count. */

import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as after } from "node:timers/promises";

export const isRunning = (pid: number): boolean => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return !/^Z|^X/.test(stat.slice(stat.lastIndexOf(")") + 2));
  } catch {
    return false;
  }
};

/** Resolves once the condition holds; the runner's timeout ends a test that waits forever. */
export const until = async (condition: () => boolean): Promise<void> => {
  while (!condition()) await after(10);
};

/** The process ids that a command has written to a file, one per line. */
export const pidsIn = (file: string): readonly number[] => {
  try {
    return readFileSync(file, "utf8").split("\n").filter(Boolean).map(Number);
  } catch {
    return [];
  }
};

/** The command lines of all processes that contain these words. */
const processesWith = (words: string): readonly string[] =>
  readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && name !== String(process.pid))
    .flatMap((pid) => {
      try {
        const line = readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
        return line.includes(words) ? [line] : [];
      } catch {
        return [];
      }
    });

/** Waits for processes with these words to exit, and returns those that remain. A killed process needs a moment to
 *  disappear, and longer on a busy machine. */
export const processesLeftAfterWait = async (words: string, tries = 500): Promise<readonly string[]> => {
  const remaining = processesWith(words);
  if (remaining.length === 0 || tries === 0) return remaining;
  await after(20);
  return processesLeftAfterWait(words, tries - 1);
};
