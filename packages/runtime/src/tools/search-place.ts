/** Where does a search begin, and how are its results named?
 *  Invariant: the place is looked at without following links before any program is sent there; names are shown relative
 *  to the working directory where they lie in it.
 *  Elsewhere: searching (glob.ts, grep.ts), reaching files (tool-files.ts). */

import { dirname } from "node:path";
import { globMatcher, type Refused, shownName } from "@prefork/guard/internal";
import type { ToolContext } from "./tool.ts";

export type SearchPlace = {
  readonly ok: true;
  /** The folder, or the one file, to search. Absolute. */
  readonly path: string;
  readonly isFile: boolean;
  /** Where patterns begin: the folder, or the folder of the file. */
  readonly folder: string;
};

export const placeOf = async (
  text: string | undefined,
  { files, cwd }: ToolContext,
): Promise<SearchPlace | Refused> => {
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

/** Which files does the glob of a search mean? Pure.
 *  Invariant: asked by us with ripgrep and without, so the answer is the same. Ripgrep's own --glob is not used for it:
 *  a file that fits it is searched there although git ignores it, and Grep promises otherwise.
 *  Elsewhere: which files there are at all (list-files.ts, ripgrep.ts). */

/** `*.ts` fits names at any depth, `src/*.ts` fits paths below the folder. With `!` before it, files that fit are left
 *  out, and so is all below a folder that fits. */
export const wantedBy = (glob: string | undefined, { folder, isFile }: SearchPlace): ((path: string) => boolean) => {
  if (glob === undefined || isFile) return () => true;
  const isExcluding = glob.startsWith("!");
  const pattern = (isExcluding ? glob.slice(1) : glob).replace(/^(?:\.\/)+/, "");
  const fits = fitting(pattern);
  return (path) => {
    const names = path.slice(folder.length + 1).split("/");
    if (!isExcluding) return fits(names);
    return !names.some((_, at) => fits(names.slice(0, at + 1)));
  };
};

const fitting = (pattern: string): ((names: readonly string[]) => boolean) => {
  const bare = pattern.replace(/\/$/, "");
  const isPath = bare.includes("/");
  const fits = globMatcher(bare.replace(/^\//, ""));
  return (names) => fits(isPath ? names.join("/") : (names.at(-1) ?? ""));
};

/** A pattern for names that every wanted file fits, for ripgrep to leave others unread: a type, unlike a glob, brings
 *  back nothing that git ignores. Undefined where there is no such pattern, or no plain one. */
export const namesHint = (glob: string): string | undefined => {
  const name = glob.split("/").at(-1) ?? "";
  const isPlain = /^[\w.*?-]+$/.test(name) || (!glob.includes("/") && /^[\w.*?-]*\{[\w.,*?-]+\}[\w.*?-]*$/.test(name));
  return isPlain && !/^\*+$|\*\*/.test(name) ? name : undefined;
};
