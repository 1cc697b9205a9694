/** A repository, read whole and understood.
 *  Invariant: nothing is written and git is not started; what is not understood is a reason to ask.
 *  Elsewhere: finding it (git-checkout.ts), its parts (git-settings.ts, git-index.ts, git-records.ts), what git gets to
 *  see of it (git-view.ts). */

import { statSync } from "node:fs";
import { dirname, join } from "node:path";
import { type Checkout, Doubt, isFolder, locate, placeOf, readGitFile } from "./git-checkout.ts";
import { type IndexCopy, readIndex } from "./git-index.ts";
import { readObjects } from "./git-links.ts";
import { configured, settingsProblem } from "./git-probe.ts";
import { type Records, readRecords, readText } from "./git-records.ts";
import { isTrue, nameOf, readSettings, type Setting } from "./git-settings.ts";
import { checkTracked } from "./git-tracked.ts";
import { canonical, reached } from "./reached.ts";
import { ReadBudget } from "./read-budget.ts";

/** A repository as far as it was understood. */
export type ReadRepository = {
  readonly checkout: Checkout;
  readonly settings: readonly Setting[];
  /** It says of itself that it has no files beside it. */
  readonly isBare: boolean;
  readonly index: IndexCopy | undefined;
  /** Seconds. What git finds unchanged depends on it. */
  readonly indexTime: number;
  readonly records: Records;
  /** Other folders whose files it may hold: those of the main checkout, and of repositories that it takes objects from. */
  readonly others: readonly string[];
  /** Its folder of objects, then those that it takes objects from. */
  readonly objects: readonly string[];
  /** Its own private attributes. */
  readonly attributes: Buffer;
};

const MOST_INDEX_BYTES = 64_000_000;

const lastOf = (settings: readonly Setting[], name: string): Setting | undefined =>
  settings.findLast((setting) => nameOf(setting) === name);

export type WantedParts = {
  /** All reflogs, not only those that `git status` tells from. Default: no. */
  readonly logs?: boolean;
  /** A look at each tracked file on the disk, which takes longer than all the rest. Default: no. */
  readonly tracked?: boolean;
  /** Default: one of its own. */
  readonly budget?: ReadBudget;
};

/** Read whole, and nothing of it written anywhere. Undefined where there is no repository. */
export const readRepository = (folder: string, wanted: WantedParts = {}): ReadRepository | undefined => {
  const { budget = new ReadBudget() } = wanted;
  return budget.timed(() => readWithin(folder, { ...wanted, budget }));
};

type BoundedParts = WantedParts & { readonly budget: ReadBudget };

const readWithin = (folder: string, { logs = false, tracked, budget }: BoundedParts): ReadRepository | undefined => {
  if (!isFolder(folder)) return undefined; // git says so itself
  const located = locate(folder);
  if (located.kind === "none") return undefined;
  const { checkout } = located;
  const settings = readSettings(checkout, budget);
  const hazard = settingsProblem(settings);
  if (hazard !== undefined) throw new Doubt(hazard);
  if (!/^[01]$/.test(lastOf(settings, "core.repositoryformatversion")?.value ?? "0"))
    throw new Doubt(configured("core.repositoryformatversion"));
  if ((lastOf(settings, "extensions.refstorage")?.value ?? "files") !== "files")
    throw new Doubt(configured("extensions.refstorage"));
  const elsewhere = lastOf(settings, "core.worktree");
  if (elsewhere && canonical(reached(checkout.git, elsewhere.value ?? "")) !== checkout.top)
    throw new Doubt(configured("core.worktree"));
  const { top, git, common } = checkout;
  if (!elsewhere && git === common && !git.startsWith(`${top}/`))
    throw new Doubt(`${git} does not say that it belongs to ${top} (core.worktree)`);
  const bare = lastOf(settings, "core.bare");
  const isBare = !elsewhere && checkout.git === checkout.common && bare !== undefined && isTrue(bare.value);
  const format = lastOf(settings, "extensions.objectformat")?.value === "sha256" ? "sha256" : "sha1";
  const objects = readObjects(common, budget);
  const path = join(checkout.git, "index");
  const bytes = readGitFile(path, MOST_INDEX_BYTES, budget);
  const index = bytes && readIndex(bytes, format, budget);
  if (index && !isBare && tracked) checkTracked(checkout.top, index, budget);
  const indexTime = index ? Math.floor(statSync(path).mtimeMs / 1_000) : 0;
  const attributes = readText(join(checkout.common, "info/attributes"), budget) ?? Buffer.alloc(0);
  return {
    checkout,
    settings,
    isBare,
    index,
    indexTime,
    attributes,
    objects,
    others: othersOf(checkout, objects),
    records: readRecords(checkout, { logs, budget }),
  };
};

/** A repository that says where its files are has none elsewhere; a linked worktree shares those of its main checkout. */
const othersOf = ({ top, git, common }: Checkout, objects: readonly string[]): readonly string[] => {
  const shared = objects.map(dirname).filter((folder) => folder !== common);
  return [...new Set([...(git === common ? [] : [common]), ...shared].map(placeOf))].filter((place) => place !== top);
};

export const isDoubt = (value: unknown): value is Doubt => value instanceof Doubt;

/** What the system does not let us read is doubtful too. */
export const orDoubt = <T>(read: () => T): T | Doubt => {
  try {
    return read();
  } catch (error) {
    if (isDoubt(error)) return error;
    const { code, path } = error as NodeJS.ErrnoException;
    if (typeof code !== "string") throw error;
    return new Doubt(`${path ?? "the repository"} cannot be read (${code})`, { cause: error });
  }
};
