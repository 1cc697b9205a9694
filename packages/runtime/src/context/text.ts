/** How is untrusted text (files, git output, summaries) truncated and put between our tags so that it cannot end them
 *  early?
 *  Invariant: inside, no reading of the text finds one of our tags, opening or closing, and unescaping restores the
 *  text exactly. Everything else stays as it was, because the model should see files as they are. Lengths are bytes of
 *  UTF-8; no character is split, and the same text is always cut at the same position.
 *  Elsewhere: what is between the tags (surroundings.ts, compaction.ts), which texts are truncated (conventions.ts,
 *  replacement.ts). */

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

const OWN_TAGS: readonly Tag[] = [
  ...(["conventions", "convention-file", "left-out", "environment", "section", "note"] as const),
  ...(["earlier-conversation", "last-message", "todo-list", "open-tasks", "read-file"] as const),
];

/** Includes tags that other modules write and whose forgery would matter as much. */
const RESERVED_TAGS: readonly string[] = [...OWN_TAGS, FORK_BOILERPLATE_TAG, "task-notification"];

type Escaping = { readonly escape: (text: string) => string; readonly unescape: (text: string) => string };

/** Text that looks escaped is escaped once more, so that unescaping is exact. A name counts in any letter case, and
 *  after a slash, white space or invisible characters. */
const createEscaping = (names: readonly string[]): Escaping => {
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

export const { escape: escapeTags, unescape: unescapeTags } = createEscaping(RESERVED_TAGS);

/** The text of a note may contain our tags, which were made safe before. Only the note itself must not end early. */
export const { escape: escapeNote, unescape: unescapeNote } = createEscaping(["note"]);

const ENTITIES: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };

/** Always one line. */
const attribute = (value: string): string =>
  value.replace(/[&<>"\p{Cc}\p{Zl}\p{Zp}]/gu, (found) => ENTITIES[found] ?? `&#${found.codePointAt(0)};`);

export type Attributes = Readonly<Record<string, string | number | undefined>>;

const opening = (tag: Tag, attributes: Attributes): string => {
  const shown = Object.entries(attributes).flatMap(([name, value]) =>
    value === undefined ? [] : ` ${name}="${attribute(String(value))}"`,
  );
  return `<${tag}${shown.join("")}>`;
};

/** Untrusted text between our tags. */
export const enclose = (tag: Tag, text: string, attributes: Attributes = {}): string =>
  `${opening(tag, attributes)}\n${escapeTags(text)}\n</${tag}>`;

/** Parts that we built ourselves, between our tags. */
export const encloseParts = (tag: Tag, parts: readonly string[], attributes: Attributes = {}): string =>
  [opening(tag, attributes), ...parts, `</${tag}>`].join("\n");

/** Short untrusted text that must stay on one line: a branch, a subject, a reason. */
export const oneLine = (text: string, most = 200): string => {
  const plain = text.replace(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, " ").trim();
  const shown = [...plain];
  return shown.length <= most ? plain : `${shown.slice(0, most - 1).join("")}…`;
};

/** The length of a text in bytes. */

export const byteLength = (text: string): number => Buffer.byteLength(text, "utf8");

/** No character needs more bytes per UTF-16 unit. Immediate, while `byteLength` inspects every character. */
export const maxByteLength = (text: string): number => text.length * 3;

/** Code and prose have 3 to 4 bytes per token with current tokenizers. Underestimating would hurt. */
const BYTES_PER_TOKEN = 3.5;

export const estimateTokens = (bytes: number): number => Math.ceil(bytes / BYTES_PER_TOKEN);

export const estimateBytes = (tokens: number): number => Math.floor(tokens * BYTES_PER_TOKEN);

/** 10xxxxxx: a byte inside a character. */
const isInside = (byte: number | undefined): boolean => byte !== undefined && (byte & 0xc0) === 0x80;

const NEWLINE = 0x0a;

/** A line is kept whole if that uses at least this share of the limit. */
const MIN_USED = 0.5;

/** The beginning of a text. It ends at the end of a line if one ends in the second half of the limit. */
export const takeHead = (text: string, most: number): string => {
  const bytes = Buffer.from(text);
  if (bytes.length <= most) return text;
  let end = Math.max(0, most);
  while (end > 0 && isInside(bytes[end])) end -= 1;
  const line = bytes.lastIndexOf(NEWLINE, end - 1) + 1;
  return bytes.toString("utf8", 0, line >= most * MIN_USED && line > 0 ? line : end);
};

/** The end of a text. It begins at the start of a line if one starts in the first half of the limit. */
export const takeTail = (text: string, most: number): string => {
  const bytes = Buffer.from(text);
  if (bytes.length <= most) return text;
  let start = bytes.length - Math.max(0, most);
  while (start < bytes.length && isInside(bytes[start])) start += 1;
  const line = bytes.indexOf(NEWLINE, start) + 1;
  return bytes.toString("utf8", line > 0 && bytes.length - line >= most * MIN_USED ? line : start);
};

/** 12,345 on every machine. */
export const formatNumber = (value: number): string => {
  const [whole = "", fraction = "0"] = value.toFixed(1).split(".");
  return whole.replace(/\B(?=(\d{3})+$)/g, ",") + (fraction === "0" ? "" : `.${fraction}`);
};
