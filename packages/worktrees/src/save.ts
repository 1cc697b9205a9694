/** Saves what a merge is about to replace, and restores it exactly.
 *  Invariant: contents are saved byte for byte, without git's conversions, with modes, times and folders; a ref keeps them
 *  before the first file changes. Restoring is idempotent.
 *  Elsewhere: replacing (apply.ts), when to save and restore (merge.ts, undo.ts). */

import { lutimes, mkdir, open, readdir, rm, symlink } from "node:fs/promises";
import { join } from "node:path";
import { Checkout, type FileState } from "./checkout.ts";
import { WorktreeError } from "./errors.ts";
import { messagePath, type TreePath } from "./git.ts";
import type { FileChange, TreeEntry } from "./merge-plan.ts";
import { savedRef } from "./refs.ts";
import type { Repository } from "./repository.ts";
import { dropStage, stageFolder } from "./stage.ts";

export type SavedFile = {
  readonly path: TreePath;
  readonly before: FileState;
  /** The file after the merge. */
  readonly after: TreeEntry | undefined;
};

export type SavedState = {
  readonly commit: string;
  readonly files: readonly SavedFile[];
  /** Folders above the files, with their modes; without a mode if they did not exist. */
  readonly folders: readonly { readonly path: TreePath; readonly mode: number | undefined }[];
};

type Manifest = Omit<SavedState, "commit">;

/** Saves everything that these changes replace, under the ref of this undo point. */
export const saveReplaced = async (
  repository: Repository,
  changes: readonly FileChange[],
  { point, tip, absent }: { readonly point: number; readonly tip: string; readonly absent: ReadonlySet<TreePath> },
): Promise<SavedState> => {
  await using checkout = await Checkout.open(repository.top);
  const files: SavedFile[] = [];
  for (const { path, before, after } of changes) {
    const current = await checkout.fileState(path);
    requireKind(path, current, absent.has(path) ? undefined : before);
    files.push({ path, before: current, after });
  }
  const manifest: Manifest = { files, folders: await foldersOf(checkout, files) };
  const ref = savedRef(point);
  const words = ["fast-import", "--quiet", "--done", "--force", "--date-format=now"];
  const reports = await crashReports(repository);
  try {
    const commit = await repository.git.line(words, { input: importStream({ checkout, manifest, ref, tip }) });
    return { ...manifest, commit };
  } catch (error) {
    for (const name of await crashReports(repository))
      if (!reports.includes(name)) await rm(join(repository.gitDir, name), { force: true });
    throw error;
  }
};

/** Crash reports that git leaves when it cannot store something. */
export const crashReports = async ({ gitDir }: Pick<Repository, "gitDir">): Promise<readonly string[]> =>
  (await readdir(gitDir)).filter((name) => name.startsWith("fast_import_crash_"));

const requireKind = (path: TreePath, current: FileState, before: TreeEntry | undefined): void => {
  const kind = before === undefined ? "absent" : before.mode === "120000" ? "link" : "file";
  if (current.kind === kind) return;
  const what = kind === "absent" ? "an ignored file is in the way" : "it changed during the merge";
  throw new WorktreeError("changed-meanwhile", `${messagePath(path)}: ${what}; nothing was merged`);
};

const foldersOf = async (checkout: Checkout, files: readonly SavedFile[]): Promise<SavedState["folders"]> => {
  const paths = new Set<TreePath>();
  for (const { path } of files)
    for (let at = path.indexOf("/"); at > 0; at = path.indexOf("/", at + 1)) paths.add(path.slice(0, at));
  // A folder may be where the merge puts a file.
  for (const { path } of files) if ((await checkout.stat(path))?.isDirectory()) paths.add(path);
  const folders: { path: TreePath; mode: number | undefined }[] = [];
  for (const path of [...paths].sort()) {
    const facts = await checkout.stat(path);
    folders.push({ path, mode: facts?.isDirectory() ? Number(facts.mode) & 0o7777 : undefined });
  }
  return folders;
};

type Import = {
  readonly checkout: Checkout;
  readonly manifest: Manifest;
  readonly ref: string;
  /** The merged commit, which is kept as long as the undo point. */
  readonly tip: string;
};

/** One commit with numbered files and a manifest. */
async function* importStream({ checkout, manifest, ref, tip }: Import): AsyncGenerator<Buffer> {
  const names: string[] = [];
  for (const [at, { path, before }] of manifest.files.entries()) {
    if (before.kind === "absent") continue;
    names.push(`files/${at}`);
    if (before.kind === "link") yield* blob(names.length, await checkout.read(path, "link"));
    else {
      const size = Number(before.version.split(":")[2]);
      yield Buffer.from(`blob\nmark :${names.length}\ndata ${size}\n`);
      yield* checkout.pieces(path, size);
      yield NEWLINE;
    }
  }
  yield* blob(names.push("manifest.json"), Buffer.from(JSON.stringify(manifest)));
  yield Buffer.from(
    `commit ${ref}\nmark :${names.length + 1}\ncommitter Prefork <prefork@localhost> now\ndata ${MESSAGE.length}\n${MESSAGE}\nfrom ${tip}\ndeleteall\n`,
  );
  for (const [at, name] of names.entries()) yield Buffer.from(`M 100644 :${at + 1} ${name}\n`);
  yield Buffer.from(`\nget-mark :${names.length + 1}\ndone\n`);
}

const NEWLINE = Buffer.from("\n");
const MESSAGE = "What a merge replaced: see docs/worktrees.md\n";

