/** The lock of a session: at most one process writes it.
 *  Invariant: whatever keeps a session from being locked is an error of its journal.
 *  Elsewhere: how a folder is locked (@prefork/guard). */

import { acquireLock, type Folder, firstLock, type Lock, type LockHolder } from "@prefork/guard/internal";
import { journalErrorOf } from "./errors.ts";

export const lockSession = async (folder: Folder, session: string, self: LockHolder): Promise<Lock> => {
  try {
    return await acquireLock(folder, `session ${session}`, self);
  } catch (error) {
    throw journalErrorOf(error, folder.path.toString());
  }
};

/** In a folder that was just made: nobody has been there. */
export const lockNewSession = async (folder: Folder, session: string, self: LockHolder): Promise<Lock> => {
  try {
    return await firstLock(folder, `session ${session}`, self);
  } catch (error) {
    throw journalErrorOf(error, folder.path.toString());
  }
};
