/** Markdown as terminal lines, by pi-tui's renderer.
 *  Invariant: the text is already safe (../state: safe-text.ts), because the renderer passes control sequences through; no line is
 *  wider than asked. */

import { Markdown, type MarkdownTheme } from "@earendil-works/pi-tui";
import type { Theme } from "./theme.ts";

const markdownTheme = (theme: Theme): MarkdownTheme => ({
  heading: theme.heading,
  link: theme.link,
  linkUrl: theme.faint,
  code: theme.code,
  codeBlock: (text) => text,
  codeBlockBorder: theme.faint,
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
  new Markdown(text, 0, 0, markdownTheme(theme), undefined, { renderLatex: false }).render(Math.max(1, width));
