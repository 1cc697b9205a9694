/** How is a session shown to people, as Markdown? Pure.
 *  Invariant: whatever was said, the document keeps its structure. Untrusted text is quoted, or in fences that are
 *  longer than any fence in it. Calls, results and thinking are folded. Control characters are made visible and have no
 *  effect.
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
      const facts = [`- Folder: ${inlineCode(cwd)}`, `- Model: ${inlineCode(model)}`, `- Started: ${timeOf(at)}`];
      const from = parent ? [`- Continues session ${inlineCode(parent.session)} after its entry ${parent.seq}`] : [];
      return [`# Session ${id}`, [...facts, ...from].join("\n")];
    }
    case "epoch":
      return entry.reason === "start" ? [] : ["---", `*Context restarted: ${entry.reason}.*`];
    case "message":
      return messageParts(entry.message, names);
    case "blocks":
      return blockParts(entry.blocks, "user", names);
    case "branch":
      return ["---", `*The conversation went back to its entry ${entry.after}, and continues from there.*`];
    case "exchange_ended":
      return entry.reason === "done" ? [] : [`*The exchange ended: ${escapeInline(entry.reason)}.*`];
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
      return [role === "assistant" ? renderAssistantText(block.text) : quoteText(block.text)];
    case "image":
    case "document":
      return [describeMedia(block.type, block.source)];
    case "thinking":
      return block.thinking.trim() === "" ? [] : [foldSection("Thinking", fenceText(block.thinking))];
    case "redacted_thinking":
      return ["*(thinking that only the provider can read)*"];
    case "tool_use":
      names.set(block.id, block.name);
      return [foldSection(`Call of ${block.name}`, fenceText(block.input, "json"))];
    case "tool_result": {
      const title = `${block.isError ? "Failure" : "Result"} of ${names.get(block.toolUseId) ?? "a call"}`;
      const inner = block.content.map((part) =>
        part.type === "text" ? fenceText(part.text) : describeMedia(part.type, part.source),
      );
      return [foldSection(title, inner.join("\n\n"))];
    }
    case "provider":
      return [foldSection(block.kind, fenceText(block.json, "json"))];
  }
};

const describeMedia = (type: "image" | "document", source: MediaSource): string => {
  const what = source.kind === "base64" ? `${source.mediaType}, ${source.data.length} letters of base64` : source.kind;
  return `*(${type}: ${escapeInline(what)})*`;
};

// --- foreign text ----------------------------------------------------------------------------------------------------

/** Control characters as Unicode control pictures. Newlines and tabs stay. */
const showControls = (text: string): string =>
  text
    .toWellFormed()
    .replace(/\r\n?/g, "\n")
    .replace(/\p{Cc}/gu, controlPicture);

const controlPicture = (control: string): string => {
  if (control === "\n" || control === "\t") return control;
  const at = control.charCodeAt(0);
  return at < 0x20 ? String.fromCharCode(0x2400 + at) : at === 0x7f ? "␡" : "\ufffd";
};

const longestRun = (text: string, letter: string): number =>
  Math.max(0, ...text.split(new RegExp(`[^${letter}]+`)).map(({ length }) => length));

const fenceText = (text: string, language = ""): string => {
  const shown = showControls(text);
  const fence = "`".repeat(Math.max(3, longestRun(shown, "`") + 1));
  return `${fence}${language}\n${shown}${shown.endsWith("\n") || shown === "" ? "" : "\n"}${fence}`;
};

const inlineCode = (text: string): string => {
  const shown = showControls(text).replace(/\s+/g, " ");
  const ticks = "`".repeat(longestRun(shown, "`") + 1);
  const space = shown.startsWith("`") || shown.endsWith("`") ? " " : "";
  return `${ticks}${space}${shown}${space}${ticks}`;
};

/** Escapes text for use inside one of our lines. */
const escapeInline = (text: string): string =>
  showControls(text)
    .replace(/\s+/g, " ")
    .replace(/[&<>]/g, (sign) => `&#${sign.charCodeAt(0)};`)
    .replace(/[\\`*_[\]|]/g, "\\$&");

const foldSection = (title: string, inner: string): string =>
  `<details>\n<summary>${escapeInline(title)}</summary>\n\n${inner}\n\n</details>`;

/** The end of a quotation closes whatever was left open in it. */
const quoteText = (text: string): string =>
  showControls(text)
    .split("\n")
    .map((line) => (line === "" ? ">" : `> ${line}`))
    .join("\n");

const FENCE = /^ {0,3}(`{3,}|~{3,})(.*)$/;

/** The model's own Markdown, except that an open fence is closed, and HTML does not start a block. */
const renderAssistantText = (text: string): string => {
  let open: string | undefined;
  const lines = showControls(text)
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
