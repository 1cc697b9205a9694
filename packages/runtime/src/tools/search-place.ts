/** Where does a search begin, and how are its results named?
 *  Invariant: the place is looked at without following links before any program is sent there; names are shown relative
 *  to the working directory where they lie in it.
 *  Elsewhere: searching (glob.ts, grep.ts), reaching files (tool-files.ts). */

import { dirname } from "node:path";
import { type Refused, shownName } from "@prefork/guard/internal";
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
