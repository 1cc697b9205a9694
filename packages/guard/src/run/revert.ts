/** Restores a tree to what it was.
 *  Invariant: everything is done from held folders without following links. New files are removed before old ones are
 *  restored, permissions that keep us out are opened first, and permissions and times of folders come last. Each
 *  difference ends as reverted or with the reason why not.
 *  Elsewhere: finding differences (audit.ts), what was recorded (tree-record.ts). */

import { type BigIntStats, constants } from "node:fs";
import { type FileHandle, mkdir, open, rename, rmdir, symlink, unlink } from "node:fs/promises";
import { type Folder, isSame, newDraftName, refusalOf } from "../files/index.ts";
import { isOurs, keyOf, type Recorded, type RecordedTree, rightsOf, type TreeRecord } from "./tree-record.ts";

export type Breach = { readonly path: string; readonly change: "created" | "changed" | "removed" };

export type Reverted = Breach & ({ readonly reverted: true } | { readonly reverted: false; readonly reason: string });

/** A breach with what is needed to revert it. */
export type Difference = Breach & { readonly before: Recorded | undefined; readonly now: Recorded | undefined };

const OVERWRITE = constants.O_WRONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
const CREATE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;

class CannotRevert extends Error {}

/** Opens the folder that contains the last name. */
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

/** Restores permissions and times even if the owner cannot be restored. */
const restoreAttributes = async (handle: FileHandle, stats: BigIntStats): Promise<void> => {
  const now = await handle.stat({ bigint: true });
  try {
    if (now.uid !== stats.uid || now.gid !== stats.gid) await handle.chown(Number(stats.uid), Number(stats.gid));
  } finally {
    await handle.chmod(rightsOf(stats));
    await handle.utimes(seconds(stats.atimeNs), seconds(stats.mtimeNs));
  }
};

const remove = async (folder: Folder, name: Buffer): Promise<void> => {
  const stats = await folder.look(name);
  if (stats === undefined) return;
  if (stats.isDirectory()) await rmdir(folder.at(name));
  else await unlink(folder.at(name));
};

/** Writes in place if it is still the same file, so that its other hard links see the change too. */
const overwrite = async (folder: Folder, name: Buffer, { stats, content }: Recorded): Promise<boolean> => {
  const now = await folder.look(name);
  // The inode number of a deleted file may belong to a folder by now.
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
    throw new CannotRevert(
      kind === "other" ? "it was not a regular file" : "its bytes exceeded the limit and were not kept",
    );
  if (kind === "link") {
    await symlink(content, folder.at(draft));
    return rename(folder.at(draft), folder.at(name));
  }
  await using handle = await open(folder.at(draft), CREATE, 0o600);
  try {
    await handle.writeFile(content);
    await handle.sync();
    await rename(folder.at(draft), folder.at(name));
  } catch (error) {
    await unlink(folder.at(draft)).catch(() => undefined);
    throw error;
  }
  await restoreAttributes(handle, stats); // the bytes are restored even if the owner cannot be
};

const restore = async (folder: Folder, name: Buffer, { before, now }: Difference): Promise<void> => {
  if (before === undefined) return;
  if (before.kind === "folder" && now?.kind === "folder") return; // permissions and times follow at the end
  if (before.kind === "file" && (await overwrite(folder, name, before))) return;
  if (before.kind === "file" && before.content === undefined)
    throw new CannotRevert("its bytes exceeded the limit and were not kept");
  if (before.kind === "other" && now?.kind === "other" && isSame(now.stats, before.stats))
    return folder.setRights(name, now.stats, rightsOf(before.stats));
  if (before.kind === "other") throw new CannotRevert("it was not a regular file");
  if (now !== undefined && (now.kind === "folder") !== (before.kind === "folder")) await remove(folder, name);
  await create(folder, name, before);
};

const restoreFolder = async (folder: Folder, name: Buffer, { stats }: Recorded): Promise<void> => {
  await using entered = await folder.enter(name);
  await restoreAttributes(entered.handle, stats);
};

/** Folders whose times changed because something in them was restored: all that contain a difference. */
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

/** The permissions that the owner needs to read, replace or enter something. */
const NEEDED = { folder: 0o700, file: 0o600, other: 0, link: 0 } as const;

/** Restores our access to our own folders and files, from the top down, so that files can be copied and names
 *  restored. */
export const openBreaches = async (
  { folder: top, stats }: Pick<RecordedTree, "folder" | "stats">,
  found: readonly Difference[],
): Promise<void> => {
  if (found.length === 0) return;
  if (isOurs(stats)) await top.handle.chmod(rightsOf(stats) | NEEDED.folder).catch(() => undefined);
  for (const { now } of [...found].sort((a, b) => depth(a) - depth(b)))
    if (now !== undefined && now.names.length > 0) await openTo(top, now);
};

/** A folder that cannot be opened is reported through the differences inside it. */
const openTo = async (top: Folder, { names, kind, stats }: Recorded): Promise<void> => {
  const wanted = rightsOf(stats) | NEEDED[kind];
  if (!isOurs(stats) || wanted === rightsOf(stats)) return;
  await inFolderOf(top, names, (folder, name) => folder.setRights(name, stats, wanted)).catch(() => undefined);
};

/** The permissions are known even if the bytes are unknown or could not be copied. */
export const restoreRights = async (top: Folder, { before, now }: Difference): Promise<void> => {
  if (before?.kind !== "file" || now?.kind !== "file" || !isSame(before.stats, now.stats)) return;
  const restored = (folder: Folder, name: Buffer): Promise<void> =>
    folder.setRights(name, now.stats, rightsOf(before.stats));
  await inFolderOf(top, before.names, restored).catch(() => undefined); // reported as not reverted
};

/** Of the watched folder itself, only the permissions can be restored: it is open, but its name is not ours to
 *  change. */
const isTopItself = ({ before, now }: Difference): boolean =>
  before?.names.length === 0 && now !== undefined && isSame(before.stats, now.stats);

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
  await openBreaches({ folder: top, stats }, found);
  const touched = touchedFolders(record, found);
  for (const recorded of [...touched].sort((a, b) => a.names.length - b.names.length)) await openTo(top, recorded);
  const created = found.filter(({ before }) => before === undefined).sort((a, b) => depth(b) - depth(a));
  for (const difference of created) await attempt(difference, remove);
  const lost = found
    .filter((each) => each.before !== undefined && !isTopItself(each))
    .sort((a, b) => depth(a) - depth(b));
  for (const difference of lost) await attempt(difference, (folder, name) => restore(folder, name, difference));
  for (const difference of failed.keys()) await restoreRights(top, difference);
  const folders = [...touched].sort((a, b) => b.names.length - a.names.length);
  for (const folder of folders)
    await inFolderOf(top, folder.names, (above, name) => restoreFolder(above, name, folder)).catch((error) => {
      const difference = found.find(({ before }) => before === folder);
      if (difference !== undefined) failed.set(difference, refusalOf(error).reason);
    });
  if (found.length > 0)
    await restoreAttributes(top.handle, stats).catch((error) => {
      for (const difference of found.filter(isTopItself)) failed.set(difference, refusalOf(error).reason);
    });
  return found.map((difference): Reverted => {
    const { path, change } = difference;
    const reason = failed.get(difference);
    return reason === undefined ? { path, change, reverted: true } : { path, change, reverted: false, reason };
  });
};
