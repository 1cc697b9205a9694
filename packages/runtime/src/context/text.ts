/** How is text from elsewhere (files, git, summaries) put between tags of ours, so that it cannot end them early?
 *  Invariant: inside, no reading of the text finds a tag of ours, opened or closed; and what was put in can be had back
 *  exactly. Everything else of the text stands as it was, since a model is to see files as they are.
 *  Elsewhere: what stands between the tags (first-content.ts, notes.ts, next-epoch.ts). */

import { Buffer } from "node:buffer";
import { FORK_BOILERPLATE_TAG } from "@prefork/wire";

export type Tag =
  | "conventions"
  | "convention-file"
  | "left-out"
  | "environment"
  | "section"
  | "note"
  | "earlier-conversation"
  | "last-message"
  | "todo-list"
  | "open-tasks"
  | "read-file";

const OURS: readonly Tag[] = [
  ...(["conventions", "convention-file", "left-out", "environment", "section", "note"] as const),
  ...(["earlier-conversation", "last-message", "todo-list", "open-tasks", "read-file"] as const),
];

/** Tags that others of us write, and whose forgery would matter as much. */
const RESERVED: readonly string[] = [...OURS, FORK_BOILERPLATE_TAG, "task-notification"];

type Escaping = { readonly escape: (text: string) => string; readonly unescape: (text: string) => string };

/** What looks escaped already is escaped once more, so that taking back is exact. A name counts in any case of letters,
 *  after a slash, white space or characters that are not seen. */
const escapingOf = (names: readonly string[]): Escaping => {
  const beforeName = `(?=[\\s/\\p{Cf}]*(?:${names.join("|")})(?![\\w-]))`;
  const opening = new RegExp(`<${beforeName}`, "giu");
  const escaped = new RegExp(`&((?:amp;)*lt;)${beforeName}`, "giu");
  const escapedOnce = new RegExp(`&lt;${beforeName}`, "giu");
  const escapedTwice = new RegExp(`&amp;((?:amp;)*lt;)${beforeName}`, "giu");
  return {
    escape: (text) => text.replace(escaped, "&amp;$1").replace(opening, "&lt;"),
    unescape: (text) => text.replace(escapedOnce, "<").replace(escapedTwice, "&$1"),
  };
};

export const { escape: escapeTags, unescape: unescapeTags } = escapingOf(RESERVED);

/** Inside a note stand tags of ours that were made safe before; only the note itself must not end early. */
export const { escape: escapeNote, unescape: unescapeNote } = escapingOf(["note"]);

const ENTITIES: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };

/** One line, whatever it holds. */
const attribute = (value: string): string =>
  value.replace(/[&<>"\p{Cc}\p{Zl}\p{Zp}]/gu, (found) => ENTITIES[found] ?? `&#${found.codePointAt(0)};`);

export type Attributes = Readonly<Record<string, string | number | undefined>>;

const opening = (tag: Tag, attributes: Attributes): string => {
  const shown = Object.entries(attributes).flatMap(([name, value]) =>
    value === undefined ? [] : ` ${name}="${attribute(String(value))}"`,
  );
  return `<${tag}${shown.join("")}>`;
};

/** Text from elsewhere, between tags of ours. */
export const enclose = (tag: Tag, text: string, attributes: Attributes = {}): string =>
  `${opening(tag, attributes)}\n${escapeTags(text)}\n</${tag}>`;

/** Parts that we have made ourselves, between tags of ours. */
export const encloseParts = (tag: Tag, parts: readonly string[], attributes: Attributes = {}): string =>
  [opening(tag, attributes), ...parts, `</${tag}>`].join("\n");

/** Short text from elsewhere that must stay on its line: a branch, a subject, a reason. */
export const oneLine = (text: string, most = 200): string => {
  const plain = text.replace(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, " ").trim();
  const shown = [...plain];
  return shown.length <= most ? plain : `${shown.slice(0, most - 1).join("")}…`;
};

/** How long is a text, and how is one that is too long cut?
 *  Invariant: bytes are those of UTF-8, no character is cut in two, and the same text is cut at the same place always.
 *  Elsewhere: which texts are cut (conventions.ts, replacement.ts, next-epoch.ts). */

export const bytesOfText = (text: string): number => Buffer.byteLength(text, "utf8");

/** No character takes more bytes for each of its units. Known at once, where `bytesOfText` looks at every letter. */
export const mostBytesOfText = (text: string): number => text.length * 3;

/** Code and prose give 3 to 4 bytes a token with the tokenizers in use; under-counting is what would hurt. */
const BYTES_PER_TOKEN = 3.5;

export const tokensOfBytes = (bytes: number): number => Math.ceil(bytes / BYTES_PER_TOKEN);

export const bytesOfTokens = (tokens: number): number => Math.floor(tokens * BYTES_PER_TOKEN);

/** 10xxxxxx: a byte inside a character. */
const isInside = (byte: number | undefined): boolean => byte !== undefined && (byte & 0xc0) === 0x80;

const NEWLINE = 0x0a;

/** A line is kept whole where that leaves at least this share of the room used. */
const MIN_USED = 0.5;

/** The beginning of a text, ending with a line where one ends in the later half of the room. */
export const headOf = (text: string, most: number): string => {
  const bytes = Buffer.from(text);
  if (bytes.length <= most) return text;
  let end = Math.max(0, most);
  while (end > 0 && isInside(bytes[end])) end -= 1;
  const line = bytes.lastIndexOf(NEWLINE, end - 1) + 1;
  return bytes.toString("utf8", 0, line >= most * MIN_USED && line > 0 ? line : end);
};

/** The end of a text, beginning with a line where one begins in the earlier half of the room. */
export const tailOf = (text: string, most: number): string => {
  const bytes = Buffer.from(text);
  if (bytes.length <= most) return text;
  let start = bytes.length - Math.max(0, most);
  while (start < bytes.length && isInside(bytes[start])) start += 1;
  const line = bytes.indexOf(NEWLINE, start) + 1;
  return bytes.toString("utf8", line > 0 && bytes.length - line >= most * MIN_USED ? line : start);
};

/** 12,345 on every machine. */
export const figure = (value: number): string => {
  const [whole = "", fraction = "0"] = value.toFixed(1).split(".");
  return whole.replace(/\B(?=(\d{3})+$)/g, ",") + (fraction === "0" ? "" : `.${fraction}`);
};
