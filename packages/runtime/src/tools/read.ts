/** Read: lines of a text file with their numbers, or a picture.
 *  Invariant: what was shown, and only that, enters the read-state; a result never passes the limits below, and where it
 *  stops it says how to go on. A file that cannot be shown is refused with its kind and another way.
 *  Elsewhere: reaching the file (tool-files.ts), kinds (file-kind.ts), encodings (text-file.ts). */

import { basename, dirname } from "node:path";
import type { ReadResult } from "@prefork/guard";
import { shownName } from "@prefork/guard/internal";
import * as z from "zod";
import { type FileKind, kindOfBytes, linesOf, numbered, readText, shortened } from "./file-content.ts";
import { alike } from "./similar.ts";
import { defineTool, failed, type ToolContext, type ToolOutput } from "./tool.ts";

const MOST_LINES = 2_000;
const MOST_LINE_LENGTH = 2_000;
/** About 20,000 tokens: what a conversation takes whole. Bytes, because letters of some scripts are several tokens. */
const MOST_BYTES = 70_000;
const MOST_FILE_BYTES = 32 * 1024 * 1024;
/** Providers take 5 MB of base64 and 8,000 pixels a side. */
const MOST_IMAGE_BYTES = 3_700_000;
const MOST_PIXELS = 8_000;

const input = z.strictObject({
  file_path: z.string().describe("Absolute, or relative to the working directory"),
  offset: z.int().min(0).optional().describe("First line, from 1"),
  limit: z.int().min(1).optional().describe(`Lines to show; default and maximum ${MOST_LINES}`),
});

export const readTool = defineTool({
  name: "Read",
  description:
    "Shows a file. Text comes one line each as line number, tab, line; number and tab are not in the file. " +
    "Long lines and long files are cut, with a note how to read on. PNG, JPEG, GIF and WebP files are shown as pictures; " +
    "other binary files cannot be read. For a folder use Glob.",
  input,
  readOnly: true,
  touches: ({ file_path }) => ({ reads: [file_path] }),
  startsPrograms: false,
  run: async ({ file_path, offset = 1, limit = MOST_LINES }, context) => {
    const located = context.files.locate(file_path);
    if (!located.ok) return failed(`${file_path}: ${located.reason}.`);
    const { path } = located;
    const read = await context.files.read(path, { maxBytes: MOST_FILE_BYTES });
    if (!read.ok) return failed(`${file_path}: ${await explain(path, read.reason, context)}`);
    const kind = kindOfBytes(read.bytes);
    if (kind.kind !== "text") return showOther(file_path, { path, read, kind }, context);
    const first = Math.max(1, offset);
    return showLines({ shown: file_path, path, read, first, most: Math.min(limit, MOST_LINES) }, context);
  },
});

type Found = Extract<ReadResult, { readonly ok: true }>;

type Showing = {
  readonly shown: string;
  readonly path: string;
  readonly read: Found;
  readonly first: number;
  readonly most: number;
};

const showLines = ({ shown, path, read, first, most }: Showing, { reads }: ToolContext): ToolOutput => {
  const { text, encoding } = readText(read.bytes);
  const all = linesOf(text);
  const { version } = read.facts;
  if (all.length === 0) {
    reads.saw(path, { version, bytes: read.bytes, lines: 0, range: [1, 1] });
    return { content: `${shown} is empty.` };
  }
  if (first > all.length) return failed(`${shown} has ${all.length} lines; there is no line ${first}.`);
  const lines = fitting(all.slice(first - 1, first - 1 + most));
  const last = first + lines.length - 1;
  reads.saw(path, { version, bytes: read.bytes, lines: all.length, range: [first, last] });
  const notes = [
    ...(last < all.length ? [`lines ${first} to ${last} of ${all.length}; read on with offset ${last + 1}`] : []),
    ...(encoding === "utf-8" ? [] : [`the file is ${encoding} text, which can be read and not edited`]),
  ];
  const body = numbered(lines, first, MOST_LINE_LENGTH);
  return { content: notes.length === 0 ? body : `${body}\n[${notes.join("; ")}]` };
};

/** As many whole lines as the limit holds, at least one. */
const fitting = (lines: readonly string[]): readonly string[] => {
  let room = MOST_BYTES;
  const fits = lines.findIndex((line) => {
    room -= Buffer.byteLength(shortened(line, MOST_LINE_LENGTH)) + 8;
    return room < 0;
  });
  return fits === -1 ? lines : lines.slice(0, Math.max(1, fits));
};

type Other = { readonly path: string; readonly read: Found; readonly kind: Exclude<FileKind, { kind: "text" }> };

const showOther = (shown: string, { path, read, kind }: Other, { reads }: ToolContext): ToolOutput => {
  const { bytes, facts } = read;
  if (kind.kind === "binary")
    return failed(
      `${shown} is ${kind.what} (${facts.size} bytes), which cannot be shown as text. ${adviceFor(kind.what)}`,
    );
  if (kind.kind === "broken-image") return failed(`${shown} begins like ${kind.type} but is cut off or damaged.`);
  const { type, width, height } = kind;
  if (bytes.length > MOST_IMAGE_BYTES)
    return failed(
      `${shown} is a picture of ${bytes.length} bytes; at most ${MOST_IMAGE_BYTES} are shown. Make a smaller copy and read that.`,
    );
  if (Math.max(width, height) > MOST_PIXELS)
    return failed(
      `${shown} is a picture of ${width} × ${height} pixels; at most ${MOST_PIXELS} a side are shown. Make a smaller copy and read that.`,
    );
  reads.saw(path, { version: facts.version, bytes, lines: 0, range: [1, 1] });
  return {
    content: [
      { type: "text", text: `${shown}: ${type}, ${width} × ${height} pixels` },
      { type: "image", source: { kind: "base64", mediaType: type, data: bytes.toString("base64") } },
    ],
  };
};

const adviceFor = (what: string): string =>
  what.includes("PDF")
    ? "Turn it into text with a command such as pdftotext, if there is one."
    : "A command that knows the format may tell what is in it.";

/** What a refusal means here, and what to do about it. */
const explain = async (path: string, reason: string, { files }: ToolContext): Promise<string> => {
  const looked = await files.look(path);
  const kind = looked.ok ? looked.facts?.kind : undefined;
  if (kind === "folder") return `this is a folder; list it with Glob (path ${path}, pattern *).`;
  if (kind === "link") {
    const link = await files.linkText(path);
    return link.ok
      ? `this is a link to ${shownName(link.text)}, and links are not followed; read what it leads to.`
      : `${reason}.`;
  }
  if (looked.ok && looked.facts !== undefined && looked.facts.size > MOST_FILE_BYTES)
    return `${reason}. Find the lines with Grep, or cut them out with a command.`;
  if (!looked.ok || looked.facts !== undefined) return `${reason}.`;
  const near = await namesNear(path, files);
  return near.length === 0 ? `${reason}.` : `${reason}. There is ${near.map(shownName).join(", ")}.`;
};

const namesNear = async (path: string, files: ToolContext["files"]): Promise<readonly string[]> => {
  const listed = await files.list(dirname(path));
  if (!listed.ok) return [];
  const mayRead = files.mayRead();
  const names = listed.entries.map(({ name }) => name).filter((name) => mayRead(`${dirname(path)}/${name}`));
  return alike(basename(path), names, 3).map((name) => `${dirname(path)}/${name}`);
};
