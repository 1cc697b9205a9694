/** Resolves the folder that a flag such as `--cwd` names. */

import { realpath, stat } from "node:fs/promises";
import { resolve } from "node:path";
import { UsageError } from "./io.ts";

/** The real path, so that sessions are found again whichever symbolic link was used. */
export const resolveFolder = async (path: string, flag: string): Promise<string> => {
  try {
    const folder = await realpath(resolve(path));
    if ((await stat(folder)).isDirectory()) return folder;
  } catch (cause) {
    const { code, syscall } = cause as NodeJS.ErrnoException;
    if (syscall === "uv_cwd") throw cause; // the working folder itself was deleted
    const isMissing = code === "ENOENT" || code === "ENOTDIR";
    const reason = isMissing ? "there is no such folder" : `this folder cannot be opened (${code})`;
    throw new UsageError(`${flag} ${path}: ${reason}`, { cause });
  }
  throw new UsageError(`${flag} ${path} is not a folder`);
};
