/** The index of a repository, parsed strictly and rewritten.
 *  Invariant: git reads lengths, padding and checksum that we wrote, and names, kinds, flags and ids that were understood, so it finds
 *  exactly the entries that we found. Every name is a path inside the work tree, in the one form that attributes match. File stats
 *  are kept, so that git recognizes unchanged files without reading them; no extension is passed on. An entry for another
 *  repository is marked as unchanged, so that git never opens that repository.
 *  Elsewhere: what the names lead to on the disk (tracked.ts). */

import { createHash } from "node:crypto";
import type { ReadBudget } from "./checkout.ts";
import { ApprovalNeeded } from "./checkout.ts";

export type IndexCopy = {
  /** The file for git, built on demand. */
  readonly bytes: () => Buffer;
  /** As latin1, byte by byte; each once. */
  readonly names: readonly string[];
  /** Names of other repositories (submodules). */
  readonly repositories: readonly string[];
};

export type ObjectFormat = "sha1" | "sha256";

const FILE = 0o100644;
const PROGRAM = 0o100755;
const LINK = 0o120000;
const REPOSITORY = 0o160000;

const UNCHANGED = 0x8000;
const EXTENDED = 0x4000;
const STAGE = 0x3000;
/** This value means that the name is at least this long and ends at its zero byte. */
const LENGTH = 0x0fff;

/** Flags of version 3: skipped by a sparse checkout, and intended to be added. Git stores no others in a file. */
const KNOWN_MORE = 0x6000;

/** Before the object id: two times, device, inode, mode, owner, group, size. */
const FACTS = 40;
const MODE_AT = 24;

/** More than any work tree has; parsing blocks this process. */
const MOST_ENTRIES = 200_000;
const LONGEST_NAME = 4_096;
const MOST_NAME_BYTES = 64_000_000;

const indexProblem = (why: string): ApprovalNeeded => new ApprovalNeeded(`the repository's index ${why}`);

type Entry = {
  /** The offset of its stat data in the file; the object id follows. */
  readonly factsAt: number;
  readonly mode: number;
  /** Unchanged, and the side of a merge. */
  readonly flags: number;
  readonly more: number;
  readonly name: string;
};

export const readIndex = (index: Buffer, format: ObjectFormat, budget?: ReadBudget): IndexCopy => {
  const number = format === "sha1" ? 20 : 32;
  if (index.length < 12 + number || index.toString("latin1", 0, 4) !== "DIRC")
    throw indexProblem("is not an index file");
  const [version, count] = [index.readUInt32BE(4), index.readUInt32BE(8)];
  if (version < 2 || version > 4) throw indexProblem(`has an unknown format (version ${version})`);
  if (count > MOST_ENTRIES) throw indexProblem("has too many files to check");
  const entries: Entry[] = [];
  const last = index.length - number;
  const content = index.subarray(0, last);
  let [at, bytes] = [12, 0];
  while (entries.length < count) {
    const before = entries.at(-1);
    const { entry, end } = readEntry(content, at, { version, number, before });
    if (before && !isInOrder(before, entry)) throw indexProblem("does not have its names in order");
    bytes += entry.name.length;
    budget?.names(1, "the index");
    if (bytes > MOST_NAME_BYTES) throw indexProblem("has names that are too long");
    entries.push(entry);
    at = end;
  }
  checkExtensions(index, at, last);
  const isRepository = ({ mode }: Entry): boolean => mode === REPOSITORY;
  return {
    bytes: () => written(entries, index, format),
    names: entries.filter(({ name }, place) => name !== entries[place - 1]?.name).map(({ name }) => name),
    repositories: entries.filter(isRepository).map(({ name }) => name),
  };
};

/** By name, then by merge stage if a name occurs more than once. */
const isInOrder = (before: Entry, { name, flags }: Entry): boolean =>
  before.name < name ||
  (before.name === name && (before.flags & STAGE) !== 0 && (before.flags & STAGE) < (flags & STAGE));

type Form = { readonly version: number; readonly number: number; readonly before: Entry | undefined };

