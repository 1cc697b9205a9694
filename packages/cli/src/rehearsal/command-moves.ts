/** Which commands does a clause of a prompt ask for: git, a pipe, or a command that it spells out?
 *  Invariant: pure; a command in the prompt runs exactly as written; a command that is built here is read-only.
 *  Elsewhere: other reading calls (reading-moves.ts), shell words (commands.ts), whether it may run (the guard). */

import type { JsonObject } from "@prefork/wire";
import {
  countFilesPerFolder,
  gitAuthors,
  gitBlame,
  gitBranch,
  gitDiff,
  gitLog,
  gitShow,
  gitStatus,
  repeatedMatches,
} from "./commands.ts";
import { bash, look, type Move } from "./moves.ts";
import { linesIn, pathsIn, searchText, splitPlace } from "./reading-moves.ts";
import { isCommand, type Masked, spansOf } from "./spans.ts";

export const gitMove = (clause: Masked): Move | undefined => {
  const { text } = clause;
  const paths = pathsIn(clause);
  const [path] = paths;
  if (/^(?:run|execute)\b/i.test(text) || spansOf(clause).some((span) => /\s/.test(span.text))) return undefined;
  if (/\bwho\s+(?:wrote|changed|touched|last)\b|\bblame\b|\bauthors?\b/i.test(text))
    return look(bash(path === undefined ? gitAuthors() : gitBlame(path, linesIn(text))));
  const commits = /\b(?:last|latest|recent|newest)\s+(?:(\d{1,4})\s+)?commits?\b/i.exec(text);
  if (commits !== null || /\bgit\s+log\b|\b(?:commit|git)\s+history\b/i.test(text)) {
    const single = commits !== null && commits[1] === undefined && /\bcommit\b/i.test(commits[0]);
    const count = Number(commits?.[1] ?? /-n?\s?(\d{1,4})\b/.exec(text)?.[1] ?? (single ? 1 : 10));
    return look(bash(gitLog(Math.max(1, count), paths)));
  }
  if (/\bgit\s+diff\b|\b(?:show|print)\s+(?:me\s+)?(?:the\s+)?(?:staged\s+|unstaged\s+)?(?:diff|changes)\b/i.test(text))
    return look(bash(gitDiff(/\bstaged\b/i.test(text) && !/\bunstaged\b/i.test(text), paths)));
  const revision = /\bgit\s+show(?:\s+([\w./~^]+))?/i.exec(text);
  if (revision !== null) return look(bash(gitShow(revision[1] ?? "HEAD")));
  if (/\bwhat\s+(?:has\s+)?changed\b/i.test(text))
    return look(bash(path === undefined ? gitStatus() : gitDiff(false, paths)));
  if (
    /\bgit\s+status\b|\buncommitted\b|\b(?:modified|changed)\s+files\b|\bfiles\s+(?:are\s+|were\s+)?(?:changed|modified)\b/i.test(
      text,
    )
  )
    return look(bash(gitStatus()));
  return /\b(?:current|which|what)\s+(?:git\s+)?branch\b|\bgit\s+branch\b/i.test(text)
    ? look(bash(gitBranch()))
    : undefined;
};

const REPEATS =
  /^(?:find|list|show|print)\s+(?:me\s+)?(?:(?:the|all|any)\s+)*(?:duplicates?|repeats|repeated\s+\w+|duplicated?\s+\w+)\s+(?:of\s+)?(.+)$/i;
const PER_FOLDER =
  /^(?:count|how many)\s+(?:(?:the|all|of|number)\s+)*files\s+(?:(?:are|there)\s+)*(?:per|by|in each|in every)\s+(?:folder|directory)\b(.*)$/i;

/** No single tool sorts its matches, so these are pipes. The text to search for must be marked. */
export const pipeMove = (clause: Masked): Move | undefined => {
  const perFolder = PER_FOLDER.exec(clause.text.replace(/\?$/, ""))?.[1];
  if (perFolder !== undefined) {
    const { place } = splitPlace(perFolder.replace(/^\s+(?:of|below)\s+/i, " in "), clause);
    return look({ ...bash(countFilesPerFolder(place)), about: "tally" });
  }
  const repeated = REPEATS.exec(clause.text)?.[1];
  if (repeated === undefined || spansOf({ ...clause, text: repeated }).length === 0) return undefined;
  const { rest, place } = splitPlace(repeated, clause);
  const found = searchText(rest, clause);
  return found === undefined ? undefined : look({ ...bash(repeatedMatches(found, place)), about: "repeats" });
};

/** The command runs exactly as the prompt says; the guard decides whether it may. */
export const runMove = (clause: Masked): Move | undefined => {
  const timeout = /\btime-?out\s+(?:of\s+)?(\d{1,6})\s*(ms|milliseconds|s|seconds?|minutes?)\b/i.exec(clause.text);
  const unit = /^m(?:s|illi)/i.test(timeout?.[2] ?? "") ? 1 : /^m/i.test(timeout?.[2] ?? "") ? 60_000 : 1_000;
  const extras: JsonObject = {
    ...(timeout === null ? {} : { timeout: Number(timeout[1]) * unit }),
    ...(/\bin\s+(?:the\s+)?background\b/i.test(clause.text) ? { run_in_background: true } : {}),
  };
  const asked = /^(?:run|execute|start|try|check|verify|test|build)\b/i.test(clause.text);
  const marked = spansOf(clause).filter(({ kind, text }) => kind !== "quoted" && (asked || isCommand(text)));
  if (marked.length > 0) return look(...marked.map(({ text }) => bash(text.replace(/\n+$/, ""), extras)));
  const bare = /^(?:run|execute)\s+(?:the\s+command\s+)?(\S+)(.*)$/i.exec(clause.text);
  if (bare === null || !isCommand(bare[1] ?? "") || spansOf(clause).length > 0) return undefined;
  return look(bash(`${bare[1]}${bare[2]}`.replace(/(?<=\w)[.?!]$/, "").trim(), extras));
};
