/** Which theme fits: what the user set, what the terminal can show, and what its background is.
 *  Invariant: pure; a terminal with sixteen colours gets its own colours, and no setting brings back colours that NO_COLOR
 *  forbids.
 *  Elsewhere: the colours (theme.ts), asking the terminal (../screen.ts). */

import type { ThemeName } from "./theme.ts";

type Env = Readonly<Record<string, string | undefined>>;

export type TerminalFacts = {
  /** False by NO_COLOR, FORCE_COLOR=0 or TERM=dumb. */
  readonly hasColour: boolean;
  readonly env: Env;
  /** What the terminal answered, if it did. */
  readonly background?: { readonly r: number; readonly g: number; readonly b: number } | undefined;
};

const MANY_COLOURS = /256|direct|kitty|ghostty|alacritty|foot|wezterm|contour|rio/;
const PROGRAMS = /^(?:iterm\.app|vscode|wezterm|ghostty|hyper|warpterminal|apple_terminal|zed|tabby|rio)$/;

export const hasManyColours = ({
  FORCE_COLOR,
  COLORTERM = "",
  TERM = "",
  TERM_PROGRAM = "",
  WT_SESSION,
}: Env): boolean => {
  if (FORCE_COLOR === "1") return false;
  if (FORCE_COLOR === "2" || FORCE_COLOR === "3" || WT_SESSION) return true;
  return (
    /^(?:truecolor|24bit|yes)$/i.test(COLORTERM) ||
    MANY_COLOURS.test(TERM.toLowerCase()) ||
    PROGRAMS.test(TERM_PROGRAM.toLowerCase())
  );
};

export const chooseTheme = (setting: ThemeName | "auto", { hasColour, env, background }: TerminalFacts): ThemeName => {
  if (!hasColour || setting === "none") return "none";
  if (!hasManyColours(env)) return "system";
  if (setting !== "auto") return setting;
  // The terminal's own colours fit an unknown background; ours may not.
  if (background === undefined) return themeByHint(env.COLORFGBG) ?? "system";
  return luminance(background) > 0.5 ? "light" : "dark";
};

/** From 0 to 1, as bright as the eye sees it. */
const luminance = ({ r, g, b }: { readonly r: number; readonly g: number; readonly b: number }): number =>
  (0.2126 * r + 0.7152 * g + 0.0722 * b) / 255;

/** `15;0`: foreground and background as numbers of the sixteen colours. */
const themeByHint = (hint = ""): ThemeName | undefined => {
  const index = /;(\d{1,2})$/.exec(hint)?.[1];
  if (index === undefined) return undefined;
  return Number(index) === 7 || Number(index) > 8 ? "light" : "dark";
};
