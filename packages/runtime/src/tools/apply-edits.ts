/** What does a file say after several edits, and where do they go wrong?
 *  Invariant: pure; all edits or none, each on the text that the one before left; line endings of the file stay, however
 *  the edit was spelled. A refusal shows what stands in the file instead, with line numbers.
 *  Elsewhere: one exact replacement (@prefork/guard), encodings (text-file.ts), may it be edited (known-file.ts). */

import { editText, type Refused, type TextEdit } from "@prefork/guard/internal";
import { likest } from "./similar.ts";
import { linesOf, numbered, type TextFile } from "./text-file.ts";

export type Edited = {
  readonly ok: true;
  readonly text: string;
  /** The first line of each place that was changed, as each edit left it. */
  readonly lines: readonly number[];
};

export const applyEdits = (file: TextFile, edits: readonly TextEdit[]): Edited | Refused => {
  let text = file.text;
  const lines: number[] = [];
  for (const [at, edit] of edits.entries()) {
    const spelled = spelledFor(text, file.ending, edit);
    const edited = editText(text, spelled);
    if (!edited.ok) {
      const reason = explain(text, spelled, edited.reason);
      return { ok: false, reason: edits.length === 1 ? reason : `edit ${at + 1} of ${edits.length}: ${reason}` };
    }
    lines.push(...placesOf(text, spelled.old_string).slice(0, edit.replace_all ? undefined : 1));
    text = edited.text;
  }
  return { ok: true, text, lines };
};

/** Models write `\n`; a file that ends its lines otherwise is matched, and goes on, in its own way. */
const spelledFor = (text: string, ending: TextFile["ending"], edit: TextEdit): TextEdit => {
  const as = (to: string): TextEdit => ({
    ...edit,
    old_string: edit.old_string.replace(/\r?\n/g, to),
    new_string: edit.new_string.replace(/\r?\n/g, to),
  });
  const other = ending === "\n" ? "\r\n" : "\n";
  const ways = [ending === "\n" ? edit : as("\r\n"), as(ending), as(other)];
  return ways.find(({ old_string }) => old_string !== "" && text.includes(old_string)) ?? (ways[0] as TextEdit);
};

/** Line numbers of all places where a text begins. */
const placesOf = (text: string, part: string): readonly number[] => {
  const lines: number[] = [];
  let [line, from] = [1, 0];
  for (let at = text.indexOf(part); at !== -1; at = text.indexOf(part, at + part.length)) {
    line += text.slice(from, at).split("\n").length - 1;
    from = at;
    lines.push(line);
  }
  return lines;
};

const MOST_PLACES = 10;

const explain = (text: string, { old_string: old, new_string: next }: TextEdit, reason: string): string => {
  if (old === "") return "old_string is empty. Give the text to replace; to make a file use Write.";
  if (old === next) return "old_string and new_string are equal, so nothing would change.";
  const places = placesOf(text, old);
  if (places.length > 1) {
    const shown = places.slice(0, MOST_PLACES).join(", ");
    const more = places.length > MOST_PLACES ? ` and ${places.length - MOST_PLACES} more` : "";
    return `old_string stands in the file ${places.length} times, at lines ${shown}${more}. Give more of the text around the one you mean, or set replace_all.`;
  }
  return places.length === 0 ? explainMissing(text, old) : reason;
};

const explainMissing = (text: string, old: string): string => {
  const lines = linesOf(text);
  const wanted = linesOf(old);
  const shown = (at: number, count: number): string => numbered(lines.slice(at, at + count), at + 1, 300);
  const unnumbered = wanted.map((line) => line.replace(/^\s*\d+\t/, ""));
  if (wanted.every((line) => /^\s*\d+\t/.test(line)) && text.includes(unnumbered.join("\n")))
    return "old_string holds the line numbers that Read puts before each line. Leave number and tab out.";
  const loose = findLines(lines, wanted);
  if (loose !== undefined)
    return `old_string does not stand in the file as given, but with other white space it does:\n${shown(loose, wanted.length)}\nCopy it from there exactly.`;
  const near = nearestPlace(lines, wanted);
  if (near === undefined) return "old_string does not stand in the file, nor anything like it. Read the file again.";
  const from = Math.max(0, near);
  return `old_string does not stand in the file. The nearest lines are:\n${shown(from, Math.min(Math.max(wanted.length, 3), 12))}`;
};

const squeezed = (line: string): string => line.replace(/\s+/g, " ").trim();

/** Where the same lines stand when white space does not count. */
const findLines = (lines: readonly string[], wanted: readonly string[]): number | undefined => {
  const plain = lines.map(squeezed);
  const [first = "", ...more] = wanted.map(squeezed);
  if (first === "" && more.every((line) => line === "")) return undefined;
  const isAt = (at: number): boolean =>
    more.length === 0
      ? (plain[at] ?? "").includes(first)
      : [first, ...more].every((line, step) => plain[at + step] === line);
  const at = lines.findIndex((_, index) => isAt(index));
  return at === -1 ? undefined : at;
};

const MOST_COMPARED = 20_000;

/** Where the line that says most in the wanted text has its likest line, counted back to where the text would begin. */
const nearestPlace = (lines: readonly string[], wanted: readonly string[]): number | undefined => {
  const longest = wanted.reduce(
    (best, line, at) => (line.trim().length > (wanted[best] ?? "").trim().length ? at : best),
    0,
  );
  const found = likest(
    (wanted[longest] ?? "").trim(),
    lines.slice(0, MOST_COMPARED).map((line) => line.trim()),
    0.4,
  );
  return found === undefined ? undefined : Math.max(0, found.at - longest);
};
