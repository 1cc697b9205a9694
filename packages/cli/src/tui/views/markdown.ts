/** Markdown as terminal lines, by pi-tui's renderer.
 *  Invariant: the text is already safe (../state: safe-text.ts), because the renderer passes control sequences through; no line is
 *  wider than asked. */

import { Markdown, type MarkdownTheme } from "@earendil-works/pi-tui";
import { codeLines, growingCodeLines } from "./code-lines.ts";
import { linkAddress } from "./links.ts";
import type { Theme } from "./theme.ts";

const markdownTheme = (theme: Theme, isGrowing: boolean): MarkdownTheme => ({
  heading: theme.heading,
  link: (text) => linkAddress(theme.link(text), theme),
  // ` (https://…)`, after a text that says something else
  linkUrl: (text) => ` (${linkAddress(theme.faint(text.slice(2, -1)), theme)})`,
  // With its backticks: without them, and without colours, nothing would show where code begins and ends.
  code: (text) => theme.inlineCode(`\`${text}\``),
  codeBlock: (text) => text,
  codeBlockBorder: theme.faint,
  highlightCode: (code, language) => [
    ...(isGrowing ? growingCodeLines : codeLines)(code, language?.split(/[\s,{]/)[0] || undefined, theme),
  ],
  quote: theme.quote,
  quoteBorder: theme.faint,
  hr: theme.faint,
  listBullet: theme.accent,
  bold: theme.bold,
  italic: theme.quote,
  strikethrough: theme.faint,
  underline: (text) => text,
});

export const renderMarkdown = (text: string, width: number, theme: Theme): readonly string[] =>
  render(text, width, markdownTheme(theme, false));

/** As `renderMarkdown`, for an answer that is still growing. */
export const renderGrowingMarkdown = (text: string, width: number, theme: Theme): readonly string[] =>
  render(text, width, markdownTheme(theme, true));

const render = (text: string, width: number, theme: MarkdownTheme): readonly string[] =>
  new Markdown(text, 0, 0, theme, undefined, { renderLatex: false }).render(Math.max(1, width));
