/** The title that the user gave a session, in a file beside its journal.
 *  Invariant: a title can be set while another process writes the session, so it is not in the journal. It is one short
 *  line that is safe on a terminal, and the file is replaced as a whole.
 *  Elsewhere: the title of a session without one (survey.ts). */

import { randomUUID } from "node:crypto";
import { closeSync, constants, fstatSync, lstatSync, openSync, readFileSync } from "node:fs";
import { open, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Folder } from "@prefork/guard/internal";
import { hasCode, toJournalError } from "./errors.ts";
import { requireSessionFolder, requireSessions, type SessionStore } from "./open.ts";
import { describeUnsafe } from "./storage.ts";
import { toShortLine } from "./survey.ts";

const TITLE_FILE = "title";
const MAX_BYTES = 4_096;

/** Undefined if the user set none. */
export const readTitle = (folder: Folder): string | undefined => {
  const path = folder.at(TITLE_FILE);
  if (lstatSync(path, { throwIfNoEntry: false })?.isFile() !== true) return undefined;
  const fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const stats = fstatSync(fd);
    if (!stats.isFile() || stats.size > MAX_BYTES || describeUnsafe(stats, TITLE_FILE) !== undefined) return undefined;
    return toShortLine(readFileSync(fd, "utf8")) || undefined;
  } finally {
    closeSync(fd);
  }
};

/** Returns the title as it is shown from now on; undefined if an empty one removed it. `id` in full. */
export const renameSession = async (store: SessionStore, id: string, title: string): Promise<string | undefined> => {
  await using sessions = await requireSessions(store, id);
  await using folder = await requireSessionFolder(sessions, id);
  const line = toShortLine(title);
  try {
    if (line === "") await rm(folder.at(TITLE_FILE), { force: true });
    else await replaceFile(folder, line);
  } catch (error) {
    throw toJournalError(error, join(folder.path.toString(), TITLE_FILE));
  }
  return line === "" ? undefined : line;
};

const replaceFile = async (folder: Folder, line: string): Promise<void> => {
  const draft = folder.at(`${TITLE_FILE}.${randomUUID()}`);
  try {
    await using handle = await open(draft, "wx", 0o600);
    await handle.writeFile(`${line}\n`);
    await handle.sync();
    await rename(draft, folder.at(TITLE_FILE));
  } catch (error) {
    await rm(draft, { force: true }).catch((cause: unknown) => {
      if (!hasCode(cause, "ENOENT")) throw cause;
    });
    throw error;
  }
};
