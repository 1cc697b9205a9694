/** Describes an unexpected error in a file of the private state folder.
 *  Invariant: the file can be read by its owner only, and has nothing of the environment; if it cannot be written, the error
 *  itself is printed instead.
 *  Elsewhere: restoring the terminal first (open-terminal.ts). */

import { homedir } from "node:os";
import { join } from "node:path";
import type { Io } from "../io.ts";
import { safeLine } from "./state/index.ts";

/** Returns the line that tells the user. */
export const logCrash = async (error: unknown, { env }: Io): Promise<string> => {
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  try {
    const { openPrivateFolder, stateFolder } = await import("@prefork/guard");
    const opened = await openPrivateFolder(join(stateFolder(env, env.HOME || homedir()), "crashes"));
    if (!opened.ok) throw new Error(opened.reason);
    await using folder = opened.root;
    const now = new Date().toISOString();
    const file = join(folder.path, `${now.replaceAll(":", "-")}-${process.pid}.txt`);
    const written = await folder.write(
      file,
      `${now} Node ${process.version} ${process.platform}\n${causesOf(error)}\n`,
    );
    if (!written.ok) throw new Error(written.reason);
    return `prefork: an unexpected error ended the terminal; it is described in ${safeLine(file)}`;
  } catch {
    return `prefork: an unexpected error ended the terminal: ${safeLine(text)}`;
  }
};

/** The error, and what caused it. */
const causesOf = (error: unknown, depth = 0): string => {
  if (!(error instanceof Error)) return String(error);
  const text = error.stack ?? error.message;
  return error.cause === undefined || depth > 5 ? text : `${text}\ncaused by: ${causesOf(error.cause, depth + 1)}`;
};
