/** Edit: replaces exact pieces of text in a file, one or several at once.
 *  Invariant: all edits of a call are made or none, each on the text that the one before left. A file is changed only
 *  if it was read in this session and has not changed since. Its byte order mark, line endings and mode stay, however
 *  the edit writes its line endings. A refusal shows what the file contains instead, with line numbers.
 *  Elsewhere: one exact replacement and writing (@prefork/guard), what was read (read-state.ts), encodings
 *  (file-content.ts). */

import { editText, type Refused, type TextEdit } from "@prefork/guard/internal";
import * as z from "zod";
import {
  countLines,
  decodeText,
  detectFileKind,
  encodeText,
  numberLines,
  splitLines,
  type TextFile,
} from "./file-content.ts";
import { changeProblem } from "./read-state.ts";
import { findMostSimilar } from "./similar.ts";
import { defineTool, failed } from "./tool.ts";

const edit = {
  old_string: z.string(),
  new_string: z.string(),
  replace_all: z.boolean().optional(),
};

const input = z.strictObject({
  file_path: z.string().describe("Absolute"),
  old_string: z.string().optional().describe("Text to replace, exactly as in the file, without line numbers"),
  new_string: z.string().optional().describe("What to put in its place"),
  replace_all: z.boolean().optional().describe("Replace every occurrence; otherwise there must be exactly one"),
  edits: z.array(z.strictObject(edit)).min(1).optional().describe("Several edits in place of the three above"),
});

type EditInput = z.output<typeof input>;

export const editTool = defineTool({
  name: "Edit",
  description:
    "Replaces text in a file that was read in this session. Give old_string and new_string, or edits for several " +
    "changes that are made in order, all or none. old_string must match exactly, white space included, and once.",
  input,
  readOnly: false,
  touches: ({ file_path }) => ({ writes: [file_path] }),
  startsPrograms: false,
  run: async (given, { files, reads, approved = false }) => {
    const { file_path } = given;
    const refuse = (reason: string) => failed(`${reason}${reason.endsWith(".") ? " " : "\n"}Nothing was changed.`);
    const edits = editsOf(given);
    if (typeof edits === "string") return failed(edits, "bad-input");
    const located = files.locate(file_path);
    if (!located.ok) return refuse(`${file_path}: ${located.reason}.`);
    const { path } = located;
    const read = await files.read(path);
    if (!read.ok) return refuse(`${file_path}: ${read.reason}.`);
    const { version } = read.facts;
    const refused = changeProblem(reads, { path, bytes: read.bytes, version, need: "some" });
    if (refused !== undefined) return refuse(`${file_path} ${refused}`);
    const kind = detectFileKind(read.bytes);
    const file = decodeText(read.bytes);
    if (kind.kind !== "text") return refuse(`${file_path} is not text, so it cannot be edited.`);
    if (file.encoding !== "utf-8")
      return refuse(`${file_path} is ${file.encoding} text; only UTF-8 can be edited without harm to the rest.`);
    const edited = applyEdits(file, edits);
    if (!edited.ok) return refuse(`${file_path}: ${edited.reason}`);
    const bytes = encodeText(file, edited.text);
    const written = await files.write(path, bytes, { expected: version, approved });
    if (!written.ok) return refuse(`${file_path}: ${written.reason}.`);
    reads.recordEdit(path, { version: written.facts.version, bytes, lines: countLines(edited.text) });
    return { content: `Edited ${file_path}: ${describeLines(edited.lines)}.` };
  },
});

const MAX_TOLD = 20;

const describeLines = (lines: readonly number[]): string => {
  const more = lines.length > MAX_TOLD ? ` and ${lines.length - MAX_TOLD} more` : "";
  return `${lines.length} ${lines.length === 1 ? "place" : "places"}, at ${lines.length === 1 ? "line" : "lines"} ${lines.slice(0, MAX_TOLD).join(", ")}${more}`;
};

/** The edits, or what is wrong with the input. */
const editsOf = ({ old_string, new_string, replace_all, edits }: EditInput): readonly TextEdit[] | string => {
  const isFlat = old_string !== undefined || new_string !== undefined || replace_all !== undefined;
  if (edits !== undefined && isFlat) return "Give either edits, or old_string and new_string, not both.";
  if (edits !== undefined) return edits.map(asEdit);
  if (old_string === undefined || new_string === undefined)
    return `${old_string === undefined ? "old_string" : "new_string"} is missing; give old_string and new_string, or edits.`;
  return [asEdit({ old_string, new_string, replace_all })];
};

const asEdit = ({
  old_string,
  new_string,
  replace_all = false,
}: {
  readonly old_string: string;
  readonly new_string: string;
  readonly replace_all?: boolean | undefined;
}): TextEdit => ({ old_string, new_string, replace_all });

/** Pure. */

export type AppliedEdits = {
  readonly ok: true;
  readonly text: string;
  /** The first line of each changed location, as each edit left it. */
  readonly lines: readonly number[];
};

