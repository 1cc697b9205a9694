/** What a merge is about to replace, kept so that it can be put back exactly.
 *  Invariant: contents are kept as their bytes, whatever git would make of them, with modes, times and the folders
 *  around; they hang on a ref before the first file changes. Putting back twice is the same as once.
 *  Elsewhere: replacing (apply.ts), when (merge.ts, undo.ts). */

import { lutimes, mkdir, open, readdir, rm, symlink } from "node:fs/promises";
import { join } from "node:path";
import { Checkout, type Standing } from "./checkout.ts";
import { WorktreeError } from "./errors.ts";
import { type TreePath, toldPath } from "./git.ts";
import type { Change, TreeEntry } from "./merge-plan.ts";
import { savedRef } from "./refs.ts";
import type { Repository } from "./repository.ts";
import { dropStage, stageOf } from "./stage.ts";

export type SavedFile = {
  readonly path: TreePath;
  readonly before: Standing;
  /** As the merge leaves it. */
  readonly after: TreeEntry | undefined;
};

export type Saved = {
  readonly commit: string;
  readonly files: readonly SavedFile[];
  /** Folders above the files: those that were there, with their modes. */
  readonly folders: readonly { readonly path: TreePath; readonly mode: number | undefined }[];
};

type Manifest = Omit<Saved, "commit">;

/** Reads everything that these changes replace, and hangs it on the ref of this point. */
export const save = async (
  repository: Repository,
  changes: readonly Change[],
  { point, tip, absent }: { readonly point: number; readonly tip: string; readonly absent: ReadonlySet<TreePath> },
): Promise<Saved> => {
  await using checkout = await Checkout.open(repository.top);
  const files: SavedFile[] = [];
  for (const { path, before, after } of changes) {
    const standing = await checkout.look(path);
    mustBe(path, standing, absent.has(path) ? undefined : before);
    files.push({ path, before: standing, after });
  }
  const manifest: Manifest = { files, folders: await foldersOf(checkout, files) };
  const ref = savedRef(point);
  const words = ["fast-import", "--quiet", "--done", "--force", "--date-format=now"];
  const reports = await crashReports(repository);
  try {
    const commit = await repository.git.line(words, { input: importOf({ checkout, manifest, ref, tip }) });
    return { ...manifest, commit };
  } catch (error) {
    for (const name of await crashReports(repository))
      if (!reports.includes(name)) await rm(join(repository.gitDir, name), { force: true });
    throw error;
  }
};

/** What git leaves where it could not store something. */
const crashReports = async ({ gitDir }: Repository): Promise<readonly string[]> =>
  (await readdir(gitDir)).filter((name) => name.startsWith("fast_import_crash_"));

const mustBe = (path: TreePath, standing: Standing, before: TreeEntry | undefined): void => {
  const kind = before === undefined ? "absent" : before.mode === "120000" ? "link" : "file";
  if (standing.kind === kind) return;
  const what = kind === "absent" ? "a file that git ignores stands in the way" : "it was changed meanwhile";
  throw new WorktreeError("changed-meanwhile", `${toldPath(path)}: ${what}; nothing was merged`);
};

const foldersOf = async (checkout: Checkout, files: readonly SavedFile[]): Promise<Saved["folders"]> => {
  const paths = new Set<TreePath>();
  for (const { path } of files)
    for (let at = path.indexOf("/"); at > 0; at = path.indexOf("/", at + 1)) paths.add(path.slice(0, at));
  // A folder may stand where a file is to come.
  for (const { path } of files) if ((await checkout.facts(path))?.isDirectory()) paths.add(path);
  const folders: { path: TreePath; mode: number | undefined }[] = [];
  for (const path of [...paths].sort()) {
    const facts = await checkout.facts(path);
    folders.push({ path, mode: facts?.isDirectory() ? Number(facts.mode) & 0o7777 : undefined });
  }
  return folders;
};

type Import = {
  readonly checkout: Checkout;
  readonly manifest: Manifest;
  readonly ref: string;
  /** What is merged: kept as long as the way back is. */
  readonly tip: string;
};

