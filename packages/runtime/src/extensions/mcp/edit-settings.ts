/** Adding a tool server to a file of settings, and taking it out again. Pure.
 *  Invariant: comments, order and every other value of the file stay as they are; a file that is not read without doubt
 *  is not changed.
 *  Elsewhere: which file, and writing it (the command line), what an entry may say (entry.ts). */

import { applyEdits, findNodeAtLocation, modify, type ParseError, parseTree } from "jsonc-parser";
import type { WrittenServers } from "../../guard/index.ts";

export type Edited = { readonly ok: true; readonly text: string } | { readonly ok: false; readonly reason: string };

const SECTION = "mcpServers";

/** `entry` undefined: take it out. `text` undefined: there is no file yet. */
export const editServers = (
  text: string | undefined,
  name: string,
  entry: WrittenServers[string] | undefined,
): Edited => {
  const before = text === undefined || text.trim() === "" ? "{}\n" : text;
  const errors: ParseError[] = [];
  const root = parseTree(before, errors, { allowTrailingComma: true });
  if (root?.type !== "object" || errors.length > 0) return { ok: false, reason: "the file is not valid JSON" };
  const isThere = findNodeAtLocation(root, [SECTION, name]) !== undefined;
  if (entry !== undefined && isThere)
    return { ok: false, reason: `there is a server ${name} already; remove it first` };
  if (entry === undefined && !isThere) return { ok: false, reason: `there is no server ${name}` };
  const edits = modify(before, [SECTION, name], entry, {
    formattingOptions: { insertSpaces: true, tabSize: 2, eol: "\n" },
  });
  return { ok: true, text: applyEdits(before, edits) };
};
