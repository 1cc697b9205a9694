/** How does a tree become again what it was?
 *  Invariant: everything is done from held folders without following links, what is new is taken away before what was
 *  there is put back, and times of folders come last; each difference ends as reverted or with the reason why not.
 *  Elsewhere: finding differences (audit.ts), what was recorded (tree-record.ts). */

import { type BigIntStats, constants } from "node:fs";
import { type FileHandle, mkdir, open, rename, rmdir, symlink, unlink } from "node:fs/promises";
import { type Folder, isSame, newDraftName, refusalOf } from "../files/index.ts";
import { keyOf, type Recorded, type RecordedTree, type TreeRecord } from "./tree-record.ts";

export type Breach = { readonly path: string; readonly change: "created" | "changed" | "removed" };

export type Reverted = Breach & ({ readonly reverted: true } | { readonly reverted: false; readonly reason: string });

/** A breach with what revert needs to know. */
export type Difference = Breach & { readonly before: Recorded | undefined; readonly now: Recorded | undefined };

const OVERWRITE = constants.O_WRONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
const CREATE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;

class CannotRevert extends Error {}

/** Goes down to the folder that holds the last of the names. */
export const inFolderOf = async <T>(
  top: Folder,
  names: readonly Buffer[],
  use: (folder: Folder, name: Buffer) => Promise<T>,
): Promise<T> => {
  const [first, ...rest] = names;
  if (first === undefined) throw new CannotRevert("the watched folder itself is gone");
  if (rest.length === 0) {
    await top.verify();
    return use(top, first);
  }
  await using entered = await top.enter(first);
  return await inFolderOf(entered, rest, use);
};

const seconds = (ns: bigint): number => Number(ns) / 1e9;

const restoreAttributes = async (handle: FileHandle, stats: BigIntStats): Promise<void> => {
  const now = await handle.stat({ bigint: true });
  if (now.uid !== stats.uid || now.gid !== stats.gid) await handle.chown(Number(stats.uid), Number(stats.gid));
  await handle.chmod(Number(stats.mode) & 0o7777);
  await handle.utimes(seconds(stats.atimeNs), seconds(stats.mtimeNs));
};

const remove = async (folder: Folder, name: Buffer): Promise<void> => {
  const stats = await folder.look(name);
  if (stats === undefined) return;
  if (stats.isDirectory()) await rmdir(folder.at(name));
  else await unlink(folder.at(name));
};

/** In place where it is the same file still, so that its other names keep it. */
const overwrite = async (folder: Folder, name: Buffer, { stats, content }: Recorded): Promise<boolean> => {
  const now = await folder.look(name);
  // The number of a file that is gone may be a folder's by now.
  if (content === undefined || !now?.isFile() || !isSame(now, stats)) return false;
  try {
    await using handle = await open(folder.at(name), OVERWRITE);
    if (!isSame(await handle.stat({ bigint: true }), stats)) return false;
    await handle.truncate(0);
    await handle.write(content, 0, content.length, 0);
    await restoreAttributes(handle, stats);
    return true;
  } catch (error) {
    if (["EACCES", "EPERM", "ETXTBSY", "ELOOP"].includes((error as NodeJS.ErrnoException).code ?? "")) return false;
    throw error;
  }
};

const create = async (folder: Folder, name: Buffer, recorded: Recorded): Promise<void> => {
  const { kind, stats, content } = recorded;
  const draft = newDraftName();
  if (kind === "folder") return mkdir(folder.at(name), { mode: 0o700 });
  if (content === undefined)
    throw new CannotRevert(kind === "other" ? "it was no plain file" : "its bytes were over the bound and not kept");
  if (kind === "link") await symlink(content, folder.at(draft));
  else {
    await using handle = await open(folder.at(draft), CREATE, 0o600);
    await handle.writeFile(content);
    await restoreAttributes(handle, stats);
    await handle.sync();
  }
  await rename(folder.at(draft), folder.at(name));
};

const restore = async (folder: Folder, name: Buffer, { before, now }: Difference): Promise<void> => {
  if (before === undefined) return;
  if (before.kind === "folder" && now?.kind === "folder") return; // bits and times follow at the end
  if (before.kind === "file" && (await overwrite(folder, name, before))) return;
  if (before.kind === "file" && before.content === undefined)
    throw new CannotRevert("its bytes were over the bound and not kept");
  if (before.kind === "other") throw new CannotRevert("it was no plain file");
  if (now !== undefined && (now.kind === "folder") !== (before.kind === "folder")) await remove(folder, name);
  await create(folder, name, before);
};

const restoreFolder = async (folder: Folder, name: Buffer, { stats }: Recorded): Promise<void> => {
  await using entered = await folder.enter(name);
  await restoreAttributes(entered.handle, stats);
};

/** Folders whose times moved because something in them was put back: all that hold a difference. */
const touchedFolders = (record: TreeRecord, found: readonly Difference[]): readonly Recorded[] => {
  const keys = new Set<string>();
  for (const { before, now } of found) {
    const names = (before ?? now)?.names ?? [];
    for (let length = names.length; length > 0; length--) keys.add(keyOf(names.slice(0, length)));
  }
  return [...keys].flatMap((key) => {
    const recorded = record.get(key);
    return recorded?.kind === "folder" ? [recorded] : [];
  });
};

const depth = ({ before, now }: Difference): number => ((before ?? now)?.names ?? []).length;

export const revertBreaches = async (
  { folder: top, stats, record }: RecordedTree,
  found: readonly Difference[],
): Promise<readonly Reverted[]> => {
  const failed = new Map<Difference, string>();
  const attempt = async (
    difference: Difference,
    act: (folder: Folder, name: Buffer) => Promise<void>,
  ): Promise<void> => {
    try {
      await inFolderOf(top, (difference.before ?? difference.now)?.names ?? [], act);
    } catch (error) {
      failed.set(difference, error instanceof CannotRevert ? error.message : refusalOf(error).reason);
    }
  };
  const created = found.filter(({ before }) => before === undefined).sort((a, b) => depth(b) - depth(a));
  for (const difference of created) await attempt(difference, remove);
  const lost = found.filter(({ before }) => before !== undefined).sort((a, b) => depth(a) - depth(b));
  for (const difference of lost) await attempt(difference, (folder, name) => restore(folder, name, difference));
  const folders = [...touchedFolders(record, found)].sort((a, b) => b.names.length - a.names.length);
  for (const folder of folders)
    await inFolderOf(top, folder.names, (above, name) => restoreFolder(above, name, folder)).catch((error) => {
      const difference = found.find(({ before }) => before === folder);
      if (difference !== undefined) failed.set(difference, refusalOf(error).reason);
    });
  if (found.length > 0) await restoreAttributes(top.handle, stats).catch(() => undefined); // each difference was told
  return found.map((difference): Reverted => {
    const { path, change } = difference;
    const reason = failed.get(difference);
    return reason === undefined ? { path, change, reverted: true } : { path, change, reverted: false, reason };
  });
};
