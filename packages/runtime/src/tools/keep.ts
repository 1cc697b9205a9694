/** Where does an output go that is too long to be shown?
 *  Invariant: a new file each time, for its owner's eyes only, in a folder that the session holds; nothing that exists is
 *  opened. What could not be kept is told, and costs nobody the call.
 *  Elsewhere: making that folder private (@prefork/guard), what is shown instead (output-window.ts). */

import { constants } from "node:fs";
import { type FileHandle, mkdir, open } from "node:fs/promises";
import { join } from "node:path";
import { refusalOf } from "@prefork/guard/internal";

/** A file that grows while a command prints. */
export type KeptFile = {
  readonly path: string;
  /** Why nothing more is kept; undefined while all is well. */
  readonly problem: () => string | undefined;
  readonly write: (chunk: Uint8Array) => Promise<void>;
  readonly close: () => Promise<void>;
};

/** Opens a file under a name like the given one. */
export type KeepStream = (name: string) => Promise<KeptFile>;

export type Keeping = {
  readonly keep: (name: string, content: string | Uint8Array) => Promise<string>;
  readonly keepStream: KeepStream;
};

const CREATE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
const MOST_NAMESAKES = 1_000;
/** Enough for every log, too little to fill a disk. */
export const MOST_KEPT_BYTES = 64 * 1024 * 1024;

/** `folder`: stands in a private one, and is made when it is first needed. */
export const keepIn = (folder: string): Keeping => ({
  keep: async (name, content) => {
    const [path, handle] = await openNew(folder, name);
    try {
      await handle.writeFile(content);
    } finally {
      await handle.close();
    }
    return path;
  },
  keepStream: async (name) => {
    try {
      return keptFile(...(await openNew(folder, name)));
    } catch (error) {
      const { reason } = refusalOf(error);
      return { path: "", problem: () => reason, write: async () => {}, close: async () => {} };
    }
  },
});

/** Most sessions, and nearly all forks, keep nothing. What it stands in is the session's own folder, private already. */
const makeFolder = (folder: string): Promise<unknown> =>
  mkdir(folder, { mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "EEXIST") throw error;
  });

const openNew = async (folder: string, wanted: string): Promise<readonly [string, FileHandle]> => {
  const name = wanted.replace(/[^\w.-]+/g, "_").slice(0, 80);
  let isMade = false;
  for (let number = 1; ; ) {
    const path = join(folder, number === 1 ? `${name}.txt` : `${name}-${number}.txt`);
    try {
      return [path, await open(path, CREATE, 0o600)];
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === "ENOENT" && !isMade) {
        isMade = true;
        await makeFolder(folder);
      } else if (code === "EEXIST" && number < MOST_NAMESAKES) number += 1;
      else throw error;
    }
  }
};

const keptFile = (path: string, handle: FileHandle): KeptFile => {
  let problem: string | undefined;
  let room = MOST_KEPT_BYTES;
  return {
    path,
    problem: () => problem,
    write: async (chunk) => {
      if (problem !== undefined) return;
      if (chunk.length > room) problem = `at most ${MOST_KEPT_BYTES} bytes are kept`;
      try {
        await handle.writeFile(chunk.subarray(0, room)); // goes on where the last one ended
        room -= chunk.length;
      } catch (error) {
        problem = refusalOf(error).reason;
      }
    },
    close: () => handle.close(),
  };
};
