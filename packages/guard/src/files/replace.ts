/** How a file gets new content: whole or not at all, in the folder we hold and nowhere else.
 *  Invariant: nothing that exists is opened for writing; a new file is filled, synced, then renamed over the name, and a
 *  rename replaces what stands under the name without following it.
 *  Elsewhere: holding the folder (folder.ts), who may write what (root.ts). */

import { type BigIntStats, constants } from "node:fs";
import { type FileHandle, open, rename, unlink } from "node:fs/promises";
import { newDraftName, noteDraft } from "./drafts.ts";
import { type Folder, isSame, SwappedError } from "./folder.ts";

export type Replacement = {
  readonly folder: Folder;
  readonly name: string;
  readonly content: string | Uint8Array;
  /** What stood there when it was checked; undefined: nothing. */
  readonly before: BigIntStats | undefined;
  /** Permission bits of a new file; undefined: as the process's umask says. A file that exists keeps its own. */
  readonly mode: number | undefined;
  /** Where drafts are noted, so that one of a process that dies is taken away later. */
  readonly drafts?: string | undefined;
};

const CREATE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;

const hasChanged = (before: BigIntStats | undefined, now: BigIntStats | undefined): boolean =>
  before === undefined || now === undefined ? before !== now : versionOf(before) !== versionOf(now);

/** Two equal versions are the same bytes: the kernel moves the change time by itself. */
export const versionOf = (stats: BigIntStats): string =>
  [stats.dev, stats.ino, stats.size, stats.mtimeNs, stats.ctimeNs].join(":");

/** Keeps bits and owner; the bits that run a file as somebody else are left out, since its content is no longer his. */
const keepAttributes = async (handle: FileHandle, { before, mode }: Replacement): Promise<void> => {
  if (before === undefined) {
    if (mode !== undefined) await handle.chmod(mode); // the umask had its say at creation; here the caller has
    return;
  }
  const made = await handle.stat({ bigint: true });
  if (made.uid !== before.uid || made.gid !== before.gid)
    await handle.chown(Number(before.uid), Number(before.gid)).catch(() => undefined); // only the superuser may give away
  await handle.chmod(Number(before.mode) & 0o777);
};

/** Asked before a byte is in it: where only names can be used, it may have been made in another folder. */
const mustBeIn = async (folder: Folder, name: string, handle: FileHandle): Promise<void> => {
  await folder.verify();
  const [seen, held] = await Promise.all([folder.look(name), handle.stat({ bigint: true })]);
  if (seen === undefined || !isSame(seen, held)) throw new SwappedError("a folder of the path was replaced meanwhile");
};

/** Gives the facts of the file that now stands under the name. */
export const replaceFile = async (wanted: Replacement): Promise<BigIntStats> => {
  const { folder } = wanted;
  const draft = newDraftName();
  await folder.verify();
  const forget = await noteDraft(wanted.drafts, Buffer.concat([folder.path, Buffer.from(`/${draft}`)]));
  try {
    return await fillAndRename(wanted, draft);
  } finally {
    await forget();
  }
};

const fillAndRename = async (wanted: Replacement, draft: string): Promise<BigIntStats> => {
  const { folder, name, content, before } = wanted;
  const handle = await open(folder.at(draft), CREATE, wanted.mode ?? (before === undefined ? 0o666 : 0o600));
  try {
    await mustBeIn(folder, draft, handle);
    await handle.writeFile(content);
    await keepAttributes(handle, wanted);
    await handle.sync();
    const made = await handle.stat({ bigint: true });
    await folder.verify();
    if (hasChanged(before, await folder.look(name)))
      throw new SwappedError("the file was changed meanwhile; read it again");
    await rename(folder.at(draft), folder.at(name));
    await folder.handle.sync().catch(() => undefined); // some file systems cannot sync a folder; the file itself is
    const now = await folder.look(name);
    if (now === undefined || !isSame(made, now)) throw new SwappedError("the file was replaced while it was written");
    return now;
  } catch (error) {
    await unlink(folder.at(draft)).catch(() => undefined);
    throw error;
  } finally {
    await handle.close();
  }
};
