/** The index of a repository, read strictly.
 *  Invariant: every name in it is a path inside the work tree, written the one way that attributes know; entries keep
 *  their bytes, so that git finds unchanged files without reading them, and no extension is handed on. An entry for
 *  another repository is marked as unchanged, so that git never opens that repository.
 *  Elsewhere: what the names lead to on the disk (git-tracked.ts). */

import { createHash } from "node:crypto";
import { Doubt } from "./git-checkout.ts";

export type IndexCopy = {
  readonly bytes: Buffer;
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
const RESERVED = 0x8000;

/** Before the object's number: two times, device, inode, mode, owner, group, size. */
const FACTS = 40;
const MODE_AT = 24;

/** More than any work tree that is looked at in one go: nothing else happens in this process meanwhile. */
const MOST_ENTRIES = 500_000;
const LONGEST_NAME = 4_096;
const MOST_NAME_BYTES = 64_000_000;

const odd = (why: string): Doubt => new Doubt(`the repository's index ${why}`);

export const readIndex = (index: Buffer, format: ObjectFormat): IndexCopy => {
  const number = format === "sha1" ? 20 : 32;
  if (index.length < 12 + number || index.toString("latin1", 0, 4) !== "DIRC") throw odd("is none");
  const [version, count] = [index.readUInt32BE(4), index.readUInt32BE(8)];
  if (version < 2 || version > 4) throw odd(`has a form that is not known (version ${version})`);
  if (count > MOST_ENTRIES) throw odd("names too many files to look at");
  const copy = Buffer.from(index);
  const [names, repositories]: [string[], string[]] = [[], []];
  const last = index.length - number;
  let [at, name, length] = [12, "", 0];
  for (let entry = 0; entry < count; entry += 1) {
    const start = at;
    const flagsAt = at + FACTS + number;
    if (flagsAt + 2 > last) throw odd("is cut off");
    const [mode, flags] = [index.readUInt32BE(at + MODE_AT), index.readUInt16BE(flagsAt)];
    if (mode !== FILE && mode !== PROGRAM && mode !== LINK && mode !== REPOSITORY)
      throw odd(`holds an entry of a kind that is not known (${mode.toString(8)})`);
    at = flagsAt + 2;
    if (flags & EXTENDED) {
      if (version < 3 || index.readUInt16BE(at) & RESERVED) throw odd("has flags that are not known");
      at += 2;
    }
    const before = name;
    let kept = 0;
    if (version === 4) {
      const dropped = readVarint(index, at);
      if (dropped.value > before.length) throw odd("has names that cannot be read");
      kept = before.length - dropped.value;
      at = dropped.end;
    }
    const end = index.indexOf(0, at);
    if (end < 0 || end > last) throw odd("is cut off");
    length += kept + end - at;
    if (kept + end - at > LONGEST_NAME || length > MOST_NAME_BYTES) throw odd("holds names that are too long");
    name = before.slice(0, kept) + index.toString("latin1", at, end);
    at = version === 4 ? end + 1 : start + ((end - start + 8) & ~7);
    if (name !== before || entry === 0) {
      if (!isCanonical(name))
        throw odd(`names ${JSON.stringify(Buffer.from(name, "latin1").toString())}, no path in it`);
      names.push(name);
    }
    if (mode !== REPOSITORY) continue;
    repositories.push(name);
    copy.writeUInt16BE(flags | UNCHANGED, flagsAt);
  }
  if (at > last) throw odd("is cut off");
  checkExtensions(index, at, last);
  const bytes = copy.subarray(0, at + number);
  createHash(format).update(bytes.subarray(0, at)).digest().copy(bytes, at);
  return { bytes, names, repositories };
};

/** The form that git uses for the lengths of its version 4. */
const readVarint = (index: Buffer, from: number): { readonly value: number; readonly end: number } => {
  let [at, byte] = [from + 1, index[from] ?? 0];
  let value = byte & 127;
  while (byte & 128) {
    byte = index[at] ?? 0;
    at += 1;
    value = (value + 1) * 128 + (byte & 127);
    if (at - from > 5) throw odd("has names that cannot be read");
  }
  return { value, end: at };
};

/** An extension that begins with a small letter changes what the entries mean. */
const checkExtensions = (index: Buffer, from: number, last: number): void => {
  for (let at = from; at < last; ) {
    const kind = index.toString("latin1", at, at + 4);
    if (at + 8 > last) throw odd("is cut off");
    if (!/^[A-Z]/.test(kind)) throw odd(`is kept in parts that are not looked at (${JSON.stringify(kind)})`);
    at += 8 + index.readUInt32BE(at + 4);
    if (at > last) throw odd("is cut off");
  }
};

/** A part that is empty, a step, or git's own folder, also as file systems without cases or with short names know it. */
const NO_PATH = /(?:^|\/)(?:\.{0,2}|\.git|git~\d+)(?:\/|$)/i;
/** Characters that a file system of macOS leaves out of names. */
const LEFT_OUT = /[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]/g;

const isCanonical = (name: string): boolean =>
  !NO_PATH.test(name) &&
  (!/[\x80-\xff]/.test(name) || !NO_PATH.test(Buffer.from(name, "latin1").toString().replace(LEFT_OUT, "")));
