/** Edit: exact pieces of a file replaced, one or several at once.
 *  Invariant: all edits of a call or none; a file is changed only if it was read in this session and is still the same;
 *  its mark, line endings and mode stay.
 *  Elsewhere: finding and replacing (apply-edits.ts), what was read (read-state.ts), writing (@prefork/guard). */

import type { TextEdit } from "@prefork/guard/internal";
import * as z from "zod";
import { applyEdits } from "./apply-edits.ts";
import { kindOfBytes } from "./file-kind.ts";
import { refusedUse } from "./known-file.ts";
import { countLines, readText, writeText } from "./text-file.ts";
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
    const no = (reason: string) => failed(`${reason}${reason.endsWith(".") ? " " : "\n"}Nothing was changed.`);
    const edits = editsOf(given);
    if (typeof edits === "string") return failed(edits, "bad-input");
    const located = files.locate(file_path);
    if (!located.ok) return no(`${file_path}: ${located.reason}.`);
    const { path } = located;
    const read = await files.read(path);
    if (!read.ok) return no(`${file_path}: ${read.reason}.`);
    const { version } = read.facts;
    const refused = refusedUse(reads, { path, bytes: read.bytes, version, need: "some" });
    if (refused !== undefined) return no(`${file_path} ${refused}`);
    const kind = kindOfBytes(read.bytes);
    const file = readText(read.bytes);
    if (kind.kind !== "text") return no(`${file_path} is not text, so it cannot be edited.`);
    if (file.encoding !== "utf-8")
      return no(`${file_path} is ${file.encoding} text; only UTF-8 can be edited without harm to the rest.`);
    const edited = applyEdits(file, edits);
    if (!edited.ok) return no(`${file_path}: ${edited.reason}`);
    const bytes = writeText(file, edited.text);
    const written = await files.write(path, bytes, { expected: version, approved });
    if (!written.ok) return no(`${file_path}: ${written.reason}.`);
    reads.edited(path, { version: written.facts.version, bytes, lines: countLines(edited.text) });
    return { content: `Edited ${file_path}: ${told(edited.lines)}.` };
  },
});

const MOST_TOLD = 20;

const told = (lines: readonly number[]): string => {
  const more = lines.length > MOST_TOLD ? ` and ${lines.length - MOST_TOLD} more` : "";
  return `${lines.length} ${lines.length === 1 ? "place" : "places"}, at ${lines.length === 1 ? "line" : "lines"} ${lines.slice(0, MOST_TOLD).join(", ")}${more}`;
};

/** The edits, or why there are none. */
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
