/** Where does a name lead, as the kernel goes there?
 *  Invariant: nothing is folded: `..` after a link is the folder above where it leads, not the one above its name, so a
 *  name is looked at in just the file that the program will open.
 *  Elsewhere: names as they are written (../bash), what may not be read (render-pipe.ts). */

import { realpathSync } from "node:fs";
import { isAbsolute } from "node:path";

/** A name as it is asked for from a folder. Not for `cd`, which goes back by name. */
export const reached = (folder: string, name: string): string =>
  isAbsolute(name) ? name : `${folder}${folder.endsWith("/") ? "" : "/"}${name}`;

/** The place itself; the name where nothing is there. */
export const canonical = (path: string): string => {
  try {
    return realpathSync.native(path);
  } catch {
    return path;
  }
};
