/** What a file says after an edit by its text.
 *  Invariant: pure; the old text must stand there exactly once unless all of it is meant; `$` in the new text is a dollar.
 *  Elsewhere: reading and writing the file (../files). */

import type { Refused } from "../paths/index.ts";

export type TextEdit = { readonly old_string: string; readonly new_string: string; readonly replace_all?: boolean };

/** As much as Read accepts: an edit must not make a file that nothing can read afterwards. */
const MOST_CHARACTERS = 32 * 1024 * 1024;

export const editText = (text: string, edit: TextEdit): { readonly ok: true; readonly text: string } | Refused => {
  const { old_string: old, new_string: next, replace_all: all = false } = edit;
  if (old === "") return { ok: false, reason: "old_string is empty; Write makes a new file" };
  if (old === next) return { ok: false, reason: "old_string and new_string are equal; nothing would change" };
  const places = countOf(old, text);
  if (places === 0) return { ok: false, reason: "old_string does not stand in the file; read it again" };
  if (places > 1 && !all)
    return { ok: false, reason: `old_string stands in the file ${places} times; give more of it, or replace_all` };
  const grownTo = text.length + places * (next.length - old.length);
  if (grownTo > Math.max(MOST_CHARACTERS, text.length))
    return {
      ok: false,
      reason: `the file would grow to ${grownTo.toLocaleString("en-US")} characters; the limit is 32 MiB`,
    };
  return { ok: true, text: text.replaceAll(old, () => next) };
};

/** Counts without making a list: a file may hold millions of them. */
const countOf = (wanted: string, text: string): number => {
  let count = 0;
  for (let at = text.indexOf(wanted); at >= 0; at = text.indexOf(wanted, at + wanted.length)) count++;
  return count;
};
