/** What does a repository keep besides objects, index and settings? Refs, reflogs, and operations in progress.
 *  Invariant: a name is passed on only if git accepts it as one, a value only if it is an object id or another ref. Anything else is a
 *  reason to ask, and so is a link. Lines of reflogs in another form are dropped, as git ignores them; steps of operations and
 *  patterns are lines of text.
 *  Elsewhere: where the files are (checkout.ts), writing them again (view.ts). */

import type { Dirent } from "node:fs";
import { join } from "node:path";
import { listFolder } from "../files/index.ts";
import type { ReadBudget } from "./checkout.ts";
import { ApprovalNeeded, type Checkout, linkText, look, readGitFile } from "./checkout.ts";

/** Files of git's folder by their names in it. */
export type Records = ReadonlyMap<string, string | Buffer>;

const MOST_BYTES = 16_000_000;
const MOST_LOG_BYTES = 16_000_000;
/** The total for all refs, because reading them blocks this process. */
const MOST_LOGS_BYTES = 32_000_000;
/** Refs in files of their own. Git packs them long before there are this many. */
const MOST_REFS = 20_000;

/** Git's own rules, and no control characters. Bytes above 127 are parts of letters. */
const NO_REF = /[^!-}\u0080-\uffff]|[\^:?*[\\]|\.\.|@\{|\/\/|(?:^|\/)\.|\.lock(?:\/|$)|[/.]$/;

/** One character per byte, because not every name is UTF-8; converted back for the file system. */
const toBytes = (text: string): string => Buffer.from(text).toString("latin1");
const toText = (bytes: string): string => Buffer.from(bytes, "latin1").toString();

const isRefName = (name: string): boolean => /^refs\/./.test(name) && !NO_REF.test(name);

const HEX = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/;

/** An object id or `ref: NAME`; undefined for anything else. */
const refValue = (text: string): string | undefined => {
  const plain = trimEndOf(text, " \t\r\n");
  if (HEX.test(plain)) return plain;
  const [, target = ""] = /^ref:[ \t\r\n]*(.*)$/s.exec(plain) ?? [];
  return isRefName(target) ? `ref: ${target}` : undefined;
};

export const readRef = (path: string, budget?: ReadBudget): string | undefined => {
  const link = linkText(path);
  if (link !== undefined && isRefName(link)) return `ref: ${toBytes(link)}`; // an old format of the same
  const file = readGitFile(path, 4_096, budget);
  const value = file && refValue(file.toString("latin1"));
  if (file && value === undefined) throw new ApprovalNeeded(`${path} contains neither a commit id nor a branch name`);
  return value;
};

// --- refs ----------------------------------------------------------------------------------------------------------------

/** Refs that each worktree has for itself. */
const PER_WORKTREE = /^refs\/(?:bisect|worktree|rewritten)\//;

type Refs = Map<string, string>;

const addPacked = (common: string, refs: Refs, budget: ReadBudget): void => {
  const path = join(common, "packed-refs");
  const text = readGitFile(path, MOST_BYTES, budget)?.toString("latin1") ?? "";
  for (const line of text.split("\n")) {
    budget.names(1, path);
    if (line === "" || /^(?:#|\^[0-9a-f]+$)/.test(line)) continue; // git resolves tags itself
    const [, number = "", name = ""] = /^([0-9a-f]+) (.+)$/.exec(line) ?? [];
    if (!HEX.test(number) || !isRefName(name)) throw new ApprovalNeeded(`${path} has a line that is not a ref`);
    refs.set(name, number);
  }
};

const entriesOf = (folder: string): readonly Dirent[] => {
  try {
    return listFolder(folder, MOST_REFS);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return [];
    throw new ApprovalNeeded(`${folder} cannot be inspected`);
  }
};

/** Names that git ignores. */
const isSkipped = (name: string): boolean => name.startsWith(".") || name.endsWith(".lock");

type LooseRefs = {
  readonly root: string;
  readonly budget: ReadBudget;
  readonly isWanted: (name: string) => boolean;
};

const addLoose = (refs: Refs, { root, budget, isWanted }: LooseRefs): void => {
  const queue = ["refs"];
  if (look(join(root, "refs"))?.isSymbolicLink()) throw new ApprovalNeeded(`${join(root, "refs")} is a link`);
  let names = 0;
  for (let at = 0; at < queue.length; at += 1) {
    const folder = queue[at] ?? "";
    const place = join(root, folder);
    for (const entry of entriesOf(place)) {
      names += 1;
      budget.names(1, root);
      if (names > MOST_REFS) throw new ApprovalNeeded(`${root} has too many refs to check`);
      const name = `${folder}/${entry.name}`;
      if (isSkipped(entry.name) || !isWanted(`${name}/`)) continue;
      const path = join(place, entry.name);
      if (entry.isDirectory()) queue.push(name);
      else if (isRefName(name) && isWanted(name)) {
        const value = readRef(path, budget);
        if (value !== undefined) refs.set(toBytes(name), value);
      }
    }
  }
};

const HEADER = "# pack-refs with: sorted \n";

const byBytes = ([a]: readonly [string, string], [b]: readonly [string, string]): number => (a < b ? -1 : 1);

/** All refs with an object id go into one file, wherever they were stored; symbolic refs get their own files. */
const readRefs = ({ git, common }: Checkout, budget: ReadBudget): Map<string, string | Buffer> => {
  const refs: Refs = new Map();
  addPacked(common, refs, budget);
  addLoose(refs, { root: common, budget, isWanted: (name) => git === common || !PER_WORKTREE.test(name) });
  if (git !== common) {
    const isWanted = (name: string): boolean => PER_WORKTREE.test(name) || /^refs\/\w+\/$/.test(name);
    addLoose(refs, { root: git, budget, isWanted });
  }
  const [packed, single]: [[string, string][], [string, string][]] = [[], []];
  for (const [name, value] of refs)
    (value.startsWith("ref: ") || PER_WORKTREE.test(name) ? single : packed).push([name, value]);
  const lines = packed.sort(byBytes).map(([name, value]) => `${value} ${name}\n`);
  const files = new Map<string, string | Buffer>(
    single.map(([name, value]) => [toText(name), Buffer.from(`${value}\n`, "latin1")]),
  );
  return files.set("packed-refs", Buffer.from(HEADER + lines.join(""), "latin1"));
};

// --- single files ----------------------------------------------------------------------------------------------------------

/** Special refs, each in its own file with one object id per line. */
const NAMES_COMMITS: readonly string[] = [
  ...["ORIG_HEAD", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "REBASE_HEAD", "BISECT_HEAD"],
  ...["BISECT_EXPECTED_REV", "AUTO_MERGE"],
];

/** Any number of lines without control characters. */
const TEXT = /^[\t\n\r -~\x80-\xff]*$/;
const LINE = /^[ -~\x80-\xff]*\n?$/;
const NUMBER = /^\d{0,9}\s{0,2}$/;
const COMMIT = /^(?:[0-9a-f]{40}|[0-9a-f]{64})?\s{0,2}$/;

/** Files that git writes while it rebases, cherry-picks or bisects, each with its format; `git status` reports the
 *  progress from them. */
const IN_PROGRESS: Readonly<Record<string, RegExp>> = {
  "rebase-merge/head-name": LINE,
  "rebase-merge/onto": COMMIT,
  "rebase-merge/orig-head": COMMIT,
  "rebase-merge/interactive": LINE,
  "rebase-merge/amend": COMMIT,
  "rebase-merge/msgnum": NUMBER,
  "rebase-merge/end": NUMBER,
  "rebase-merge/done": TEXT,
  "rebase-merge/git-rebase-todo": TEXT,
  "rebase-apply/head-name": LINE,
  "rebase-apply/onto": COMMIT,
  "rebase-apply/orig-head": COMMIT,
  "rebase-apply/applying": LINE,
  "rebase-apply/rebasing": LINE,
  "rebase-apply/next": NUMBER,
  "rebase-apply/last": NUMBER,
  "sequencer/todo": TEXT,
  BISECT_LOG: TEXT,
  BISECT_START: LINE,
  BISECT_NAMES: TEXT,
  BISECT_TERMS: TEXT,
};

const MOST_TEXT_BYTES = 1_000_000;

/** Reads one of git's files in its expected format; by default, lines of text. */
export const readText = (path: string, budget: ReadBudget, form = TEXT): Buffer | undefined => {
  const file = readGitFile(path, MOST_TEXT_BYTES, budget);
  if (file && !form.test(file.toString("latin1")))
    throw new ApprovalNeeded(`${path} does not have the form that git writes`);
  return file;
};

const hexLines = (file: Buffer): string =>
  file
    .toString("latin1")
    .split("\n")
    .filter((line) => HEX.test(line))
    .map((line) => `${line}\n`)
    .join("");

const LOG_LINE = /^([0-9a-f]{40}|[0-9a-f]{64}) ([0-9a-f]{40}|[0-9a-f]{64}) [^\0\r>]*> \d{1,15} [+-]\d{4}(?:\t[^\0]*)?$/;

const readLog = (path: string, budget: ReadBudget): Buffer | undefined => {
  const file = readGitFile(path, MOST_LOG_BYTES, budget);
  return file && logLines(file);
};

const logLines = (file: Buffer): Buffer => {
  const lines = file.toString("latin1").split("\n");
  const kept = lines.filter((line) => LOG_LINE.test(line)).map((line) => `${line}\n`);
  return Buffer.from(kept.join(""), "latin1");
};

/** The reflogs of existing refs. */
const addLogs = ({ git, common }: Checkout, files: Map<string, string | Buffer>, budget: ReadBudget): void => {
  const packed = toText(files.get("packed-refs")?.toString("latin1") ?? "")
    .split("\n")
    .slice(1);
  const names = [...packed.map((line) => line.slice(line.indexOf(" ") + 1)), ...files.keys()];
  let bytes = 0;
  for (const name of names.filter(isRefName)) {
    const path = join(PER_WORKTREE.test(name) ? git : common, "logs", name);
    budget.names(1, path);
    const file = readGitFile(path, MOST_LOGS_BYTES - bytes, budget);
    if (file) files.set(`logs/${name}`, logLines(file));
    bytes += file?.length ?? 0;
  }
};

export type Wanted = {
  /** All reflogs, not only those that `git status` uses. */
  readonly logs: boolean;
  readonly budget: ReadBudget;
};

/** Everything that git may read in addition to objects, index and settings. */
export const readRecords = (checkout: Checkout, { logs, budget }: Wanted): Records => {
  const { git, common } = checkout;
  const files = readRefs(checkout, budget);
  if (logs) addLogs(checkout, files, budget);
  const add = (name: string, content: string | Buffer | undefined): void => {
    if (content !== undefined) files.set(name, content);
  };
  const head = readRef(join(git, "HEAD"), budget);
  if (head === undefined) throw new ApprovalNeeded(`${join(git, "HEAD")} leads nowhere`);
  add("HEAD", Buffer.from(`${head}\n`, "latin1"));
  add("logs/HEAD", readLog(join(git, "logs/HEAD"), budget));
  add("logs/refs/stash", readLog(join(common, "logs/refs/stash"), budget));
  for (const name of NAMES_COMMITS) {
    const file = readGitFile(join(git, name), MOST_TEXT_BYTES, budget);
    add(name, file && hexLines(file));
  }
  const fetched = readGitFile(join(git, "FETCH_HEAD"), MOST_TEXT_BYTES, budget)?.toString("latin1").slice(0, 64);
  const [number] = /^(?:[0-9a-f]{64}|[0-9a-f]{40})/.exec(fetched ?? "") ?? [];
  add("FETCH_HEAD", number && `${number}\n`);
  for (const [name, form] of Object.entries(IN_PROGRESS))
    if (look(join(git, name.split("/")[0] ?? name)) !== undefined) add(name, readText(join(git, name), budget, form));
  const shallow = readGitFile(join(common, "shallow"), MOST_BYTES, budget);
  add("shallow", shallow && hexLines(shallow));
  const ignored = readText(join(common, "info/exclude"), budget);
  if (ignored && /^[^#\s]/m.test(ignored.toString("latin1"))) add("info/exclude", ignored);
  add("info/sparse-checkout", readText(join(git, "info/sparse-checkout"), budget));
  return files;
};

/** Text without certain characters at its end.
 *  Invariant: linear time; a pattern with `+$` would start again at each character of a long run that is not at the
 *  end. */

export const trimEndOf = (text: string, characters: string): string => {
  let end = text.length;
  while (end > 0 && characters.includes(text[end - 1] as string)) end -= 1;
  return text.slice(0, end);
};