export function* blob(mark: number, content: Buffer): Generator<Buffer> {
  yield Buffer.from(`blob\nmark :${mark}\ndata ${content.length}\n`);
  yield content;
  yield NEWLINE;
}

export const readSaved = async ({ git }: Repository, commit: string): Promise<SavedState> => {
  const { code, out } = await git.ask(["cat-file", "blob", `${commit}:manifest.json`], { okCodes: [0, 128] });
  if (code !== 0)
    throw new WorktreeError(
      "unknown-task",
      "the content that this merge replaced is no longer in this repository, so it cannot be undone",
    );
  return { ...(JSON.parse(out.toString()) as Manifest), commit };
};

/** The files that differ now, with their saved contents on disk, ready to be moved into place. */
export type PreparedRestore = { readonly stage: string; readonly changed: readonly number[] };

/** Writes the saved contents next to the checkout, without changing it yet. */
export const prepareRestore = async (
  repository: Repository,
  saved: SavedState,
  point: number,
): Promise<PreparedRestore> => {
  const stage = join(await stageFolder(repository, point), "back");
  await using checkout = await Checkout.open(repository.top);
  const changed: number[] = [];
  for (const [at, file] of saved.files.entries()) if (!(await isUntouched(checkout, file))) changed.push(at);
  const written = changed.filter((at) => saved.files[at]?.before.kind !== "absent");
  try {
    await rm(stage, { recursive: true, force: true });
    await mkdir(stage, { recursive: true, mode: 0o700 });
    for (let from = 0; from < written.length; from += BATCH) {
      const batch = written.slice(from, from + BATCH);
      const contents = await blobsOf(
        repository,
        batch.map((at) => `${saved.commit}:files/${at}`),
      );
      for (const [order, at] of batch.entries()) {
        const { before } = saved.files[at] ?? NOTHING;
        const content = contents[order];
        if (before.kind !== "absent" && content) await writeFileState(join(stage, String(at)), content, before);
      }
    }
  } catch (error) {
    await dropStage(repository, point);
    throw error;
  }
  return { stage, changed };
};

/** Moves the contents into place. Returns the paths that differed. */
export const restoreFiles = async (
  repository: Repository,
  saved: SavedState,
  { stage, changed }: PreparedRestore,
): Promise<readonly TreePath[]> => {
  await using checkout = await Checkout.open(repository.top);
  const files = changed.map((at) => ({ at, ...(saved.files[at] ?? NOTHING) }));
  // New files are removed first, because one may be where a folder was.
  for (const { path, before } of files) if (before.kind === "absent") await checkout.remove(path);
  await restoreFolders(checkout, saved);
  for (const { at, path, before } of files)
    if (before.kind !== "absent") await checkout.replace(join(stage, String(at)), path);
  return files.map(({ path }) => path);
};

/** Restores folders with their modes. */
export const restoreFolders = async (checkout: Checkout, { folders }: SavedState): Promise<void> => {
  for (const { path, mode } of folders.toReversed()) if (mode === undefined) await checkout.removeFolder(path);
  for (const { path, mode } of folders) if (mode !== undefined) await checkout.makeFolder(path, mode);
};

export const writeFileState = async (
  path: string | Buffer,
  content: Buffer,
  { kind, mode, mtimeMs }: Extract<FileState, { mode: number }>,
): Promise<void> => {
  if (kind === "link") await symlink(content, path);
  else {
    await using file = await open(path, "wx", 0o600);
    await file.writeFile(content);
    await file.chmod(mode);
    await file.sync();
  }
  await lutimes(path, mtimeMs / 1_000, mtimeMs / 1_000);
};

const BATCH = 200;
const NOTHING: SavedFile = { path: "", before: { kind: "absent" }, after: undefined };

const isUntouched = async (checkout: Checkout, { path, before }: SavedFile): Promise<boolean> => {
  const now = await checkout.fileState(path).catch(() => undefined);
  if (now?.kind === "absent" || before.kind === "absent") return now?.kind === before.kind;
  return now?.version === before.version;
};

/** Existing files whose contents differ from what was saved. */
export const findChangedFiles = async (repository: Repository, saved: SavedState): Promise<readonly SavedFile[]> => {
  await using checkout = await Checkout.open(repository.top);
  const unlike: SavedFile[] = [];
  for (const [at, file] of saved.files.entries()) {
    const now = await checkout.fileState(file.path).catch(() => undefined);
    if (now === undefined || now.kind === "absent" || (await isUntouched(checkout, file))) continue;
    const [content] =
      file.before.kind === now.kind ? await blobsOf(repository, [`${saved.commit}:files/${at}`]) : [undefined];
    if (!content?.equals(await checkout.read(file.path, now.kind))) unlike.push(file);
  }
  return unlike;
};

/** Reads several objects with one git process. */
export const blobsOf = async ({ git }: Repository, names: readonly string[]): Promise<readonly Buffer[]> => {
  if (names.length === 0) return [];
  const out = await git.out(["cat-file", "--batch"], { input: names.map((name) => `${name}\n`).join("") });
  const blobs: Buffer[] = [];
  for (let at = 0; at < out.length; ) {
    const end = out.indexOf(10, at);
    const [, kind = "", size = ""] = out.subarray(at, end).toString().split(" ");
    if (kind !== "blob") throw new WorktreeError("git", `a saved object is missing: ${out.subarray(at, end)}`);
    const from = end + 1;
    blobs.push(out.subarray(from, from + Number(size)));
    at = from + Number(size) + 1;
  }
  return blobs;
};