export const applyEdits = (file: TextFile, edits: readonly TextEdit[]): AppliedEdits | Refused => {
  let text = file.text;
  const lines: number[] = [];
  for (const [at, edit] of edits.entries()) {
    const spelled = withFileLineEndings(text, file.lineEnding, edit);
    const edited = editText(text, spelled);
    if (!edited.ok) {
      const reason = explainFailure(text, spelled, edited.reason);
      return { ok: false, reason: edits.length === 1 ? reason : `edit ${at + 1} of ${edits.length}: ${reason}` };
    }
    lines.push(...lineNumbersOf(text, spelled.old_string).slice(0, edit.replace_all ? undefined : 1));
    text = edited.text;
  }
  return { ok: true, text, lines };
};

/** Models write `\n`. A file with other line endings is matched with its own, and keeps them. */
const withFileLineEndings = (text: string, ending: TextFile["lineEnding"], edit: TextEdit): TextEdit => {
  const as = (to: string): TextEdit => ({
    ...edit,
    old_string: edit.old_string.replace(/\r?\n/g, to),
    new_string: edit.new_string.replace(/\r?\n/g, to),
  });
  const other = ending === "\n" ? "\r\n" : "\n";
  const ways = [ending === "\n" ? edit : as("\r\n"), as(ending), as(other)];
  return ways.find(({ old_string }) => old_string !== "" && text.includes(old_string)) ?? (ways[0] as TextEdit);
};

/** The line numbers of all occurrences. */
const lineNumbersOf = (text: string, part: string): readonly number[] => {
  const lines: number[] = [];
  let [line, from] = [1, 0];
  for (let at = text.indexOf(part); at !== -1; at = text.indexOf(part, at + part.length)) {
    line += text.slice(from, at).split("\n").length - 1;
    from = at;
    lines.push(line);
  }
  return lines;
};

const MAX_PLACES = 10;

const explainFailure = (text: string, { old_string: old, new_string: next }: TextEdit, reason: string): string => {
  if (old === "") return "old_string is empty. Give the text to replace; to make a file use Write.";
  if (old === next) return "old_string and new_string are equal, so nothing would change.";
  const places = lineNumbersOf(text, old);
  if (places.length > 1) {
    const shown = places.slice(0, MAX_PLACES).join(", ");
    const more = places.length > MAX_PLACES ? ` and ${places.length - MAX_PLACES} more` : "";
    return `old_string stands in the file ${places.length} times, at lines ${shown}${more}. Give more of the text around the one you mean, or set replace_all.`;
  }
  return places.length === 0 ? explainMissing(text, old) : reason;
};

const explainMissing = (text: string, old: string): string => {
  const lines = splitLines(text);
  const wanted = splitLines(old);
  const shown = (at: number, count: number): string => numberLines(lines.slice(at, at + count), at + 1, 300);
  const unnumbered = wanted.map((line) => line.replace(/^\s*\d+\t/, ""));
  if (wanted.every((line) => /^\s*\d+\t/.test(line)) && text.includes(unnumbered.join("\n")))
    return "old_string holds the line numbers that Read puts before each line. Leave number and tab out.";
  const loose = findIgnoringWhitespace(lines, wanted);
  if (loose !== undefined)
    return `old_string does not stand in the file as given, but with other white space it does:\n${shown(loose, wanted.length)}\nCopy it from there exactly.`;
  const near = nearestLine(lines, wanted);
  if (near === undefined) return "old_string does not stand in the file, nor anything like it. Read the file again.";
  const from = Math.max(0, near);
  return `old_string does not stand in the file. The nearest lines are:\n${shown(from, Math.min(Math.max(wanted.length, 3), 12))}`;
};

const collapseWhitespace = (line: string): string => line.replace(/\s+/g, " ").trim();

/** The index of the first line where the same lines occur if white space is ignored. */
const findIgnoringWhitespace = (lines: readonly string[], wanted: readonly string[]): number | undefined => {
  const plain = lines.map(collapseWhitespace);
  const [first = "", ...more] = wanted.map(collapseWhitespace);
  if (first === "" && more.every((line) => line === "")) return undefined;
  const isAt = (at: number): boolean =>
    more.length === 0
      ? (plain[at] ?? "").includes(first)
      : [first, ...more].every((line, step) => plain[at + step] === line);
  const at = lines.findIndex((_, index) => isAt(index));
  return at === -1 ? undefined : at;
};

const MAX_COMPARED = 20_000;

/** Finds the line most similar to the longest wanted line, and counts back to where the wanted text would begin. */
const nearestLine = (lines: readonly string[], wanted: readonly string[]): number | undefined => {
  const longest = wanted.reduce(
    (best, line, at) => (line.trim().length > (wanted[best] ?? "").trim().length ? at : best),
    0,
  );
  const found = findMostSimilar(
    (wanted[longest] ?? "").trim(),
    lines.slice(0, MAX_COMPARED).map((line) => line.trim()),
    0.4,
  );
  return found === undefined ? undefined : Math.max(0, found.at - longest);
};
