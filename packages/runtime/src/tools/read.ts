/** Read: shows numbered lines of a text file, or an image.
 *  Invariant: exactly what was shown enters the read state. A result never exceeds the limits below, and where it stops
 *  it says how to read on. A file that cannot be shown is refused with its kind and an alternative.
 *  Elsewhere: opening the file (tool-files.ts), kinds and encodings (file-content.ts). */

import { basename, dirname } from "node:path";
import type { ReadResult } from "@prefork/guard";
import { shownName } from "@prefork/guard/internal";
import * as z from "zod";
import {
  countLines,
  decodeText,
  detectFileKind,
  type FileKind,
  LineReader,
  numberLines,
  truncateLine,
} from "./file-content.ts";
import { findSimilar } from "./similar.ts";
import { READING_CALLS } from "./slots.ts";
import { defineTool, failed, type ToolContext, type ToolOutput } from "./tool.ts";

const MAX_LINES = 2_000;
const MAX_LINE_LENGTH = 2_000;
/** About 20,000 tokens: the conversation takes this whole. In bytes, because a letter of some scripts is several
 *  tokens. */
const MAX_BYTES = 70_000;
const MAX_FILE_BYTES = 32 * 1024 * 1024;
/** Providers accept 5 MB of base64 and 8,000 pixels a side. */
const MAX_IMAGE_BYTES = 3_700_000;
const MAX_PIXELS = 8_000;

const input = z.strictObject({
  file_path: z.string().describe("Absolute, or relative to the working directory"),
  offset: z.int().min(0).optional().describe("First line, from 1"),
  limit: z.int().min(1).optional().describe(`Lines to show; default and maximum ${MAX_LINES}`),
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
  run: async ({ file_path, offset = 1, limit = MAX_LINES }, context) => {
    const located = context.files.locate(file_path);
    if (!located.ok) return failed(`${file_path}: ${located.reason}.`);
    const { path } = located;
    using _ = await READING_CALLS.enter(context.signal);
    const read = await context.files.read(path, { maxBytes: MAX_FILE_BYTES });
    if (!read.ok) return failed(`${file_path}: ${await explainRefusal(path, read.reason, context)}`);
    const kind = detectFileKind(read.bytes);
    if (kind.kind !== "text") return showNonText(file_path, { path, read, kind }, context);
    const first = Math.max(1, offset);
    return showLines({ shown: file_path, path, read, first, most: Math.min(limit, MAX_LINES) }, context);
  },
});

type ReadableFile = Extract<ReadResult, { readonly ok: true }>;

type LineSelection = {
  readonly shown: string;
  readonly path: string;
  readonly read: ReadableFile;
  readonly first: number;
  readonly most: number;
};

const showLines = ({ shown, path, read, first, most }: LineSelection, { reads }: ToolContext): ToolOutput => {
  const { text, encoding } = decodeText(read.bytes);
  const count = countLines(text);
  const { version } = read.facts;
  if (count === 0) {
    reads.recordRead(path, { version, bytes: read.bytes, lines: 0, range: [1, 1] });
    return { content: `${shown} is empty.` };
  }
  if (first > count) return failed(`${shown} has ${count} lines; there is no line ${first}.`);
  const reader = new LineReader(text);
  const length = Math.min(most, count - first + 1);
  const lines = linesThatFit(Array.from({ length }, (_, at) => reader.line(first - 1 + at) ?? ""));
  const last = first + lines.length - 1;
  reads.recordRead(path, { version, bytes: read.bytes, lines: count, range: [first, last] });
  const notes = [
    ...(last < count ? [`lines ${first} to ${last} of ${count}; read on with offset ${last + 1}`] : []),
    ...(encoding === "utf-8" ? [] : [`the file is ${encoding} text, which can be read and not edited`]),
  ];
  const body = numberLines(lines, first, MAX_LINE_LENGTH);
  return { content: notes.length === 0 ? body : `${body}\n[${notes.join("; ")}]` };
};

/** As many whole lines as fit into the limit, at least one. */
const linesThatFit = (lines: readonly string[]): readonly string[] => {
  let room = MAX_BYTES;
  const fits = lines.findIndex((line) => {
    room -= Buffer.byteLength(truncateLine(line, MAX_LINE_LENGTH)) + 8;
    return room < 0;
  });
  return fits === -1 ? lines : lines.slice(0, Math.max(1, fits));
};

type NonTextFile = {
  readonly path: string;
  readonly read: ReadableFile;
  readonly kind: Exclude<FileKind, { kind: "text" }>;
};

const showNonText = (shown: string, { path, read, kind }: NonTextFile, { reads }: ToolContext): ToolOutput => {
  const { bytes, facts } = read;
  if (kind.kind === "binary")
    return failed(
      `${shown} is ${kind.what} (${facts.size} bytes), which cannot be shown as text. ${adviceFor(kind.what)}`,
    );
  if (kind.kind === "broken-image") return failed(`${shown} begins like ${kind.type} but is cut off or damaged.`);
  const { type, width, height } = kind;
  if (bytes.length > MAX_IMAGE_BYTES)
    return failed(
      `${shown} is a picture of ${bytes.length} bytes; at most ${MAX_IMAGE_BYTES} are shown. Make a smaller copy and read that.`,
    );
  if (Math.max(width, height) > MAX_PIXELS)
    return failed(
      `${shown} is a picture of ${width} × ${height} pixels; at most ${MAX_PIXELS} a side are shown. Make a smaller copy and read that.`,
    );
  reads.recordRead(path, { version: facts.version, bytes, lines: 0, range: [1, 1] });
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

/** Says what a refusal means here and what to do about it. */
const explainRefusal = async (path: string, reason: string, { files }: ToolContext): Promise<string> => {
  const looked = await files.look(path);
  const kind = looked.ok ? looked.facts?.kind : undefined;
  if (kind === "folder") return `this is a folder; list it with Glob (path ${path}, pattern *).`;
  if (kind === "link") {
    const link = await files.linkText(path);
    return link.ok
      ? `this is a link to ${shownName(link.text)}, and links are not followed; read what it leads to.`
      : `${reason}.`;
  }
  if (looked.ok && looked.facts !== undefined && looked.facts.size > MAX_FILE_BYTES)
    return `${reason}. Find the lines with Grep, or cut them out with a command.`;
  if (!looked.ok || looked.facts !== undefined) return `${reason}.`;
  const near = await similarPaths(path, files);
  return near.length === 0 ? `${reason}.` : `${reason}. There is ${near.map(shownName).join(", ")}.`;
};

const MAX_SIMILAR = 3;
/** How many names the guard is asked about, in case the most similar ones may not be shown. */
const MAX_ASKED = 100;

const similarPaths = async (path: string, files: ToolContext["files"]): Promise<readonly string[]> => {
  const listed = await files.list(dirname(path));
  if (!listed.ok) return [];
  const mayRead = files.mayRead();
  const names = listed.entries.map(({ name }) => name);
  const paths: string[] = [];
  for (const name of findSimilar(basename(path), names).slice(0, MAX_ASKED)) {
    if (paths.length === MAX_SIMILAR) break;
    if (mayRead(`${dirname(path)}/${name}`)) paths.push(`${dirname(path)}/${name}`);
  }
  return paths;
};
