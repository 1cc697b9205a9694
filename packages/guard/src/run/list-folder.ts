/** The names in a folder, up to a bound.
 *  Invariant: a folder of a million names takes no longer than one that fills the bound.
 *  Elsewhere: what is done with them (secret-walk.ts, git-links.ts, waiting-files.ts). */

import { type Dirent, opendirSync, readdirSync, statSync } from "node:fs";

const AT_ONCE = 128;

/** What file systems give as the size of a folder grows with its names. Reading one at a time takes twice as long. */
const LARGE_BYTES = 65_536;

/** One more than `most` where there are more. Throws where the folder cannot be listed. */
export const listFolder = (path: string | Buffer, most: number, encoding: BufferEncoding = "utf8"): Dirent[] => {
  if (statSync(path).size < LARGE_BYTES) return readdirSync(path, { withFileTypes: true, encoding }).slice(0, most + 1);
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
