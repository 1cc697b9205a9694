/** Does a report say what was really done? Compared with the child's own calls and with git.
 *  It adds notes and never refuses a report. What nobody can tell is noted as unknown, not as untrue. It never throws,
 *  and it ends in bounded time whatever the report, the journal or the repository contain.
 *  Elsewhere: what a report claims (report.ts), asking git (report-git.ts). */

import { realpathSync } from "node:fs";
import { basename, dirname, isAbsolute, join, normalize, relative, resolve } from "node:path";
import type { ReadOnlySandbox, Touches } from "@prefork/guard";
import { oneLine } from "../context/index.ts";
import type { EventBody } from "../events.ts";
import type { JournalEntry } from "../journal/index.ts";
import type { Report } from "../ports.ts";
import type { NamedCall } from "../tools/index.ts";
import { MOST_CLAIMS, type ReportClaim, readCommitClaims, readFileClaims } from "./report.ts";
import { type GitStatus, type GitView, isThere, viewGit } from "./report-git.ts";

export type ReportCheck = {
  readonly report: Report;
  /** The whole report, in which commits are looked for. */
  readonly text?: string; // default: result and issues
  /** The files that its own calls changed, as `readEditedFiles` returns them. */
  readonly edited: readonly string[];
  readonly cwd: string;
  /** Paths that are known to differ from the state it began with. */
  readonly gitStatus?: readonly string[]; // default: git reports what differs from the last commit
  readonly readOnlySandbox?: ReadOnlySandbox;
  readonly signal?: AbortSignal;
};

/** A check is not worth waiting longer for. */
const TIMEOUT_MS = 10_000;

/** Returns notes for the parent, one line each; none if everything is as reported. */
export const checkReport = async (check: ReportCheck): Promise<readonly string[]> => {
  try {
    return await compare(check);
  } catch (error) {
    return [`could not be checked: ${oneLine(error instanceof Error ? error.message : String(error))}`];
  }
};

const compare = async ({ report, text, edited, ...how }: ReportCheck): Promise<readonly string[]> => {
  const claims = readFileClaims(report);
  const commits = readCommitClaims(text ?? `${report.result}\n${report.issues}`);
  if (claims.length === 0 && commits.length === 0 && edited.length === 0) return [];
  const cwd = folderAt(how.cwd);
  const limit = AbortSignal.timeout(TIMEOUT_MS);
  const signal = how.signal ? AbortSignal.any([limit, how.signal]) : limit;
  const git = await viewGit({ cwd, signal, ...(how.readOnlySandbox ? { readOnlySandbox: how.readOnlySandbox } : {}) });
  const placedClaims = claims.map((claim) => placed(claim, new Set([cwd, git?.top ?? cwd])));
  const own = [...new Set(edited.map((path) => canonical(resolve(cwd, path))))];
  const over = report.filesChanged.length - MOST_CLAIMS;
  const unreported = over > 0 ? [] : own.filter((path) => !placedClaims.some((one) => means(one, path)));
  const toCheck = new Set([...placedClaims.flatMap(({ places }) => places), ...unreported]);
  const status = how.gitStatus ? given(how.gitStatus, cwd) : await git?.status([...toCheck]);
  const made = await Promise.all(commits.map(async (hash) => ({ hash, paths: await git?.commit(hash) })));
  const committed = made.flatMap(({ paths }) => (typeof paths === "object" ? paths : []));
  const seen: Seen = { git, status, own, changed: [...(status?.changed ?? []), ...committed] };
  return [
    ...noted(
      placedClaims.filter((one) => one.claim.isName && !isConfirmed(one, seen)),
      (one) => describeUnconfirmed(one, seen),
    ),
    ...noted(
      unreported.filter((path) => !isGone(path, seen)),
      (path) => `changed ${shown(path, cwd)} and did not say so`,
    ),
    ...made.flatMap(({ hash, paths }) => (paths === "missing" ? `names commit ${hash}, which is not there` : [])),
    ...(over > 0 ? [`names ${over} more changed files than were checked`] : []),
  ];
};

/** What can be known, from the calls and from git. */
type Seen = {
  readonly git: GitView | undefined;
  readonly status: GitStatus | undefined;
  readonly own: readonly string[];
  readonly changed: readonly string[];
};

const given = (paths: readonly string[], cwd: string): GitStatus => ({
  changed: paths.map((path) => canonical(resolve(cwd, path))),
  ignored: [],
  isWhole: true,
});

// --- what the report claims -----------------------------------------------------------------------------------------------------

/** `places`: the paths that its names may mean, resolved from every base. */
type Placed = { readonly claim: ReportClaim; readonly places: readonly string[] };

