/** A session for people to read, as Markdown. Pure.
 *  Invariant: whatever was said, the document keeps its shape: foreign text stands in fences that are longer than any in
 *  it, or is quoted; calls, results and thinking are folded; control characters are shown and do nothing.
 *  Elsewhere: reading the session (open.ts). */

import type { Block, MediaSource, Message } from "@prefork/wire";
import type { StoredEntry } from "./entry.ts";

export const exportMarkdown = (entries: readonly StoredEntry[]): string => {
  const names = new Map<string, string>();
  const parts = entries.flatMap((stored) => partsOf(stored, names));
  return `${parts.join("\n\n")}\n`;
};

const timeOf = (at: number): string => new Date(at).toISOString();

const partsOf = ({ entry, at }: StoredEntry, names: Map<string, string>): readonly string[] => {
  switch (entry.kind) {
    case "opened": {
      const { id, cwd, model, parent } = entry;
      const facts = [`- Folder: ${code(cwd)}`, `- Model: ${code(model)}`, `- Started: ${timeOf(at)}`];
      const from = parent ? [`- Goes on from session ${code(parent.session)} after its entry ${parent.seq}`] : [];
      return [`# Session ${id}`, [...facts, ...from].join("\n")];
    }
    case "epoch":
      return entry.reason === "start" ? [] : ["---", `*Context began anew: ${entry.reason}.*`];
    case "message":
      return messageParts(entry.message, names);
    case "blocks":
      return blockParts(entry.blocks, "user", names);
    case "exchange_ended":
      return entry.reason === "done" ? [] : [`*The exchange ended: ${plain(entry.reason)}.*`];
    default:
      return [];
  }
};

const TITLES: Readonly<Record<Message["role"], string>> = { user: "User", assistant: "Assistant", system: "System" };

const messageParts = ({ role, content }: Message, names: Map<string, string>): readonly string[] => {
  const parts = blockParts(content, role, names);
  const isSpoken = content.some((block) => block.type !== "tool_result");
  return isSpoken && parts.length > 0 ? [`## ${TITLES[role]}`, ...parts] : parts;
};

const blockParts = (blocks: readonly Block[], role: Message["role"], names: Map<string, string>): readonly string[] =>
  blocks.flatMap((block) => blockPart(block, role, names));

const blockPart = (block: Block, role: Message["role"], names: Map<string, string>): readonly string[] => {
  switch (block.type) {
    case "text":
      if (block.text.trim() === "") return [];
      return [role === "assistant" ? spoken(block.text) : quoted(block.text)];
    case "image":
    case "document":
      return [media(block.type, block.source)];
    case "thinking":
      return block.thinking.trim() === "" ? [] : [folded("Thinking", fenced(block.thinking))];
    case "redacted_thinking":
      return ["*(thinking that only the provider can read)*"];
    case "tool_use":
      names.set(block.id, block.name);
      return [folded(`Call of ${block.name}`, fenced(block.input, "json"))];
    case "tool_result": {
      const title = `${block.isError ? "Failure" : "Result"} of ${names.get(block.toolUseId) ?? "a call"}`;
      const inner = block.content.map((part) =>
        part.type === "text" ? fenced(part.text) : media(part.type, part.source),
      );
      return [folded(title, inner.join("\n\n"))];
    }
    case "provider":
      return [folded(block.kind, fenced(block.json, "json"))];
  }
};

const media = (type: "image" | "document", source: MediaSource): string => {
  const what = source.kind === "base64" ? `${source.mediaType}, ${source.data.length} letters of base64` : source.kind;
  return `*(${type}: ${plain(what)})*`;
};

// --- foreign text ----------------------------------------------------------------------------------------------------

/** Control characters as their pictures; line breaks and tabs stay. */
const visible = (text: string): string =>
  text
    .toWellFormed()
    .replace(/\r\n?/g, "\n")
    .replace(/\p{Cc}/gu, pictured);

const pictured = (control: string): string => {
  if (control === "\n" || control === "\t") return control;
  const at = control.charCodeAt(0);
  return at < 0x20 ? String.fromCharCode(0x2400 + at) : at === 0x7f ? "␡" : "\ufffd";
};

const longestRun = (text: string, letter: string): number =>
  Math.max(0, ...text.split(new RegExp(`[^${letter}]+`)).map(({ length }) => length));

const fenced = (text: string, language = ""): string => {
  const shown = visible(text);
  const fence = "`".repeat(Math.max(3, longestRun(shown, "`") + 1));
  return `${fence}${language}\n${shown}${shown.endsWith("\n") || shown === "" ? "" : "\n"}${fence}`;
};

const code = (text: string): string => {
  const shown = visible(text).replace(/\s+/g, " ");
  const ticks = "`".repeat(longestRun(shown, "`") + 1);
  const space = shown.startsWith("`") || shown.endsWith("`") ? " " : "";
  return `${ticks}${space}${shown}${space}${ticks}`;
};

/** Inside a line of ours. */
const plain = (text: string): string =>
  visible(text)
    .replace(/\s+/g, " ")
    .replace(/[&<>]/g, (sign) => `&#${sign.charCodeAt(0)};`)
    .replace(/[\\`*_[\]|]/g, "\\$&");

const folded = (title: string, inner: string): string =>
  `<details>\n<summary>${plain(title)}</summary>\n\n${inner}\n\n</details>`;

/** A quotation ends whatever was left open in it. */
const quoted = (text: string): string =>
  visible(text)
    .split("\n")
    .map((line) => (line === "" ? ">" : `> ${line}`))
    .join("\n");

const FENCE = /^ {0,3}(`{3,}|~{3,})(.*)$/;

/** The model's own Markdown, except that a fence it left open is closed, and HTML does not begin a block. */
const spoken = (text: string): string => {
  let open: string | undefined;
  const lines = visible(text)
    .split("\n")
    .map((line) => {
      const [, marks = "", rest = ""] = FENCE.exec(line) ?? [];
      if (open === undefined) {
        if (marks !== "" && !(marks.startsWith("`") && rest.includes("`"))) open = marks;
        return marks === "" ? line.replace(/^(\s*)</, "$1\\<") : line;
      }
      if (marks.startsWith(open) && rest.trim() === "") open = undefined;
      return line;
    });
  return open === undefined ? lines.join("\n") : [...lines, open].join("\n");
};
