/** Which files has this session seen, as they were then, and how much of each?
 *  Invariant: a file counts as known only by what was shown of it; two states that were cloned share nothing that either
 *  can change. Only hashes and versions are kept, never content.
 *  Elsewhere: who reads and writes (read.ts, write.ts, edit.ts), keeping it over a restart (../journal). */

import { createHash } from "node:crypto";
import type { Json } from "@prefork/wire";

/** First and last line, both included. */
export type LineRange = readonly [number, number];

export type SeenFile = {
  /** As the disk had it: FileFacts.version. */
  readonly version: string;
  readonly hash: string;
  readonly lines: number;
  readonly ranges: readonly LineRange[];
};

export type Freshness =
  | { readonly kind: "unread" }
  | { readonly kind: "changed" }
  | { readonly kind: "known"; readonly whole: boolean };

export const contentHash = (bytes: Uint8Array): string =>
  createHash("sha256").update(bytes).digest("base64url").slice(0, 22);

type Seeing = {
  readonly version: string;
  readonly bytes: Uint8Array;
  readonly lines: number;
  readonly range: LineRange;
};

export class ReadState {
  #files: ReadonlyMap<string, SeenFile>;
  /** Seen since somebody last asked what is new. */
  readonly #fresh = new Set<string>();

  private constructor(files: ReadonlyMap<string, SeenFile>) {
    this.#files = files;
  }

  static empty(): ReadState {
    return new ReadState(new Map());
  }

  /** Lines of a file were shown. What was seen before of the same content still counts. */
  saw(path: string, { version, bytes, lines, range }: Seeing): void {
    const hash = contentHash(bytes);
    const before = this.#files.get(path);
    const ranges = merged([...(before?.hash === hash ? before.ranges : []), range]);
    this.#put(path, { version, hash, lines, ranges });
  }

  /** The session wrote the whole file itself, so it knows all of it. */
  wrote(path: string, { version, bytes, lines }: Omit<Seeing, "range">): void {
    this.#put(path, { version, hash: contentHash(bytes), lines, ranges: [[1, lines]] });
  }

  /** The session changed places in it. What it knew only in part it goes on knowing only in part. */
  edited(path: string, { version, bytes, lines }: Omit<Seeing, "range">): void {
    const before = this.#files.get(path);
    const isKnown = before === undefined || isWhole(before);
    const ranges = isKnown
      ? ([[1, lines]] as const)
      : before.ranges.map(([from, to]) => [from, Math.min(to, lines - 1)] as const).filter(([from, to]) => from <= to);
    this.#put(path, { version, hash: contentHash(bytes), lines, ranges });
  }

  /** Does the session know the file as it is now? Another version with the same bytes is the same file. */
  freshness(path: string, now: { readonly version: string; readonly bytes: Uint8Array }): Freshness {
    const seen = this.#files.get(path);
    if (seen === undefined) return { kind: "unread" };
    if (seen.version !== now.version && seen.hash !== contentHash(now.bytes)) return { kind: "changed" };
    return { kind: "known", whole: isWhole(seen) };
  }

  get(path: string): SeenFile | undefined {
    return this.#files.get(path);
  }

  /** In the order of their last use, the latest at the end. */
  paths(): readonly string[] {
    return [...this.#files.keys()];
  }

  /** What is new since the last time: to be kept. */
  takeFresh(): readonly string[] {
    const paths = [...this.#fresh];
    this.#fresh.clear();
    return paths;
  }

  /** For a fork: both go on from here, each for itself. Costs nothing until one of them sees a file. */
  clone(): ReadState {
    return new ReadState(this.#files);
  }

  toJson(): Json {
    return [...this.#files].map(([path, { version, hash, lines, ranges }]) => ({ path, version, hash, lines, ranges }));
  }

  /** What cannot be read is left out: those files are read again. */
  static fromJson(value: Json | undefined): ReadState {
    const entries = Array.isArray(value) ? (value as readonly Json[]) : [];
    return new ReadState(new Map(entries.flatMap(seenOf)));
  }

  /** The map is shared by clones, so it is replaced and never changed. */
  #put(path: string, seen: SeenFile): void {
    const files = new Map(this.#files);
    files.delete(path);
    this.#files = files.set(path, seen);
    this.#fresh.add(path);
  }
}

const isWhole = ({ lines, ranges: [first] }: SeenFile): boolean =>
  lines === 0 || (first !== undefined && first[0] <= 1 && first[1] >= lines);

/** Sorted, and neighbours made one. */
const merged = (ranges: readonly LineRange[]): readonly LineRange[] => {
  const result: LineRange[] = [];
  for (const [from, to] of ranges.toSorted((a, b) => a[0] - b[0])) {
    const last = result.at(-1);
    if (last !== undefined && from <= last[1] + 1) result[result.length - 1] = [last[0], Math.max(last[1], to)];
    else result.push([from, to]);
  }
  return result;
};

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) >= 0;

const isRange = (value: unknown): value is LineRange =>
  Array.isArray(value) && value.length === 2 && value.every(isCount);

const seenOf = (value: Json): readonly (readonly [string, SeenFile])[] => {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return [];
  const { path, version, hash, lines, ranges } = value as Readonly<Record<string, Json>>;
  if (typeof path !== "string" || typeof version !== "string" || typeof hash !== "string" || !isCount(lines)) return [];
  return Array.isArray(ranges) && ranges.every(isRange) ? [[path, { version, hash, lines, ranges }]] : [];
};

/** May a file that exists be changed by somebody who knows it only so far?
 *  Invariant: pure; the answer says what is missing and how to get it, and ends in a full stop.
 *  Elsewhere: what is known (read-state.ts), the changes (write.ts, edit.ts). */

export type Use = {
  readonly path: string;
  readonly version: string;
  readonly bytes: Uint8Array;
  /** Replacing a file needs all of it seen; an edit names the text it changes. */
  readonly need: "some" | "whole";
};

/** Undefined where nothing stands against it. An empty file holds nothing that could be lost. */
export const refusedUse = (reads: ReadState, { path, version, bytes, need }: Use): string | undefined => {
  if (bytes.length === 0 && need === "whole") return undefined;
  const fresh = reads.freshness(path, { version, bytes });
  switch (fresh.kind) {
    case "unread":
      return "exists and was not read in this session. Read it first.";
    case "changed":
      return "was changed since it was read. Read it again, then repeat the change on what it says now.";
    case "known":
      if (need === "some" || fresh.whole) return undefined;
      return "was read only in part. Read the rest of it first, or change the part you know with Edit.";
  }
};