const placed = (claim: ReportClaim, bases: ReadonlySet<string>): Placed => {
  const names = claim.names.map((name) => (/[*?{}]/.test(name) ? folderOf(name) : name));
  const places = names.flatMap((name) => [...bases].map((base) => canonical(resolve(base, name))));
  return { claim, places: [...new Set(places)] };
};

/** A pattern means the folder before its first wildcard. */
const folderOf = (pattern: string): string => pattern.slice(0, pattern.search(/[*?{}]/)).replace(/[^/]*$/, "") || ".";

const folderAt = (path: string): string => {
  try {
    return realpathSync.native(path);
  } catch {
    return path;
  }
};

/** The real path, except for the last name: a file that does not exist yet, or is itself a link, keeps its name. */
const canonical = (path: string): string => {
  const below = [basename(path)];
  for (let folder = dirname(path); ; folder = dirname(folder)) {
    try {
      return join(realpathSync.native(folder), ...below);
    } catch {
      if (folder === dirname(folder)) return path;
      below.unshift(basename(folder));
    }
  }
};

/** Names are often shortened: `report.ts` for a file in a deeper folder. */
const isShortFor = (name: string, path: string): boolean =>
  !isAbsolute(name) && !name.startsWith("..") && path.endsWith(`/${normalize(name)}`);

const means = ({ claim, places }: Placed, path: string): boolean =>
  places.some((place) => reaches(place, path)) || claim.names.some((name) => isShortFor(name, path));

/** The same path, or one is a folder that contains the other. Only a path that ends in a slash is certainly a folder. */
const reaches = (place: string, path: string): boolean =>
  place === path || path.startsWith(place.endsWith("/") ? place : `${place}/`) || isInFolder(place, path);

const isInFolder = (place: string, folder: string): boolean => folder.endsWith("/") && `${place}/`.startsWith(folder);

// --- what is true --------------------------------------------------------------------------------------------------------

const isConfirmed = (claim: Placed, { own, changed }: Seen): boolean =>
  [...own, ...changed].some((path) => means(claim, path));

const describeUnconfirmed = ({ claim, places }: Placed, { git, status }: Seen): string => {
  const canTell =
    status?.isWhole === true &&
    places.some((place) => git?.knows(place)) &&
    !places.some((place) => status.ignored.some((path) => reaches(place, path)));
  const name = oneLine(claim.text);
  return canTell
    ? `says it changed ${name}, but git and its calls show no change of it`
    : `says it changed ${name}, but its Write and Edit calls show no change of it, and git cannot tell`;
};

/** Created and removed again: there is nothing to report. */
const isGone = (path: string, { git, status, changed }: Seen): boolean =>
  status !== undefined && git?.knows(path) === true && !changed.some((one) => reaches(path, one)) && !isThere(path);

const MOST_NOTES = 10;

const noted = <T>(all: readonly T[], note: (one: T) => string): readonly string[] => {
  const more = all.length - MOST_NOTES;
  return [...all.slice(0, MOST_NOTES).map(note), ...(more > 0 ? [`and ${more} more of this kind`] : [])];
};

const shown = (path: string, cwd: string): string => {
  const below = relative(cwd, path);
  return oneLine(below === "" || below.startsWith("..") ? path : below);
};

// --- what the journal says ---------------------------------------------------------------------------------------------

/** The files that calls of this journal changed, as absolute paths, each once, in the order of the first change. Only
 *  successful calls count; the text of a command does not say what it changed. */
export const readEditedFiles = (
  entries: Iterable<JournalEntry>,
  touchesOf: (call: NamedCall) => Touches | undefined,
): readonly string[] => {
  const edited = new Set<string>();
  const writesByCall = new Map<string, readonly string[]>();
  let cwd = "/";
  for (const entry of entries) {
    if (entry.kind === "opened") cwd = entry.cwd;
    else if (entry.kind === "message")
      // The last call with an id counts, because a provider may reuse it.
      for (const block of entry.message.content)
        if (block.type === "tool_use") writesByCall.set(block.id, touchesOf(block)?.writes ?? []);
    if (entry.kind !== "call_ended" || entry.result.isError) continue;
    for (const path of writesByCall.get(entry.callId) ?? []) edited.add(resolve(cwd, path));
  }
  return [...edited];
};

/** The files that the calls of a child have changed. */
export class EditTracker {
  readonly files = new Set<string>();
  readonly #proposed = new Map<string, readonly string[]>();

  observe(event: EventBody): void {
    if (event.type === "call_proposed" || event.type === "call_changed")
      this.#proposed.set(event.callId, event.touches?.writes ?? []);
    else if (event.type === "call_ended") {
      const paths = this.#proposed.get(event.callId) ?? [];
      this.#proposed.delete(event.callId);
      if (event.fault === undefined) for (const path of paths) this.files.add(path);
    }
  }
}
