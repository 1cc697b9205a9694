/** Which processes are still there? A dead one that nobody has collected yet is not. */

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

/** Resolves when it is so; the runner's own limit ends a test that waits for ever. */
export const until = async (isSo: () => boolean): Promise<void> => {
  while (!isSo()) await after(10);
};

/** The numbers that a command has written to a file, one a line. */
export const pidsIn = (file: string): readonly number[] => {
  try {
    return readFileSync(file, "utf8").split("\n").filter(Boolean).map(Number);
  } catch {
    return [];
  }
};

/** Command lines of all processes that name these words. */
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

/** What is left of them: what was told to end needs a moment to be gone, and on a busy machine a long one. */
export const goneWithin = async (words: string, tries = 500): Promise<readonly string[]> => {
  const left = processesWith(words);
  if (left.length === 0 || tries === 0) return left;
  await after(20);
  return goneWithin(words, tries - 1);
};
