/** Keeps a copy of what is about to be overwritten by a restore.
 *  Invariant: read from held folders and never through a link. A copy replaces nothing, and its name is plain and
 *  short, whatever the file is called.
 *  Elsewhere: finding differences (audit.ts), restoring (revert.ts). */

import { randomBytes } from "node:crypto";
import { constants } from "node:fs";
import { mkdir, open, rm } from "node:fs/promises";
import { join } from "node:path";
import { isSame } from "../files/index.ts";
import { type Difference, inFolderOf } from "./revert.ts";
import type { RecordedTree } from "./tree-record.ts";

export type Keep = {
  readonly folder: string;
  /** The prefix of all copies' names. */
  readonly prefix: string;
};

export type Kept = { readonly ok: true; readonly copy?: string } | { readonly ok: false };

const READ = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY;
const MOST_CHARACTERS = 80;
/** People prefer numbers. If many files have the same name, a random suffix finds a free name at once. */
const NUMBERED = 8;
const MOST_TRIES = 20;

const plain = (name: string): string => name.replace(/[^\w.-]/g, "_").slice(0, MOST_CHARACTERS);

/** Only files have contents that would be lost. */
export const keepCopy = async ({ folder }: RecordedTree, { now }: Difference, keep: Keep): Promise<Kept> => {
  if (now === undefined || now.kind !== "file") return { ok: true };
  try {
    return await inFolderOf(folder, now.names, async (above, name): Promise<Kept> => {
      await using from = await open(above.at(name), READ);
      if (!isSame(await from.stat({ bigint: true }), now.stats)) return { ok: false };
      await mkdir(keep.folder, { recursive: true, mode: 0o700 });
      const { handle, path } = await newFile(keep, name.toString("latin1"));
      await using to = handle;
      try {
        await to.writeFile(from.createReadStream({ autoClose: false }));
      } catch (error) {
        await rm(path, { force: true });
        throw error;
      }
      return { ok: true, copy: path };
    });
  } catch {
    return { ok: false }; // without a copy, nothing is restored
  }
};

const newFile = async ({ folder, prefix }: Keep, name: string) => {
  for (let at = 0; ; at++) {
    const number = at < NUMBERED ? String(at) : randomBytes(6).toString("hex");
    const path = join(folder, `${plain(prefix)}-${number}-${plain(name)}`);
    try {
      return { handle: await open(path, "wx", 0o600), path };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST" || at >= MOST_TRIES) throw error;
    }
  }
};
