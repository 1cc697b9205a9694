/** Glob: finds files whose names match a pattern, newest first.
 *  Invariant: the pattern only reaches below the folder that the guard has judged. Files that a rule denies or git
 *  ignores are skipped.
 *  Elsewhere: listing files (list-files.ts), searching their contents (grep.ts). */

import { lstat } from "node:fs/promises";
import { basename } from "node:path";
import { globMatcher, globProblem } from "@prefork/guard/internal";
import * as z from "zod";
import { filterInTurns } from "./in-turns.ts";
import { listFiles, NO_RIPGREP_NOTE, ripgrepFor } from "./list-files.ts";
import { findSearchRoot, shownPath } from "./search-root.ts";
import { READING_CALLS } from "./slots.ts";
import { defineTool, failed } from "./tool.ts";

const MAX_SHOWN = 200;
const MAX_ASKED = 20_000;

const input = z.strictObject({
  pattern: z.string().min(1).describe("Such as **/*.ts or src/*.{c,h}; without a slash it fits names at any depth"),
  path: z.string().optional().describe("Folder to look in; default: the working directory"),
});

export const globTool = defineTool({
  name: "Glob",
  description:
    "Finds files by name, newest first. Files that git ignores are left out. Names come relative to the working directory.",
  input,
  readOnly: true,
  touches: ({ path = "." }) => ({ reads: [path] }),
  run: async ({ pattern, path }, context) => {
    using _ = await READING_CALLS.enter(context.signal);
    const root = await findSearchRoot(path, context);
    if (!root.ok) return failed(`${root.reason}.`);
    if (root.isFile) return failed(`${root.path} is a file; Glob looks into folders.`);
    const { folder } = root;
    const matches = compilePattern(pattern, folder);
    if (typeof matches === "string") return failed(matches);
    const listed = await listFiles(folder, context);
    if (!listed.ok) return failed(`${listed.reason}.`);
    const mayRead = context.files.mayRead(folder);
    const isMeant = (name: string): boolean => matches(name) && mayRead(`${folder}/${name}`);
    const { items, isCut } = await filterInTurns(listed.names, isMeant, context.signal);
    const found = await newestFirst(items.map((name) => `${folder}/${name}`));
    const notes = [
      ...(found.length > MAX_SHOWN ? [`[${found.length - MAX_SHOWN} more; narrow the pattern or the path]`] : []),
      ...(isCut || listed.isCut ? ["[the folder holds too many files; not all were looked at]"] : []),
      ...(ripgrepFor(context) === undefined ? [context.files.noteOnce(NO_RIPGREP_NOTE)] : []),
    ].filter((note) => note !== "");
    const shown = found.slice(0, MAX_SHOWN).map((name) => shownPath(name, context.cwd));
    const none = `No file fits ${pattern} in ${shownPath(folder, context.cwd)} (what git ignores was not looked at).`;
    return { content: [...(shown.length === 0 ? [none] : shown), ...notes].join("\n") };
  },
});

/** A matcher for names below the folder, or why the pattern cannot be used. */
const compilePattern = (pattern: string, folder: string): ((name: string) => boolean) | string => {
  const below = pattern.startsWith(`${folder}/`) ? pattern.slice(folder.length + 1) : pattern.replace(/^(?:\.\/)+/, "");
  if (below.startsWith("/") || below.startsWith("~") || below.split("/").includes(".."))
    return `The pattern ${pattern} leads out of ${folder}. Give the folder as path, and a pattern below it.`;
  const problem = globProblem(below);
  if (problem !== undefined) return `The pattern ${problem}.`;
  const matches = globMatcher(below);
  return (name) => matches(below.includes("/") ? name : basename(name));
};

/** Regular files only. Files with the same time are ordered by name. */
const newestFirst = async (paths: readonly string[]): Promise<readonly string[]> => {
  const timed = await Promise.all(
    paths.slice(0, MAX_ASKED).map(async (path) => {
      const stats = await lstat(path).catch(() => undefined);
      return stats?.isFile() ? [{ path, at: stats.mtimeMs }] : [];
    }),
  );
  return timed
    .flat()
    .sort((a, b) => b.at - a.at || (a.path < b.path ? -1 : 1))
    .map(({ path }) => path);
};
