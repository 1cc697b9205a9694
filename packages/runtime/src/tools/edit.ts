/** Edit: replaces exact pieces of text in a file, one or several at once.
 *  Invariant: all edits of a call are made or none, each on the text that the one before left. A file is changed only
 *  if it was read in this session and has not changed since. Its byte order mark, line endings and mode stay, however
 *  the edit writes its line endings. A refusal shows what the file contains instead, with line numbers.
 *  Elsewhere: one exact replacement and writing (@prefork/guard), what was read (read-state.ts), encodings
 *  (file-content.ts). */

import { editText, findOccurrences, type Refused, type TextEdit, Turns } from "@prefork/guard/internal";
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
  run: async (given, { files, reads, signal, approved = false }) => {
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
    const edited = await applyEdits(file, edits, signal);
    if (!edited.ok) return refuse(`${file_path}: ${edited.reason}`);
    const bytes = encodeText(file, edited.text);
    const written = await files.write(path, bytes, { expected: version, approved });
    if (!written.ok) return refuse(`${file_path}: ${written.reason}.`);
    reads.recordEdit(path, { version: written.facts.version, bytes, lines: countLines(edited.text) });
    return { content: `Edited ${file_path}: ${describeLines(edited.lines)}.` };
  },
});

const MAX_REPORTED = 20;

