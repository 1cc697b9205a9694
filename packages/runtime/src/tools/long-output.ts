/** What is shown of an output that may be endless: its beginning and its end, and the whole of it in a file.
 *  Invariant: memory stays within the limit whatever is printed; a file is made only when something must be left out; what
 *  is left out is said, with the file's name. Letters are never cut in two.
 *  Elsewhere: the file (keep.ts), who prints (run-command.ts). */

import { constants } from "node:fs";
import { type FileHandle, mkdir, open } from "node:fs/promises";
import { join } from "node:path";
import { StringDecoder } from "node:string_decoder";
import { refusalOf } from "@prefork/guard/internal";

export const SHOWN_CHARACTERS = 30_000;

export type WindowOptions = {
  readonly keep: () => Promise<KeptFile>;
  /** Told now and then what was printed last. */
  readonly progress?: (lastLines: string) => void;
  readonly limit?: number; // default: 30,000 characters
};

export class OutputWindow {
  readonly #limit: number;
  readonly #options: WindowOptions;
  readonly #decoder = new StringDecoder("utf8");
  /** All that was printed while that still fits; from then on the beginning. */
  #head = "";
  #tail = "";
  /** Characters printed, and bytes not yet in a file. */
  #length = 0;
  #unkept: Uint8Array[] = [];
  #file: KeptFile | undefined;
  #bytes = 0;
  #bytesReported = 0;

  constructor(options: WindowOptions) {
    this.#options = options;
    this.#limit = options.limit ?? SHOWN_CHARACTERS;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Resolves when there is room for more. */
  async take(chunk: Buffer): Promise<void> {
    this.#bytes += chunk.length;
    this.#add(this.#decoder.write(chunk));
    this.#report();
    if (this.#file === undefined) this.#unkept.push(chunk);
    if (this.#length <= this.#limit) return;
    if (this.#file !== undefined) return this.#file.write(chunk);
    const unkept = Buffer.concat(this.#unkept);
    this.#unkept = [];
    this.#file = await this.#options.keep();
    await this.#file.write(unkept);
  }

  async end(): Promise<void> {
    this.#add(this.#decoder.end());
    await this.#file?.close();
  }

  /** What to show. */
  text(): string {
    if (this.#length <= this.#limit) return this.#head;
    const half = Math.floor(this.#limit / 2);
    const head = upToLine(this.#head.slice(0, half));
    const tail = fromLine(this.#tail.slice(-half));
    const left = this.#length - head.length - tail.length;
    return `${head}\n[… ${left} characters left out; ${whereKept(this.#file)} …]\n${tail}`;
  }

  #add(text: string): void {
    this.#length += text.length;
    if (this.#head.length < this.#limit) this.#head += text.slice(0, this.#limit - this.#head.length);
    this.#tail += text;
    if (this.#tail.length > 2 * this.#limit) this.#tail = this.#tail.slice(-this.#limit);
  }

  /** Each report needs a fiftieth more than all that was printed before: slow output is told line by line, a flood
   *  seldom, and no clock is asked. */
  #report(): void {
    const { progress } = this.#options;
    if (progress === undefined || this.#bytes - this.#bytesReported < this.#bytes / 50) return;
    const lines = lastLines(this.#tail);
    if (lines === "") return;
    this.#bytesReported = this.#bytes;
    progress(lines);
  }
}

/** Where to find what is not shown. */
export const whereKept = (file: Pick<KeptFile, "path" | "problem"> | undefined): string => {
  const problem = file?.problem();
  if (file === undefined || file.path === "") return `they could not be kept: ${problem ?? "there is no file"}`;
  return problem === undefined ? `all of it is in ${file.path}` : `its beginning is in ${file.path}: ${problem}`;
};

const LAST_LINES = 5;
const MOST_LINE_LENGTH = 200;

const lastLines = (text: string): string =>
  text
    .slice(-4_000)
    .split("\n")
    .filter((line) => line.trim() !== "")
    .slice(-LAST_LINES)
    .map((line) => line.slice(0, MOST_LINE_LENGTH).toWellFormed())
    .join("\n");

/** How much may be dropped to end at the end of a line. */
const MOST_DROPPED = 2_000;

const upToLine = (text: string): string => {
  const end = text.lastIndexOf("\n");
  return end >= text.length - MOST_DROPPED && end > 0 ? text.slice(0, end) : text.replace(/[\ud800-\udbff]$/, "");
};

const fromLine = (text: string): string => {
  const start = text.indexOf("\n") + 1;
  return start > 0 && start <= MOST_DROPPED && start < text.length
    ? text.slice(start)
    : text.replace(/^[\udc00-\udfff]/, "");
};

/** Where does an output go that is too long to be shown?
 *  Invariant: a new file each time, for its owner's eyes only, in a folder that the session holds; nothing that exists is
 *  opened. What could not be kept is told, and costs nobody the call.
 *  Elsewhere: making that folder private (@prefork/guard), what is shown instead (output-window.ts). */

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
