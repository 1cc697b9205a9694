/** What is shown of an output that may be endless: its beginning and its end, and the whole of it in a file.
 *  Invariant: memory stays within the limit whatever is printed; a file is made only when something must be left out; what
 *  is left out is said, with the file's name. Letters are never cut in two.
 *  Elsewhere: the file (keep.ts), who prints (run-command.ts). */

import { StringDecoder } from "node:string_decoder";
import type { KeptFile } from "./keep.ts";

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
