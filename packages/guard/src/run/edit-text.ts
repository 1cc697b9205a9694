/** What a file says after an edit by its text.
 *  Invariant: pure; the old text must stand there exactly once unless all of it is meant; `$` in the new text is a dollar.
 *  Elsewhere: reading and writing the file (../files). */

import type { Refused } from "../paths/index.ts";

export type TextEdit = { readonly old_string: string; readonly new_string: string; readonly replace_all?: boolean };

export const editText = (text: string, edit: TextEdit): { readonly ok: true; readonly text: string } | Refused => {
  const { old_string: old, new_string: next, replace_all: all = false } = edit;
  if (old === "") return { ok: false, reason: "old_string is empty; Write makes a new file" };
  if (old === next) return { ok: false, reason: "old_string and new_string are equal; nothing would change" };
  const pieces = text.split(old);
  if (pieces.length === 1) return { ok: false, reason: "old_string does not stand in the file; read it again" };
  if (pieces.length > 2 && !all)
    return {
      ok: false,
      reason: `old_string stands in the file ${pieces.length - 1} times; give more of it, or replace_all`,
    };
  return { ok: true, text: pieces.join(next) };
};
