/** The names in a folder, up to a bound.
 *  Invariant: a folder of a million names takes no longer than one that fills the bound.
 *  Elsewhere: what is done with them (secret-walk.ts, git-links.ts, waiting-files.ts). */

import { type Dirent, opendirSync } from "node:fs";

const AT_ONCE = 128;

/** One more than `most` where there are more. Throws where the folder cannot be listed. */
export const listFolder = (path: string | Buffer, most: number, encoding: BufferEncoding = "utf8"): Dirent[] => {
  const folder = opendirSync(path as string, { bufferSize: AT_ONCE, encoding });
  const found: Dirent[] = [];
  try {
    while (found.length <= most) {
      const entry = folder.readSync();
      if (entry === null) break;
      found.push(entry);
    }
  } finally {
    folder.closeSync();
  }
  return found;
};
