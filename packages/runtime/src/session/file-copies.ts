/** The files that our tools changed outside a repository, as they were before.
 *  A content is kept once, under its hash, in the session's private folder; the journal says which file had which
 *  content before which exchange. Files that were too large are not kept, and are never restored either.
 *  Elsewhere: files in a repository (@prefork/worktrees), when they are kept and restored (files.ts). */

import { createHash, randomBytes } from "node:crypto";
import { lstat, mkdir, open, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Json } from "@prefork/wire";
import { Checkout } from "@prefork/worktrees/internal";
import type { PlainEntry, StoredEntry } from "../journal/index.ts";
import type { RestoredFiles } from "../ports.ts";

const COPY_SLOT = "copied:";
const MAX_BYTES = 64 * 1024 * 1024;

/** What was at a path. */
export type FileCopy =
  | { readonly kind: "absent" }
  | { readonly kind: "file" | "link"; readonly hash: string; readonly mode: number }
  | { readonly kind: "unkept"; readonly reason: string };

export type Copies = ReadonlyMap<string, FileCopy>;

export class FileCopies {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = join(folder, "copies");
  }

  /** Keeps what is at this path now. */
  async keep(path: string): Promise<FileCopy> {
    const facts = await lstat(path).catch((error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT" || error.code === "ENOTDIR") return undefined;
      throw error;
    });
    if (!facts) return { kind: "absent" };
    const kind = facts.isFile() ? "file" : facts.isSymbolicLink() ? "link" : undefined;
    if (kind === undefined) return { kind: "unkept", reason: "not a file" };
    if (facts.size > MAX_BYTES) return { kind: "unkept", reason: "too large for a snapshot" };
    await using checkout = await Checkout.open("/");
    const content = await checkout.read(below(path), kind);
    const hash = createHash("sha256").update(content).digest("hex");
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    await writeFile(join(this.#folder, hash), content, { mode: 0o600, flag: "wx" }).catch(unlessThere);
    return { kind, hash, mode: facts.mode & 0o7777 };
  }

  /** Puts these files back. Returns what differed; only that is touched. */
  async restore(copies: Copies, isPreview = false): Promise<Omit<RestoredFiles, "saved">> {
    const restored: { path: string }[] = [];
    const removed: { path: string }[] = [];
    const skipped: string[] = [];
    await using checkout = await Checkout.open("/");
    for (const [path, copy] of copies) {
      const now = await this.keep(path);
      if (copy.kind === "unkept" || now.kind === "unkept") {
        skipped.push(`${path}: ${copy.kind === "unkept" ? copy.reason : now.kind === "unkept" ? now.reason : ""}`);
        continue;
      }
      if (isSame(now, copy)) continue;
      (copy.kind === "absent" ? removed : restored).push({ path });
      if (isPreview) continue;
      if (copy.kind === "absent") await checkout.remove(below(path));
      else await this.#putBack(checkout, path, copy);
    }
    return { restored, removed, skipped };
  }

  /** Atomic: the file is complete under its name, or unchanged. */
  async #putBack(checkout: Checkout, path: string, copy: Extract<FileCopy, { hash: string }>): Promise<void> {
    const content = await readFile(join(this.#folder, copy.hash));
    await mkdir(dirname(path), { recursive: true });
    const draft = `${path}.prefork-${randomBytes(4).toString("hex")}`;
    try {
      if (copy.kind === "link") await symlink(content, draft);
      else {
        await using file = await open(draft, "wx", 0o600);
        await file.writeFile(content);
        await file.chmod(copy.mode);
        await file.sync();
      }
      await checkout.replace(draft, below(path));
    } finally {
      await rm(draft, { force: true });
    }
  }
}

/** Says in the journal what was at a path. */
export const copyEntry = (path: string, copy: FileCopy): PlainEntry => ({
  kind: "state",
  slot: COPY_SLOT + path,
  value: copy as unknown as Json,
});

/** What our tools' files were after the entry `after`: what was kept first since then. */
export const copiesSince = (entries: readonly StoredEntry[], after: number): Copies => {
  const copies = new Map<string, FileCopy>();
  for (const { entry, seq } of entries) {
    if (seq <= after || entry.kind !== "state" || !entry.slot.startsWith(COPY_SLOT)) continue;
    const path = entry.slot.slice(COPY_SLOT.length);
    const copy = parseCopy(entry.value);
    if (copy && !copies.has(path)) copies.set(path, copy);
  }
  return copies;
};

export const copiesIn = (value: Json | undefined): Copies =>
  new Map(
    Object.entries(typeof value === "object" && value !== null && !Array.isArray(value) ? value : {}).flatMap(
      ([path, written]): readonly (readonly [string, FileCopy])[] => {
        const copy = parseCopy(written);
        return copy ? [[path, copy]] : [];
      },
    ),
  );

const parseCopy = (value: Json): FileCopy | undefined => {
  if (typeof value !== "object" || value === null || !("kind" in value)) return undefined;
  const { kind, hash, mode, reason } = value as Readonly<Record<string, Json>>;
  if (kind === "absent") return { kind };
  if (kind === "unkept") return { kind, reason: typeof reason === "string" ? reason : "" };
  if ((kind !== "file" && kind !== "link") || typeof hash !== "string" || typeof mode !== "number") return undefined;
  return /^[0-9a-f]{64}$/.test(hash) ? { kind, hash, mode: mode & 0o7777 } : undefined;
};

const isSame = (one: FileCopy, other: FileCopy): boolean => JSON.stringify(one) === JSON.stringify(other);

/** As a path below the root, one character per byte. */
const below = (path: string): string => Buffer.from(path.slice(1)).toString("latin1");

const unlessThere = (error: NodeJS.ErrnoException): void => {
  if (error.code !== "EEXIST") throw error;
};
