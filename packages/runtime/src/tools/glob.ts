/** Glob: files whose names fit a pattern, the newest first.
 *  Invariant: the pattern names places below the folder that was judged, and no other; files that a rule denies are
 *  left out, and so is what git ignores.
 *  Elsewhere: which files there are (list-files.ts), what they hold (grep.ts). */

import { lstat } from "node:fs/promises";
import { basename } from "node:path";
import { globMatcher } from "@prefork/guard/internal";
import * as z from "zod";
import { listFiles, ripgrepOf, WITHOUT_RIPGREP } from "./list-files.ts";
import { placeOf, shownPath } from "./search-place.ts";
import { defineTool, failed } from "./tool.ts";

const MOST_SHOWN = 200;
const MOST_ASKED = 20_000;

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
    const place = await placeOf(path, context);
    if (!place.ok) return failed(`${place.reason}.`);
    if (place.isFile) return failed(`${place.path} is a file; Glob looks into folders.`);
    const { folder } = place;
    const fits = matcherOf(pattern, folder);
    if (typeof fits === "string") return failed(fits);
    const listed = await listFiles(folder, context);
    if (!listed.ok) return failed(`${listed.reason}.`);
    const names = listed.names.filter(fits).map((name) => `${folder}/${name}`);
    const found = await newestFirst(names.filter(context.files.mayRead(folder)));
    const notes = [
      ...(found.length > MOST_SHOWN ? [`[${found.length - MOST_SHOWN} more; narrow the pattern or the path]`] : []),
      ...(listed.isCut ? ["[the folder holds too many files; not all were looked at]"] : []),
      ...(ripgrepOf(context) === undefined ? [context.files.sayOnce(WITHOUT_RIPGREP)] : []),
    ].filter((note) => note !== "");
    const shown = found.slice(0, MOST_SHOWN).map((name) => shownPath(name, context.cwd));
    const none = `No file fits ${pattern} in ${shownPath(folder, context.cwd)} (what git ignores was not looked at).`;
    return { content: [...(shown.length === 0 ? [none] : shown), ...notes].join("\n") };
  },
});

/** Does a name below the folder fit? Or why the pattern is none. */
const matcherOf = (pattern: string, folder: string): ((name: string) => boolean) | string => {
  const below = pattern.startsWith(`${folder}/`) ? pattern.slice(folder.length + 1) : pattern.replace(/^(?:\.\/)+/, "");
  if (below.startsWith("/") || below.startsWith("~") || below.split("/").includes(".."))
    return `The pattern ${pattern} leads out of ${folder}. Give the folder as path, and a pattern below it.`;
  const fits = globMatcher(below);
  return (name) => fits(below.includes("/") ? name : basename(name));
};

/** Plain files only; names alone decide among files of the same time. */
const newestFirst = async (paths: readonly string[]): Promise<readonly string[]> => {
  const timed = await Promise.all(
    paths.slice(0, MOST_ASKED).map(async (path) => {
      const stats = await lstat(path).catch(() => undefined);
      return stats?.isFile() ? [{ path, at: stats.mtimeMs }] : [];
    }),
  );
  return timed
    .flat()
    .sort((a, b) => b.at - a.at || (a.path < b.path ? -1 : 1))
    .map(({ path }) => path);
};
