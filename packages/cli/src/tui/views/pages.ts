/** Pages: an agent's conversation, a text, or a list to choose from. A page fills the screen exactly.
 *  Invariant: exactly `rows` lines, none wider than the screen.
 *  Elsewhere: keys on a page (../state: page-keys.ts), blocks (blocks.ts). */

import type { Conversation, Page, State } from "../state/index.ts";
import { shownItems } from "../state/index.ts";
import { renderBlock } from "./blocks.ts";
import { cut, paintLine, spread, wrap } from "./lines.ts";
import { renderMarkdown } from "./markdown.ts";
import type { Theme } from "./theme.ts";

export const renderPage = (state: State, page: Page, theme: Theme): readonly string[] =>
  drawPage(state, page, theme).lines;

export type DrawnPage = {
  readonly lines: readonly string[];
  /** How far it can be scrolled, if that is known. */
  readonly scrollLimit?: number;
};

export const drawPage = (state: State, page: Page, theme: Theme): DrawnPage => {
  const { columns: width, rows } = state;
  const { title, hint, body, scrollLimit } = contentOf(state, page, theme);
  const room = Math.max(1, rows - 3);
  const lines = body.slice(0, room);
  const padding = Array.from({ length: Math.max(0, room - lines.length) }, () => "");
  const drawn = [
    theme.bold(cut(title, width)),
    theme.border("─".repeat(width)),
    ...lines.map((line) => cut(line, width)),
    ...padding,
    state.hint === undefined ? theme.faint(cut(hint, width)) : theme.accent(cut(state.hint, width)),
  ].slice(0, rows);
  return { lines: drawn, ...(scrollLimit === undefined ? {} : { scrollLimit }) };
};

type Content = {
  readonly title: string;
  readonly hint: string;
  readonly body: readonly string[];
  readonly scrollLimit?: number;
};

const contentOf = (state: State, page: Page, theme: Theme): Content => {
  switch (page.kind) {
    case "conversation":
      return conversationPage(state, page, theme);
    case "text":
      return textPage(state, page, theme);
    case "list":
      return listPage(state, page, theme);
  }
};

const conversationPage = (
  state: State,
  page: Extract<Page, { readonly kind: "conversation" }>,
  theme: Theme,
): Content => {
  const child = state.children.get(page.agent);
  const conversation = page.agent === "main" ? state.main : child?.conversation;
  const look = { width: state.columns, theme, cwd: state.cwd, isOpen: page.isExpanded, now: state.now };
  const room = Math.max(1, state.rows - 3);
  const { lines, isWhole } = conversation
    ? tailOf(conversation, room + page.scroll, look)
    : { lines: [], isWhole: true };
  // Scrolled beyond the start: the first lines stay.
  const end = Math.max(Math.min(room, lines.length), lines.length - page.scroll);
  const body = lines.slice(Math.max(0, end - room), end);
  const about =
    page.agent === "main"
      ? "The conversation"
      : child
        ? `${child.label} (${child.state === "ended" ? child.end : child.state})`
        : page.agent;
  const keys = `↑↓ PgUp PgDn scroll · Enter ${page.isExpanded ? "closes" : "opens"} the calls · Esc back`;
  const own = child ? " · s steer · b background · x stop · m merge" : "";
  const place = page.scroll === 0 ? "following" : `${page.scroll} lines from the end${isWhole ? "" : " or more"}`;
  return {
    title: `${about} · ${place}`,
    hint: keys + own,
    body: body.length === 0 ? [theme.faint("Nothing yet.")] : body,
    ...(isWhole ? { scrollLimit: Math.max(0, lines.length - room) } : {}),
  };
};

type Look = Parameters<typeof renderBlock>[1];

/** The last lines, at least `count` where there are as many. Blocks before them are not rendered. */
const tailOf = (
  { dropped, done, open }: Conversation,
  count: number,
  look: Look,
): { readonly lines: readonly string[]; readonly isWhole: boolean } => {
  const parts: (readonly string[])[] = open.toReversed().map((block) => renderBlock(block, look));
  let length = parts.reduce((sum, lines) => sum + lines.length, 0);
  let index = done.length - 1;
  for (; index >= 0 && length < count; index--) {
    const block = done[index];
    const lines = block ? renderBlock(block, look) : [];
    parts.push(lines);
    length += lines.length;
  }
  const isWhole = index < 0;
  if (isWhole && dropped > 0) parts.push([look.theme.faint(`… ${dropped} earlier parts are in the journal (/export)`)]);
  return { lines: parts.toReversed().flat(), isWhole };
};

const textPage = (state: State, page: Extract<Page, { readonly kind: "text" }>, theme: Theme): Content => {
  const lines = page.isMarkdown
    ? renderMarkdown(page.text, state.columns, theme)
    : page.text
        .trimEnd()
        .split("\n")
        .flatMap((line) => wrap(line, state.columns));
  const room = Math.max(1, state.rows - 3);
  const scrollLimit = Math.max(0, lines.length - room);
  const from = Math.min(scrollLimit, page.scroll);
  const more =
    lines.length > room
      ? `lines ${from + 1}–${Math.min(lines.length, from + room)} of ${lines.length} · ↑↓ PgUp PgDn scroll · `
      : "";
  return { title: page.title, hint: `${more}Esc back`, body: lines.slice(from, from + room), scrollLimit };
};

/** A long list leaves few lines for the preview; a short one all the rest of the screen. */
const previewLines = (text: string, items: number, { columns, rows }: State): readonly string[] => {
  if (text === "") return [];
  const lines = text
    .trimEnd()
    .split("\n")
    .flatMap((line) => wrap(line, columns));
  const room = Math.max(6, rows - 5 - items);
  if (lines.length <= room) return lines;
  return [...lines.slice(0, room - 1), `… ${lines.length - room + 1} more lines`];
};

const listPage = (state: State, page: Extract<Page, { readonly kind: "list" }>, theme: Theme): Content => {
  const items = shownItems(page);
  const selected = Math.min(page.selected, Math.max(0, items.length - 1));
  const preview = previewLines(items[selected]?.preview ?? "", items.length, state);
  const room = Math.max(1, state.rows - 4 - preview.length - (preview.length > 0 ? 1 : 0));
  const from = Math.max(0, Math.min(selected - Math.floor(room / 2), items.length - room));
  const lines = items.slice(from, from + room).map(({ label, detail = "" }, index) => {
    const line = spread(`${from + index === selected ? "❯" : " "} ${label}`, theme.faint(detail), state.columns);
    return from + index === selected ? paintLine(line, state.columns, theme.selected) : line;
  });
  return {
    title: `${page.title}${page.filter === "" ? "" : `: ${page.filter}`}`,
    hint: `↑↓ select · Enter ${page.hint} · type to filter · Esc ${page.otherwise?.hint ?? "back"}`,
    body: [
      ...(lines.length === 0 ? [theme.faint(page.filter === "" ? "Nothing here yet." : "Nothing matches.")] : lines),
      ...(preview.length === 0
        ? []
        : [theme.border("─".repeat(state.columns)), ...preview.map((line) => theme.faint(line))]),
    ],
  };
};
