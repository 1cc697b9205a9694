/** Where does a search start, which files does its glob mean, and how are results named?
 *  Invariant: the root is inspected without following links before any program is sent there. Results are shown
 *  relative to the working directory where they are below it. We apply the glob ourselves with and without ripgrep, so
 *  the answer is the same. Ripgrep's own --glob is not used: it would also search matching files that git ignores, and
 *  Grep promises otherwise.
 *  Elsewhere: searching (glob.ts, grep.ts), opening files (tool-files.ts), listing files (list-files.ts,
 *  ripgrep.ts). */

import { basename, dirname } from "node:path";
import { globMatcher, globProblem, type Refused, shownName } from "@prefork/guard/internal";
import type { ToolContext } from "./tool.ts";

export type SearchRoot = {
  readonly ok: true;
  /** The folder, or the single file, to search. Absolute. */
  readonly path: string;
  readonly isFile: boolean;
  /** What patterns are relative to: the folder, or the folder of the file. */
  readonly folder: string;
};

export const findSearchRoot = async (
  text: string | undefined,
  { files, cwd }: ToolContext,
): Promise<SearchRoot | Refused> => {
  const located = files.locate(text ?? cwd);
  if (!located.ok) return { ok: false, reason: `${text}: ${located.reason}` };
  const { path } = located;
  const looked = await files.look(path);
  if (!looked.ok) return { ok: false, reason: `${path}: ${looked.reason}` };
  switch (looked.facts?.kind) {
    case "folder":
      return { ok: true, path, isFile: false, folder: path };
    case "file":
      return { ok: true, path, isFile: true, folder: dirname(path) };
    case "link":
      return { ok: false, reason: `${path} is a link, and links are not followed; give the place it leads to` };
    case "other":
      return { ok: false, reason: `${path} is neither a file nor a folder` };
    case undefined:
      return { ok: false, reason: `${path}: there is no such file or folder` };
  }
};

export const shownPath = (path: string, cwd: string): string =>
  shownName(path.startsWith(`${cwd}/`) ? path.slice(cwd.length + 1) : path);

/** `*.ts` matches names at any depth, `src/*.ts` matches paths below the folder. A leading `!` excludes matching
 *  files and everything below a matching folder. A string says what is wrong with the glob. */
export const globFilter = (
  glob: string | undefined,
  { folder, isFile }: SearchRoot,
): ((path: string) => boolean) | string => {
  if (glob === undefined || isFile) return () => true;
  const isExcluding = glob.startsWith("!");
  const pattern = (isExcluding ? glob.slice(1) : glob).replace(/^(?:\.\/)+/, "").replace(/\/$/, "");
  const problem = globProblem(pattern);
  if (problem !== undefined) return `the glob ${problem}`;
  const matches = globMatcher(pattern.replace(/^\//, ""), { orBelow: isExcluding });
  if (pattern.includes("/")) return (path) => matches(path.slice(folder.length + 1)) !== isExcluding;
  if (!isExcluding) return (path) => matches(basename(path));
  return (path) =>
    !path
      .slice(folder.length + 1)
      .split("/")
      .some(matches);
};

/** A file name pattern that every wanted file matches, so that ripgrep need not read the others. It becomes a type:
 *  unlike a glob, a type does not bring back what git ignores. Undefined if there is no such pattern, or no simple
 *  one. */
export const fileNameHint = (glob: string): string | undefined => {
  const name = glob.split("/").at(-1) ?? "";
  const isPlain = /^[\w.*?-]+$/.test(name) || (!glob.includes("/") && /^[\w.*?-]*\{[\w.,*?-]+\}[\w.*?-]*$/.test(name));
  return isPlain && !/^\*+$|\*\*/.test(name) ? name : undefined;
};
