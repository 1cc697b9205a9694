/** Where and when does the session run?
 *  Invariant: one plain value, read at an epoch's start and again for the notes; a day is all it knows of time, so it does
 *  not change by itself within one.
 *  Elsewhere: what git says (git-summary.ts), what is told of a change (notes.ts), project conventions (conventions.ts). */

import { platform as thisPlatform, release as thisRelease } from "node:os";
import type { Mode } from "@prefork/guard";
import type { Clock } from "../ports.ts";
import { type GitQuestion, type GitSummary, readGit } from "./git-summary.ts";
import { encloseParts, escapeTags, oneLine } from "./tags.ts";

export type Environment = {
  readonly cwd: string;
  readonly platform: string;
  readonly release: string;
  readonly shell: "bash";
  /** YYYY-MM-DD where the user is. */
  readonly date: string;
  readonly git: GitSummary;
};

export type EnvironmentQuestion = GitQuestion & {
  readonly clock: Clock;
  readonly timeZone?: string; // default: the machine's
  readonly platform?: string; // default: the machine's
  readonly release?: string; // default: the machine's
};

export const readEnvironment = async (question: EnvironmentQuestion): Promise<Environment> => {
  const { clock, timeZone, platform = thisPlatform(), release = thisRelease(), ...git } = question;
  const date = localDate(clock.now(), timeZone);
  return { cwd: git.cwd, platform, release, shell: "bash", date, git: await readGit(git) };
};

/** Without a zone the machine's own is read from the date itself: the calendars of all countries take 8 MB once one of
 *  them is asked. */
export const localDate = (ms: number, timeZone?: string): string => {
  if (timeZone === undefined) {
    const day = new Date(ms);
    const two = (number: number): string => String(number).padStart(2, "0");
    return `${String(day.getFullYear()).padStart(4, "0")}-${two(day.getMonth() + 1)}-${two(day.getDate())}`;
  }
  const zone = { timeZone };
  const format = new Intl.DateTimeFormat("en-US", {
    ...{ calendar: "gregory", numberingSystem: "latn", ...zone },
    ...{ year: "numeric", month: "2-digit", day: "2-digit" },
  });
  const parts = new Map(format.formatToParts(ms).map(({ type, value }) => [type, value]));
  return `${parts.get("year")?.padStart(4, "0")}-${parts.get("month")}-${parts.get("day")}`;
};

/** What a mode means to the one who works under it. */
export const MODE_WORDS: Readonly<Record<Mode, string>> = {
  default: "reading is free; anything that changes something is asked about first",
  "accept-edits": "files of the workspace may be changed; other changes are asked about first",
  plan: "only reading is possible; look into the matter and answer with a plan, and change nothing",
  bubble: "what has to be asked goes to the main agent's user, and may take a while",
  bypass: "nearly everything runs unasked, so take the more care",
};

export const environmentText = ({ cwd, platform, release, shell, date, git }: Environment, mode?: Mode): string =>
  encloseParts(
    "environment",
    [
      `Working folder: ${oneLine(cwd, 4_096)}`,
      `Platform: ${platform} ${release}`,
      `Shell: ${shell}`,
      `Date: ${date}`,
      ...(mode === undefined ? [] : [`Permission mode: ${mode} (${MODE_WORDS[mode]})`]),
      ...gitLines(git),
    ].map(escapeTags),
  );

const gitLines = (git: GitSummary): readonly string[] => {
  if (git.kind === "none") return ["Git: the working folder is in no repository"];
  if (git.kind === "left-out") return [`Git: no summary, because ${git.reason}`];
  const { commits } = git;
  const last = commits.length === 0 ? ["No commits yet"] : ["Last commits:", ...commits.map((line) => `  ${line}`)];
  return [`Git: ${headWords(git.branch)}; ${countWords(git)}, at this point`, ...last];
};

export const headWords = (branch: string | undefined): string =>
  branch === undefined ? "no branch, a commit is checked out" : `branch ${branch}`;

const countWords = (git: Extract<GitSummary, { readonly kind: "repository" }>): string => {
  const kinds = ["staged", "unstaged", "untracked", "conflicted"] as const;
  const counts = kinds.flatMap((kind) => (git[kind] > 0 ? `${git[kind]} ${kind}` : []));
  return counts.length === 0 ? "nothing changed" : counts.join(", ");
};
