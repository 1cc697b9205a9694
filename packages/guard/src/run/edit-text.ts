/** What does a file contain after an edit by its text?
 *  Invariant: pure. The old text must occur exactly once unless all occurrences are meant; `$` in the new text is a
 *  dollar sign. Takes time proportional to both texts, whatever they contain.
 *  Elsewhere: reading and writing the file (../files). */

import type { Refused } from "../paths/index.ts";

export type TextEdit = { readonly old_string: string; readonly new_string: string; readonly replace_all?: boolean };

/** As much as Read accepts: an edit must not make a file that nothing can read afterwards. */
const MAX_CHARACTERS = 32 * 1024 * 1024;
const MAX_PLACES = 1_000_000;

export const editText = (text: string, edit: TextEdit): { readonly ok: true; readonly text: string } | Refused => {
  const { old_string: old, new_string: next, replace_all: all = false } = edit;
  if (old === "") return { ok: false, reason: "old_string is empty; Write makes a new file" };
  if (old === next) return { ok: false, reason: "old_string and new_string are equal; nothing would change" };
  const places = findOccurrences(text, old, MAX_PLACES + 1);
  if (places.length === 0) return { ok: false, reason: "old_string does not occur in the file; read it again" };
  if (places.length > MAX_PLACES)
    return { ok: false, reason: `old_string occurs in the file more than ${MAX_PLACES} times` };
  if (places.length > 1 && !all)
    return {
      ok: false,
      reason: `old_string occurs in the file ${places.length} times; give more of it, or replace_all`,
    };
  const grownTo = text.length + places.length * (next.length - old.length);
  if (grownTo > Math.max(MAX_CHARACTERS, text.length))
    return {
      ok: false,
      reason: `the file would grow to ${grownTo.toLocaleString("en-US")} characters; the limit is 32 MiB`,
    };
  const pieces = places.map((at, index) => text.slice(index === 0 ? 0 : (places[index - 1] ?? 0) + old.length, at));
  return { ok: true, text: [...pieces, text.slice((places.at(-1) ?? 0) + old.length)].join(next) };
};

/** For longer parts, V8's search can take time proportional to the length of the text times the length of the part. */
const MAX_BUILT_IN_SEARCH = 200;

/** Where a part occurs in a text: from the left, without overlaps, up to a limit. */
export const findOccurrences = (text: string, part: string, most: number): readonly number[] => {
  const places: number[] = [];
  if (part === "" || part.length > text.length) return places;
  if (part.length <= MAX_BUILT_IN_SEARCH) {
    for (let at = text.indexOf(part); at !== -1 && places.length < most; at = text.indexOf(part, at + part.length))
      places.push(at);
    return places;
  }
  const repeats = repeatsOf(part);
  let same = 0;
  for (let at = 0; at < text.length && places.length < most; at += 1) {
    const letter = text.charCodeAt(at);
    while (same > 0 && part.charCodeAt(same) !== letter) same = repeats[same - 1] ?? 0;
    if (part.charCodeAt(same) === letter) same += 1;
    if (same < part.length) continue;
    places.push(at + 1 - part.length);
    same = 0;
  }
  return places;
};

/** For each letter: the length of the longest proper prefix of the part that also ends there (Knuth, Morris, Pratt). */
const repeatsOf = (part: string): Int32Array => {
  const repeats = new Int32Array(part.length);
  let same = 0;
  for (let at = 1; at < part.length; at += 1) {
    while (same > 0 && part.charCodeAt(same) !== part.charCodeAt(at)) same = repeats[same - 1] ?? 0;
    if (part.charCodeAt(same) === part.charCodeAt(at)) same += 1;
    repeats[at] = same;
  }
  return repeats;
};
