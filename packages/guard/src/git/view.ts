/** A private folder that git reads in place of the repository's own `.git`.
 *  Invariant: git never opens the repository's `.git`, except for its objects. The view contains only what was read from regular files
 *  and understood, rewritten by us; its attributes hide files that may contain secrets, and override every attribute of the
 *  repository. It is readable by its owner only, created for each pipe, and removed afterwards.
 *  Elsewhere: reading the repository (repository.ts), its object folder (links.ts), questions about git's own paths (answers.ts). */

import { mkdirSync, mkdtempSync, rmSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { realPath } from "../files/index.ts";
import { caseInsensitive, secretPatterns } from "../paths/index.ts";
import { ReadBudget } from "./checkout.ts";
import { partsOf } from "./links.ts";
import type { Records } from "./records.ts";
import { isApprovalNeeded, orApprovalNeeded, type ReadRepository, readRepository } from "./repository.ts";
import { handedOn, printable } from "./settings.ts";
import { otherWorktrees } from "./worktrees.ts";

export type ViewProblem = { readonly problem: string };

/** Why git may not read the repository of a folder without approval. `budget`: shared with others. */
export const viewProblem = (folder: string, budget = new ReadBudget()): string | undefined => {
  const read = orApprovalNeeded(() => readRepository(folder, { budget }));
  return isApprovalNeeded(read) ? read.message : undefined;
};

/** What git must not show, in addition to secrets. */
export type Hidden = {
  /** Patterns from the top of a repository. */
  readonly withheld: readonly string[];
  /** More of them, by the top of the repository. */
  readonly below: (top: string) => readonly string[];
};

/** Views of the repositories that one pipe reads. */
export class GitViews {
  readonly #hidden: Hidden;
  /** Aborts questions that git is asked before the pipe runs. */
  readonly #signal: AbortSignal | undefined;
  readonly #budget = new ReadBudget();
  #folder: string | undefined;
  readonly #views = new Map<string, View | ViewProblem>();

  constructor(hidden: Hidden = { withheld: [], below: () => [] }, signal?: AbortSignal) {
    this.#hidden = hidden;
    this.#signal = signal;
  }

  /** Attributes that hide these files and secrets. */
  #hiding(tops: readonly string[] = []): string {
    const { withheld, below } = this.#hidden;
    return attributesFor([...new Set([...withheld, ...tops.flatMap(below)])]);
  }

  /** Created on first use, because most pipes do not run git. */
  #made(): string {
    this.#folder ??= realPath(makeSomewhere([tmpdir(), "/tmp", "/var/tmp"]));
    return this.#folder;
  }

  /** For git outside a repository, where it compares files by name. No path if git runs in a repository. */
  attributes(): { readonly path?: string } | ViewProblem {
    const isOutside = [...this.#views.values()].some((view) => !("problem" in view) && view.repository === undefined);
    if (!isOutside) return {};
    const path = orApprovalNeeded(() => {
      const file = join(this.#made(), "attributes");
      writeFileSync(file, this.#hiding());
      return file;
    });
    return isApprovalNeeded(path) ? { problem: path.message } : { path };
  }

  /** `folder`: where git runs. `words`: what it is asked. */
  of(folder: string, words: readonly string[]): View | ViewProblem {
    const logs = words.some((word) => TELLS_REFLOGS.test(word));
    const key = `${logs}\0${folder}`;
    const known = this.#views.get(key);
    if (known) return known;
    const made = orApprovalNeeded(() => {
      const place = join(this.#made(), String(this.#views.size));
      const repository = readRepository(folder, { logs, tracked: true, budget: this.#budget });
      const hiding = this.#hiding(repository && [repository.checkout.top, ...repository.others]);
      const signal = this.#signal;
      const view = new View({ folder, place, hiding, ...(signal ? { signal } : {}) }, repository);
      view.variables(); // reports now what cannot be written
      return view;
    });
    const view = isApprovalNeeded(made) ? { problem: made.message } : made;
    this.#views.set(key, view);
    return view;
  }

  [Symbol.dispose](): void {
    if (this.#folder !== undefined) rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** There are many reflogs; only these commands need more than those of HEAD and of the stash. */
const TELLS_REFLOGS = /^reflog$|@\{|^-[a-zA-Z]*g|^--(?:walk-reflogs|reflog|fork-point)/;

/** TMPDIR may name a missing folder. Not /dev/shm: the read-only sandbox has its own. */
const makeSomewhere = ([folder = "", ...others]: readonly string[]): string => {
  try {
    return mkdtempSync(join(folder, "prefork-view-"));
  } catch (error) {
    if (others.length === 0) throw error;
    return makeSomewhere(others);
  }
};

type ViewPlace = {
  /** Where git runs. */
  readonly folder: string;
  /** The folder in which the view is written on first use. */
  readonly place: string;
  /** Attributes of files that may contain secrets. */
  readonly hiding: string;
  readonly signal?: AbortSignal;
};

/** The view that git gets when it runs in one folder. */
export class View {
  readonly #where: ViewPlace;
  readonly repository: ReadRepository | undefined;
  /** The folders that have been written so far. */
  readonly #written = new Set<string>();

  constructor(where: ViewPlace, repository: ReadRepository | undefined) {
    this.#where = where;
    this.repository = repository;
  }

  get folder(): string {
    return this.#where.folder;
  }

  get signal(): AbortSignal | undefined {
    return this.#where.signal;
  }

  /** The top of the work tree; the folder itself outside of a repository. */
  get top(): string {
    return this.repository?.checkout.top ?? realPath(this.folder);
  }

  /** Other folders whose files it may contain. */
  get others(): readonly string[] {
    return this.repository?.others ?? [];
  }

  /** For a git that runs in the folder. */
  variables(verb?: string): Readonly<Record<string, string>> {
    const { repository } = this;
    if (repository === undefined) return OUTSIDE;
    const kind = verb === "config" ? "settings" : "git";
    const folder = join(this.#where.place, kind);
    if (!this.#written.has(kind)) {
      const files = kind === "settings" ? settingsFiles(repository) : viewFiles(repository, this.#where.hiding);
      writeFolder(folder, files);
      linkObjects(folder, repository.objects);
      if (files.has("index")) utimesSync(join(folder, "index"), repository.indexTime, repository.indexTime);
    }
    this.#written.add(kind);
    return { GIT_DIR: folder, ...(repository.isBare ? {} : { GIT_WORK_TREE: repository.checkout.top }) };
  }
}

/** There is no repository, and git must not search for one itself, wherever it gets to: it would obey its settings. */
const OUTSIDE: Readonly<Record<string, string>> = { GIT_DIR: "/dev/null" };

const viewFiles = (repository: ReadRepository, hiding: string): Records => {
  const { settings, isBare, index, records, attributes } = repository;
  const files = new Map<string, string | Buffer>([...records, ...otherWorktrees(repository)]);
  files.set("config", handedOn(settings, isBare));
  files.set("info/attributes", Buffer.concat([attributes, Buffer.from(`\n${hiding}`)])); // the last line counts
  if (index) files.set("index", index.bytes());
  return files;
};

/** For `git config`, which reads nothing else. */
const settingsFiles = ({ settings, records }: ReadRepository): Records =>
  new Map([
    ["HEAD", records.get("HEAD") ?? ""],
    ["config", printable(settings)],
  ]);

const writeFolder = (folder: string, files: Records): void => {
  const folders = new Set(["refs", ...[...files.keys()].map((name) => dirname(name))]);
  for (const name of folders) mkdirSync(join(folder, name), { recursive: true, mode: 0o700 });
  for (const [name, content] of files) writeFileSync(join(folder, name), content);
};

/** A link to the object folder. If there are several, a folder with links to the parts of each, so that git reads no
 *  list of alternates. */
const linkObjects = (folder: string, [own = "", ...others]: readonly string[]): void => {
  if (others.length === 0) {
    symlinkSync(own, join(folder, "objects"));
    return;
  }
  const linkParts = (from: string, to: string): string => {
    mkdirSync(join(to, "info"), { recursive: true, mode: 0o700 });
    for (const name of partsOf(from)) symlinkSync(join(from, name), join(to, name));
    return to;
  };
  const places = others.map((from, at) => linkParts(from, join(folder, "objects-of-others", String(at))));
  writeFileSync(join(linkParts(own, join(folder, "objects")), "info/alternates"), `${places.join("\n")}\n`);
};

// --- attributes that hide files ------------------------------------------------------------------------------------------
// git reports a change to a file that may contain secrets as a change to a binary file, in every command that compares, logs
// or searches. Every name that may contain secrets matches, in upper or lower case. Options that would show such files anyway
// are dropped in ../bash.

const quoted = (pattern: string): string => `"${pattern}"`;

/** A macro for `-diff`. A later line that unsets the macro restores the repository's own attributes for the file,
 *  which `!diff` would not. */
const KEY = "prefork-key";

/** Excludes such files from searches completely: a match would reveal what a file contains. */
export const WITHOUT_HIDDEN = `:(exclude,top,attr:${KEY})`;

/** Later lines override earlier ones. */
const ATTRIBUTES = [
  `[attr]${KEY} -diff`,
  ...secretPatterns.filesUnlessSource.map((name) => `${quoted(caseInsensitive(name))} ${KEY}`),
  ...secretPatterns.placesUnlessSource.map((name) => `${quoted(caseInsensitive(`**/${name}`))} ${KEY}`),
  ...secretPatterns.sources.map((name) => `${quoted(caseInsensitive(name))} !${KEY}`),
  ...secretPatterns.filesAlways.map((name) => `${quoted(caseInsensitive(name))} ${KEY}`),
  ...secretPatterns.templates.map((name) => `${quoted(caseInsensitive(name))} !${KEY}`),
  ...secretPatterns.noTemplates.map((name) => `${quoted(caseInsensitive(name))} ${KEY}`),
  ...secretPatterns.folders.flatMap((name) =>
    // A file with a single name matches above; git is slow with patterns of paths.
    [...(name.includes("/") ? [`**/${name}`] : []), `**/${name}/**`].map(
      (path) => `${quoted(caseInsensitive(path))} ${KEY}`,
    ),
  ),
  ...secretPatterns.places.map((name) => `${quoted(`**/${caseInsensitive(name)}`)} ${KEY}`),
  `${quoted(caseInsensitive("*.pub"))} !${KEY}`,
  "",
].join("\n");

/** git ignores longer lines. */
const LONGEST_LINE = 2_000;

/** git compares bytes, so a letter outside ASCII, which has other cases and encodings, becomes a star. */
const inAnySpelling = (name: string): string => {
  if (name === "**") return name;
  const plain = name
    .normalize("NFC")
    .replace(/\[[^\]]*\]|[^\0-\x7f]+/g, (part) => (/[^\0-\x7f]/.test(part) ? "*" : part));
  return caseInsensitive(plain.replace(/\*+/g, "*").toLowerCase());
};

/** Hides at least what the pattern names: if the line would be too long, everything in a parent folder. */
const withheldLine = (pattern: string): string => {
  const names = pattern.split("/").map(inAnySpelling);
  for (let end = names.length; end > 0; end -= 1) {
    const path = [...names.slice(0, end), ...(end < names.length ? ["**"] : [])].join("/");
    const line = `${quoted(path)} ${KEY}\n`;
    if (Buffer.byteLength(line) <= LONGEST_LINE) return line;
  }
  return `* ${KEY}\n`;
};

/** The lines of an attributes file. `withheld`: more patterns, relative to the top of a repository. */
export const attributesFor = (withheld: readonly string[] = []): string =>
  [ATTRIBUTES, ...withheld.map(withheldLine)].join("");
