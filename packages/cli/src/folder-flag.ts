/** Which folder does `--cwd`, or another flag that names a folder, mean? */

import { realpath, stat } from "node:fs/promises";
import { resolve } from "node:path";
import { UsageError } from "./io.ts";

/** The folder as the kernel names it: sessions are found again under that name, whichever link led here. */
export const folderAt = async (path: string, flag: string): Promise<string> => {
  try {
    const folder = await realpath(resolve(path));
    if ((await stat(folder)).isDirectory()) return folder;
  } catch (cause) {
    const { code, syscall } = cause as NodeJS.ErrnoException;
    if (syscall === "uv_cwd") throw cause; // the working folder itself is gone
    const isMissing = code === "ENOENT" || code === "ENOTDIR";
    const reason = isMissing ? "there is no such folder" : `this folder cannot be opened (${code})`;
    throw new UsageError(`${flag} ${path}: ${reason}`, { cause });
  }
  throw new UsageError(`${flag} ${path} is no folder`);
};