const describeLines = (lines: readonly number[]): string => {
  const more = lines.length > MAX_REPORTED ? ` and ${lines.length - MAX_REPORTED} more` : "";
  return `${lines.length} ${lines.length === 1 ? "place" : "places"}, at ${lines.length === 1 ? "line" : "lines"} ${lines.slice(0, MAX_REPORTED).join(", ")}${more}`;
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

/** Pure. Each edit takes time in proportion to the file, whatever the texts are. */

export type AppliedEdits = {
  readonly ok: true;
  readonly text: string;
  /** The first line of each changed location, as each edit left it. */
  readonly lines: readonly number[];
};

export const applyEdits = async (
  file: TextFile,
  edits: readonly TextEdit[],
  signal: AbortSignal,
): Promise<AppliedEdits | Refused> => {
  let text = file.text;
  const lines: number[] = [];
  const turns = new Turns();
  for (const [at, edit] of edits.entries()) {
    if (turns.isOver) await turns.next();
    signal.throwIfAborted();
    const spelled = withFileLineEndings(text, file.lineEnding, edit);
    const edited = editText(text, spelled);
    if (!edited.ok) {
      const reason = explainFailure(text, spelled, edited.reason);
      return { ok: false, reason: edits.length === 1 ? reason : `edit ${at + 1} of ${edits.length}: ${reason}` };
    }
    for (const line of lineNumbersOf(text, spelled.old_string)) lines.push(line);
    text = edited.text;
  }
  return { ok: true, text, lines };
};

const contains = (text: string, part: string): boolean => findOccurrences(text, part, 1).length > 0;

/** Models write `\n`. A file with other line endings is matched with its own, and keeps them. */
const withFileLineEndings = (text: string, ending: TextFile["lineEnding"], edit: TextEdit): TextEdit => {
  const as = (to: string): TextEdit => ({
    ...edit,
    old_string: edit.old_string.replace(/\r?\n/g, to),
    new_string: edit.new_string.replace(/\r?\n/g, to),
  });
  const other = ending === "\n" ? "\r\n" : "\n";
  const ways = [ending === "\n" ? edit : as("\r\n"), as(ending), as(other)];
  return ways.find(({ old_string }) => contains(text, old_string)) ?? (ways[0] as TextEdit);
};

const MAX_OCCURRENCES = 1_000_000;

/** The line numbers of all occurrences. */
const lineNumbersOf = (text: string, part: string): readonly number[] => {
  let [line, from] = [1, 0];
  return findOccurrences(text, part, MAX_OCCURRENCES).map((at) => {
    for (; from < at; from += 1) if (text[from] === "\n") line += 1;
    return line;
  });
};

const MAX_PLACES = 10;

const explainFailure = (text: string, edit: TextEdit, reason: string): string => {
  const { old_string: old, new_string: next, replace_all: replacesAll = false } = edit;
  if (old === "") return "old_string is empty. Give the text to replace; to make a file use Write.";
  if (old === next) return "old_string and new_string are equal, so nothing would change.";
  const places = lineNumbersOf(text, old);
  if (places.length === 0) return explainMissing(text, old);
  if (places.length === 1 || replacesAll) return `${reason}.`;
  const shown = places.slice(0, MAX_PLACES).join(", ");
  const more = places.length > MAX_PLACES ? ` and ${places.length - MAX_PLACES} more` : "";
  return `old_string stands in the file ${places.length} times, at lines ${shown}${more}. Give more of the text around the one you mean, or set replace_all.`;
};

/** How much of the file, and of the wanted text, an explanation looks at. */
const MAX_EXPLAINED = 1_000_000;
const MAX_LINES_SHOWN = 200;

const explainMissing = (whole: string, old: string): string => {
  const nothingSimilar = "old_string does not stand in the file, nor anything like it. Read the file again.";
  if (old.length > MAX_EXPLAINED) return nothingSimilar;
  const text = whole.slice(0, MAX_EXPLAINED);
  const lines = splitLines(text);
  const wanted = splitLines(old);
  const shown = (at: number, count: number): string =>
    numberLines(lines.slice(at, at + Math.min(count, MAX_LINES_SHOWN)), at + 1, 300);
  const unnumbered = wanted.map((line) => line.replace(/^\s*\d+\t/, ""));
  if (wanted.every((line) => /^\s*\d+\t/.test(line)) && contains(text, unnumbered.join("\n")))
    return "old_string holds the line numbers that Read puts before each line. Leave number and tab out.";
  const loose = findIgnoringWhitespace(lines, wanted);
  if (loose !== undefined)
    return `old_string does not stand in the file as given, but with other white space it does:\n${shown(loose, wanted.length)}\nCopy it from there exactly.`;
  const near = nearestLine(lines, wanted);
  if (near === undefined) return nothingSimilar;
  const from = Math.max(0, near);
  return `old_string does not stand in the file. The nearest lines are:\n${shown(from, Math.min(Math.max(wanted.length, 3), 12))}`;
};

const collapseWhitespace = (line: string): string => line.replace(/\s+/g, " ").trim();

/** The index of the first line where the same lines occur if white space is ignored. */
const findIgnoringWhitespace = (lines: readonly string[], wanted: readonly string[]): number | undefined => {
  const plain = lines.map(collapseWhitespace);
  const wantedPlain = wanted.map(collapseWhitespace);
  if (wantedPlain.every((line) => line === "")) return undefined;
  if (wantedPlain.length === 1) {
    const at = plain.findIndex((line) => contains(line, wantedPlain[0] ?? ""));
    return at === -1 ? undefined : at;
  }
  // Found as text, because comparing line by line would start over at every line.
  const text = `\n${plain.join("\n")}\n`;
  const [at] = findOccurrences(text, `\n${wantedPlain.join("\n")}\n`, 1);
  return at === undefined ? undefined : countLines(text.slice(1, at + 1));
};

/** Finds the line most similar to the longest wanted line, and counts back to where the wanted text would begin. */
const nearestLine = (lines: readonly string[], wanted: readonly string[]): number | undefined => {
  const trimmed = wanted.map((line) => line.trim());
  const longest = trimmed.reduce((best, line, at) => (line.length > (trimmed[best] ?? "").length ? at : best), 0);
  const found = findMostSimilar(
    trimmed[longest] ?? "",
    lines.map((line) => line.trim()),
    0.4,
  );
  return found === undefined ? undefined : Math.max(0, found.at - longest);
};
