/** Which files has this session seen, in which version, and how much of each? May a file be changed by somebody who
 *  knows only that?
 *  Invariant: only what was shown of a file counts as known. Clones share nothing that either can change. Only hashes
 *  and versions are kept, never content. A refusal says what is missing and how to get it, and ends with a full stop.
 *  Elsewhere: reading and writing (read.ts, write.ts, edit.ts), keeping the state across a restart (../journal). */

import { createHash } from "node:crypto";
import type { Json } from "@prefork/wire";

/** First and last line, inclusive. */
export type LineRange = readonly [number, number];

export type SeenFile = {
  /** The version on disk: FileFacts.version. */
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

type FileView = {
  readonly version: string;
  readonly bytes: Uint8Array;
  readonly lines: number;
  readonly range: LineRange;
};

export class ReadState {
  #files: ReadonlyMap<string, SeenFile>;
  /** Paths seen since `takeNewPaths` was last called. */
  readonly #fresh = new Set<string>();

  private constructor(files: ReadonlyMap<string, SeenFile>) {
    this.#files = files;
  }

  static empty(): ReadState {
    return new ReadState(new Map());
  }

  /** Lines of a file were shown. What was seen of the same content before still counts. */
  recordRead(path: string, { version, bytes, lines, range }: FileView): void {
    const hash = contentHash(bytes);
    const before = this.#files.get(path);
    const ranges = mergeRanges([...(before?.hash === hash ? before.ranges : []), range]);
    this.#put(path, { version, hash, lines, ranges });
  }

  /** The session wrote the whole file itself, so it knows all of it. */
  recordWrite(path: string, { version, bytes, lines }: Omit<FileView, "range">): void {
    this.#put(path, { version, hash: contentHash(bytes), lines, ranges: [[1, lines]] });
  }

  /** The session edited the file. What it knew only in part, it still knows only in part. */
  recordEdit(path: string, { version, bytes, lines }: Omit<FileView, "range">): void {
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

  /** Least recently used first. */
  paths(): readonly string[] {
    return [...this.#files.keys()];
  }

  /** The paths that are new since the last call, for the journal. */
  takeNewPaths(): readonly string[] {
    const paths = [...this.#fresh];
    this.#fresh.clear();
    return paths;
  }

  /** For a fork: both continue from here independently. Copies nothing until one of them sees a file. */
  clone(): ReadState {
    return new ReadState(this.#files);
  }

  toJson(): Json {
    return [...this.#files].map(([path, { version, hash, lines, ranges }]) => ({ path, version, hash, lines, ranges }));
  }

  /** Skips what cannot be parsed: those files must be read again. */
  static fromJson(value: Json | undefined): ReadState {
    const entries = Array.isArray(value) ? (value as readonly Json[]) : [];
    return new ReadState(new Map(entries.flatMap(parseSeenFile)));
  }

  /** Clones share the map, so it is replaced and never changed. */
  #put(path: string, seen: SeenFile): void {
    const files = new Map(this.#files);
    files.delete(path);
    this.#files = files.set(path, seen);
    this.#fresh.add(path);
  }
}

const isWhole = ({ lines, ranges: [first] }: SeenFile): boolean =>
  lines === 0 || (first !== undefined && first[0] <= 1 && first[1] >= lines);

/** Sorted, with adjacent ranges joined. */
const mergeRanges = (ranges: readonly LineRange[]): readonly LineRange[] => {
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

const parseSeenFile = (value: Json): readonly (readonly [string, SeenFile])[] => {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return [];
  const { path, version, hash, lines, ranges } = value as Readonly<Record<string, Json>>;
  if (typeof path !== "string" || typeof version !== "string" || typeof hash !== "string" || !isCount(lines)) return [];
  return Array.isArray(ranges) && ranges.every(isRange) ? [[path, { version, hash, lines, ranges }]] : [];
};

export type IntendedChange = {
  readonly path: string;
  readonly version: string;
  readonly bytes: Uint8Array;
  /** Replacing a file requires that all of it was seen. An edit names the text it changes. */
  readonly need: "some" | "whole";
};

/** Undefined if the change is fine. An empty file contains nothing that could be lost. */
export const changeProblem = (reads: ReadState, { path, version, bytes, need }: IntendedChange): string | undefined => {
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
