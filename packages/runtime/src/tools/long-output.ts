/** What is shown of output that may be endless, and where does the rest go? Its beginning and its end are shown, and a
 *  file holds all of it.
 *  Invariant: memory stays bounded whatever is printed. A file is created only when something must be left out; it is
 *  always a new file, readable only by its owner, in a folder that the session owns. The text says what was left out
 *  and names the file. Characters are never split. A failure to write the file is mentioned and does not fail the call.
 *  Elsewhere: making that folder private (@prefork/guard), who prints (run-command.ts). */

import { constants } from "node:fs";
import { type FileHandle, mkdir, open } from "node:fs/promises";
import { join } from "node:path";
import { StringDecoder } from "node:string_decoder";
import { refusalOf } from "@prefork/guard/internal";

export const SHOWN_CHARACTERS = 30_000;

export type OutputWindowOptions = {
  readonly keep: () => Promise<KeptFile>;
  /** Called now and then with the last lines. */
  readonly progress?: (lastLines: string) => void;
  readonly limit?: number; // default: 30,000 characters
};

export class OutputWindow {
  readonly #limit: number;
  readonly #options: OutputWindowOptions;
  readonly #decoder = new StringDecoder("utf8");
  /** Everything, while that still fits; from then on the beginning. */
  #head = "";
  #tail = "";
  /** Characters printed, and bytes that are not in a file yet. */
  #length = 0;
  #unkept: Uint8Array[] = [];
  #file: KeptFile | undefined;
  #bytes = 0;
  #bytesReported = 0;

  constructor(options: OutputWindowOptions) {
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

  /** The text to show. */
  text(): string {
    if (this.#length <= this.#limit) return this.#head;
    const half = Math.floor(this.#limit / 2);
    const head = upToLine(this.#head.slice(0, half));
    const tail = fromLine(this.#tail.slice(-half));
    const left = this.#length - head.length - tail.length;
    return `${head}\n[… ${left} characters left out; ${describeKeptFile(this.#file)} …]\n${tail}`;
  }

  #add(text: string): void {
    this.#length += text.length;
    if (this.#head.length < this.#limit) this.#head += text.slice(0, this.#limit - this.#head.length);
    this.#tail += text;
    if (this.#tail.length > 2 * this.#limit) this.#tail = this.#tail.slice(-this.#limit);
  }

  /** Reports again once a fiftieth of everything printed so far has been added: slow output is reported line by
   *  line, a flood rarely, and no clock is needed. */
  #report(): void {
    const { progress } = this.#options;
    if (progress === undefined || this.#bytes - this.#bytesReported < this.#bytes / 50) return;
    const lines = lastLines(this.#tail);
    if (lines === "") return;
    this.#bytesReported = this.#bytes;
    progress(lines);
  }
}

/** Says where to find what is not shown. */
export const describeKeptFile = (file: Pick<KeptFile, "path" | "problem"> | undefined): string => {
  const problem = file?.problem();
  if (file === undefined || file.path === "") return `they could not be kept: ${problem ?? "there is no file"}`;
  return problem === undefined ? `all of it is in ${file.path}` : `its beginning is in ${file.path}: ${problem}`;
};

const LAST_LINES = 5;
const MAX_LINE_LENGTH = 200;

const lastLines = (text: string): string =>
  text
    .slice(-4_000)
    .split("\n")
    .filter((line) => line.trim() !== "")
    .slice(-LAST_LINES)
    .map((line) => line.slice(0, MAX_LINE_LENGTH).toWellFormed())
    .join("\n");

/** How many characters may be dropped to cut at the end of a line. */
const MAX_DROPPED = 2_000;

const upToLine = (text: string): string => {
  const end = text.lastIndexOf("\n");
  return end >= text.length - MAX_DROPPED && end > 0 ? text.slice(0, end) : text.replace(/[\ud800-\udbff]$/, "");
};

const fromLine = (text: string): string => {
  const start = text.indexOf("\n") + 1;
  return start > 0 && start <= MAX_DROPPED && start < text.length
    ? text.slice(start)
    : text.replace(/^[\udc00-\udfff]/, "");
};

/** A file that grows while a command prints. */
export type KeptFile = {
  readonly path: string;
  /** Why no more output is kept; undefined while everything is fine. */
  readonly problem: () => string | undefined;
  readonly write: (chunk: Uint8Array) => Promise<void>;
  readonly close: () => Promise<void>;
};

/** Opens a file with a name like the given one. */
export type KeepStream = (name: string) => Promise<KeptFile>;

export type OutputStore = {
  readonly keep: (name: string, content: string | Uint8Array) => Promise<string>;
  readonly keepStream: KeepStream;
};

const CREATE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
const MAX_NAMESAKES = 1_000;
/** Enough for every log, too little to fill a disk. */
export const MAX_KEPT_BYTES = 64 * 1024 * 1024;

/** `folder` is in a private folder. It is created when it is first needed. */
export const createOutputStore = (folder: string): OutputStore => ({
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
      return openKeptFile(...(await openNew(folder, name)));
    } catch (error) {
      const { reason } = refusalOf(error);
      return { path: "", problem: () => reason, write: async () => {}, close: async () => {} };
    }
  },
});

/** Most sessions, and nearly all forks, keep nothing. The parent is the session's own folder, which is private
 *  already. */
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
      } else if (code === "EEXIST" && number < MAX_NAMESAKES) number += 1;
      else throw error;
    }
  }
};

const openKeptFile = (path: string, handle: FileHandle): KeptFile => {
  let problem: string | undefined;
  let room = MAX_KEPT_BYTES;
  return {
    path,
    problem: () => problem,
    write: async (chunk) => {
      if (problem !== undefined) return;
      if (chunk.length > room) problem = `at most ${MAX_KEPT_BYTES} bytes are kept`;
      try {
        await handle.writeFile(chunk.subarray(0, room)); // continues where the last write ended
        room -= chunk.length;
      } catch (error) {
        problem = refusalOf(error).reason;
      }
    },
    close: () => handle.close(),
  };
};