/** `index`: without its checksum. */
const readEntry = (
  index: Buffer,
  factsAt: number,
  { version, number, before }: Form,
): { readonly entry: Entry; readonly end: number } => {
  const flagsAt = factsAt + FACTS + number;
  if (flagsAt + 4 > index.length) throw indexProblem("is cut off");
  const [mode, flags] = [index.readUInt32BE(factsAt + MODE_AT), index.readUInt16BE(flagsAt)];
  if (mode !== FILE && mode !== PROGRAM && mode !== LINK && mode !== REPOSITORY)
    throw indexProblem(`has an entry of an unknown kind (${mode.toString(8)})`);
  // To compare the sides of a merge, git would open that repository itself.
  if (mode === REPOSITORY && flags & STAGE) throw indexProblem("has a submodule that is being merged");
  const more = flags & EXTENDED ? index.readUInt16BE(flagsAt + 2) : 0;
  if (more & ~KNOWN_MORE || (flags & EXTENDED && version < 3)) throw indexProblem("has unknown flags");
  let at = flagsAt + (flags & EXTENDED ? 4 : 2);
  let kept = "";
  if (version === 4) {
    const dropped = readVarint(index, at);
    const whole = before?.name ?? "";
    if (dropped.value > whole.length) throw indexProblem("has names that cannot be read");
    kept = whole.slice(0, whole.length - dropped.value);
    at = dropped.end;
  }
  const end = index.indexOf(0, at);
  if (end < 0) throw indexProblem("is cut off");
  const length = kept.length + end - at;
  if (length > LONGEST_NAME) throw indexProblem("has names that are too long");
  if ((flags & LENGTH) !== Math.min(length, LENGTH)) throw indexProblem("states a wrong length for a name");
  const name = kept + index.toString("latin1", at, end);
  if (!isCanonical(name))
    throw indexProblem(`names ${JSON.stringify(Buffer.from(name, "latin1").toString())}, no path in it`);
  const next = version === 4 ? end + 1 : factsAt + padded(end - factsAt);
  if (next > index.length) throw indexProblem("is cut off");
  for (let zero = end; zero < next; zero += 1)
    if (index[zero] !== 0) throw indexProblem("has unknown bytes between its entries");
  return { entry: { factsAt, mode, flags: flags & (UNCHANGED | STAGE), more, name }, end: next };
};

/** At least one zero, up to the next eight bytes. */
const padded = (length: number): number => (length + 8) & ~7;

/** Version 2, or 3 where an entry has more flags. */
const written = (entries: readonly Entry[], index: Buffer, format: ObjectFormat): Buffer => {
  const number = format === "sha1" ? 20 : 32;
  const head = ({ more }: Entry): number => FACTS + number + (more ? 4 : 2);
  const end = entries.reduce((sum, entry) => sum + padded(head(entry) + entry.name.length), 12);
  const bytes = Buffer.alloc(end + number);
  bytes.write("DIRC", 0, "latin1");
  bytes.writeUInt32BE(entries.some(({ more }) => more !== 0) ? 3 : 2, 4);
  bytes.writeUInt32BE(entries.length, 8);
  let at = 12;
  for (const entry of entries) {
    const { factsAt, mode, more, name } = entry;
    index.copy(bytes, at, factsAt, factsAt + FACTS + number); // fixed-size fields, copied unread
    bytes.writeUInt32BE(mode, at + MODE_AT);
    const flags = entry.flags | (more ? EXTENDED : 0) | (mode === REPOSITORY ? UNCHANGED : 0);
    bytes.writeUInt16BE(flags | Math.min(name.length, LENGTH), at + FACTS + number);
    if (more) bytes.writeUInt16BE(more, at + FACTS + number + 2);
    bytes.write(name, at + head(entry), "latin1");
    at += padded(head(entry) + name.length);
  }
  createHash(format).update(bytes.subarray(0, end)).digest().copy(bytes, end);
  return bytes;
};

/** The form that git uses for the lengths of its version 4. */
const readVarint = (index: Buffer, from: number): { readonly value: number; readonly end: number } => {
  let [at, byte] = [from + 1, index[from] ?? 0];
  let value = byte & 127;
  while (byte & 128) {
    byte = index[at] ?? 0;
    at += 1;
    value = (value + 1) * 128 + (byte & 127);
    if (at - from > 5) throw indexProblem("has names that cannot be read");
  }
  return { value, end: at };
};

/** An extension that starts with a lower-case letter changes the meaning of the entries. */
const checkExtensions = (index: Buffer, from: number, last: number): void => {
  for (let at = from; at < last; ) {
    const kind = index.toString("latin1", at, at + 4);
    if (at + 8 > last) throw indexProblem("is cut off");
    if (!/^[A-Z]/.test(kind)) throw indexProblem(`has an extension that changes its meaning (${JSON.stringify(kind)})`);
    at += 8 + index.readUInt32BE(at + 4);
    if (at > last) throw indexProblem("is cut off");
  }
};

/** A part that is empty, `.`, `..`, or git's own folder, also on file systems that ignore case or use short names. */
const NO_PATH = /(?:^|\/)(?:\.{0,2}|\.git|git~\d+)(?:\/|$)/i;
/** Characters that macOS file systems ignore in names. */
const LEFT_OUT = /[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]/g;

const isCanonical = (name: string): boolean =>
  !NO_PATH.test(name) &&
  (!/[\x80-\xff]/.test(name) || !NO_PATH.test(Buffer.from(name, "latin1").toString().replace(LEFT_OUT, "")));
