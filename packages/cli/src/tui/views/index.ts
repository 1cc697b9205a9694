/** How the terminal looks: pure functions from the state to lines. */

export { renderBlock } from "./blocks.ts";
export { chooseTheme } from "./choose-theme.ts";
export type { CodeToken, CodeTools, DiffRun, SyntaxRole } from "./code-tools.ts";
export { renderAbove, renderBelow, renderOpen } from "./frame.ts";
export { cut } from "./lines.ts";
export { drawPage, renderPage } from "./pages.ts";
export { inputLabel } from "./status.ts";
export { type Theme, type ThemeName, type ThemeOptions, themeOf } from "./theme.ts";
export { renderTrust } from "./trust.ts";
