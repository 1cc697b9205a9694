/** Which processes are still there? A dead one that nobody has collected yet is not. */

import { readFileSync } from "node:fs";
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