/** One commit with the files by number and the list of what is what. */
async function* importOf({ checkout, manifest, ref, tip }: Import): AsyncGenerator<Buffer> {
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

function* blob(mark: number, content: Buffer): Generator<Buffer> {
  yield Buffer.from(`blob\nmark :${mark}\ndata ${content.length}\n`);
  yield content;
  yield NEWLINE;
}

export const readSaved = async ({ git }: Repository, commit: string): Promise<Saved> => {
  const { code, out } = await git.ask(["cat-file", "blob", `${commit}:manifest.json`], { may: [0, 128] });
  if (code !== 0)
    throw new WorktreeError(
      "unknown-task",
      "what this merge replaced is not in this repository any more; it cannot be taken back",
    );
  return { ...(JSON.parse(out.toString()) as Manifest), commit };
};

/** What differs now, with its contents on the disk and ready to be put in place. */
export type Restoring = { readonly stage: string; readonly changed: readonly number[] };

/** Writes everything that is to be put back, and changes nothing yet. */
export const prepareBack = async (repository: Repository, saved: Saved, point: number): Promise<Restoring> => {
  const stage = join(await stageOf(repository, point), "back");
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
        if (before.kind !== "absent" && content) await writeStanding(join(stage, String(at)), content, before);
      }
    }
  } catch (error) {
    await dropStage(repository, point);
    throw error;
  }
  return { stage, changed };
};

/** Puts it in place. Gives the paths that differed. */
export const putBack = async (
  repository: Repository,
  saved: Saved,
  { stage, changed }: Restoring,
): Promise<readonly TreePath[]> => {
  await using checkout = await Checkout.open(repository.top);
  const files = changed.map((at) => ({ at, ...(saved.files[at] ?? NOTHING) }));
  // What was not there goes first: a file may stand where a folder was.
  for (const { path, before } of files) if (before.kind === "absent") await checkout.remove(path);
  await restoreFolders(checkout, saved);
  for (const { at, path, before } of files)
    if (before.kind !== "absent") await checkout.replace(join(stage, String(at)), path);
  return files.map(({ path }) => path);
};

/** Folders as they were, with their modes. */
export const restoreFolders = async (checkout: Checkout, { folders }: Saved): Promise<void> => {
  for (const { path, mode } of folders.toReversed()) if (mode === undefined) await checkout.removeFolder(path);
  for (const { path, mode } of folders) if (mode !== undefined) await checkout.makeFolder(path, mode);
};

const writeStanding = async (
  path: string,
  content: Buffer,
  { kind, mode, mtimeMs }: Extract<Standing, { mode: number }>,
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
  const now = await checkout.look(path).catch(() => undefined);
  if (now?.kind === "absent" || before.kind === "absent") return now?.kind === before.kind;
  return now?.version === before.version;
};

/** Files that are there, and whose contents are not those that were saved. */
export const unlikeBefore = async (repository: Repository, saved: Saved): Promise<readonly SavedFile[]> => {
  await using checkout = await Checkout.open(repository.top);
  const unlike: SavedFile[] = [];
  for (const [at, file] of saved.files.entries()) {
    const now = await checkout.look(file.path).catch(() => undefined);
    if (now === undefined || now.kind === "absent" || (await isUntouched(checkout, file))) continue;
    const [content] =
      file.before.kind === now.kind ? await blobsOf(repository, [`${saved.commit}:files/${at}`]) : [undefined];
    if (!content?.equals(await checkout.read(file.path, now.kind))) unlike.push(file);
  }
  return unlike;
};

/** Several objects by one git. */
const blobsOf = async ({ git }: Repository, names: readonly string[]): Promise<readonly Buffer[]> => {
  if (names.length === 0) return [];
  const out = await git.out(["cat-file", "--batch"], { input: names.map((name) => `${name}\n`).join("") });
  const blobs: Buffer[] = [];
  for (let at = 0; at < out.length; ) {
    const end = out.indexOf(10, at);
    const [, kind = "", size = ""] = out.subarray(at, end).toString().split(" ");
    if (kind !== "blob") throw new WorktreeError("git", `what was saved is gone: ${out.subarray(at, end)}`);
    const from = end + 1;
    blobs.push(out.subarray(from, from + Number(size)));
    at = from + Number(size) + 1;
  }
  return blobs;
};
