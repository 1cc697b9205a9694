/** Colours of the terminal, by theme, and what the terminal can do besides colours.
 *  Invariant: colour never carries meaning alone: signs and words say the same; the theme "none" adds no sequence at all.
 *  Elsewhere: which theme is used (choose-theme.ts). */

import type { CodeTools, SyntaxRole } from "./code-tools.ts";

export type ThemeName = "dark" | "light" | "system" | "colour-blind" | "none";

type Role =
  | "accent"
  | "bold"
  | "faint"
  | "good"
  | "bad"
  | "warning"
  | "inlineCode"
  | "heading"
  | "link"
  | "quote"
  | "added"
  | "removed"
  /** The part of a changed line that differs. */
  | "addedWord"
  | "removedWord"
  | "border"
  | "prompt"
  | SyntaxRole;

export type Paint = (text: string) => string;

export type Theme = Readonly<Record<Role, Paint>> &
  ThemeOptions & {
    readonly name: ThemeName;
    readonly selected: Paint;
    /** Changed lines are marked by their background, so that the code in them keeps its own colours. */
    readonly hasDiffBackground: boolean;
  };

export type ThemeOptions = {
  /** Highlighting and line diffs. They are loaded when the first code is shown. */
  readonly code?: CodeTools;
  /** The terminal opens links (OSC 8). */
  readonly links?: boolean;
};

type Codes = readonly [open: string, close: string];

const FOREGROUND = "39";
const rgb = (index: number): Codes => [`38;5;${index}`, FOREGROUND];
const basic = (code: number): Codes => [String(code), FOREGROUND];
const BOLD: Codes = ["1", "22"];
const FAINT: Codes = ["2", "22"];
const ITALIC: Codes = ["3", "23"];
const INVERSE: Codes = ["7", "27"];

const background = (index: number): Codes => [`48;5;${index}`, "49"];

const SYSTEM: Readonly<Record<Role, Codes>> = {
  ...{ accent: basic(36), bold: BOLD, faint: FAINT, good: basic(32), bad: basic(31), warning: basic(33) },
  ...{ inlineCode: basic(36), heading: BOLD, link: ["4", "24"], quote: ITALIC, added: basic(32), removed: basic(31) },
  ...{ addedWord: ["7;32", "27;39"], removedWord: ["7;31", "27;39"], border: FAINT, prompt: basic(34) },
  ...{
    keyword: basic(35),
    string: basic(32),
    number: basic(33),
    comment: FAINT,
    identifier: basic(34),
    type: basic(36),
  },
};

const CODES: Readonly<Record<Exclude<ThemeName, "none">, Readonly<Record<Role, Codes>>>> = {
  system: SYSTEM,
  dark: {
    ...SYSTEM,
    ...{ accent: rgb(80), good: rgb(114), bad: rgb(210), warning: rgb(221), inlineCode: rgb(152), faint: rgb(245) },
    ...{ added: background(22), addedWord: background(28), removed: background(52), removedWord: background(88) },
    ...{ border: rgb(240), prompt: rgb(117), heading: BOLD, keyword: rgb(176), string: rgb(150), number: rgb(216) },
    ...{ comment: rgb(245), identifier: rgb(117), type: rgb(80) },
  },
  light: {
    ...SYSTEM,
    ...{ accent: rgb(30), good: rgb(28), bad: rgb(160), warning: rgb(130), inlineCode: rgb(24), faint: rgb(242) },
    ...{ added: background(194), addedWord: background(157), removed: background(224), removedWord: background(217) },
    ...{ border: rgb(247), prompt: rgb(25), heading: BOLD, keyword: rgb(90), string: rgb(28), number: rgb(130) },
    ...{ comment: rgb(242), identifier: rgb(25), type: rgb(30) },
  },
  // Blue and orange instead of green and red.
  "colour-blind": {
    ...SYSTEM,
    ...{ accent: rgb(110), good: rgb(75), bad: rgb(208), warning: rgb(221), inlineCode: rgb(152), faint: rgb(245) },
    ...{ added: background(17), addedWord: background(25), removed: background(58), removedWord: background(94) },
    ...{ border: rgb(240), prompt: rgb(117), heading: BOLD, keyword: rgb(183), string: rgb(152), number: rgb(221) },
    ...{ comment: rgb(245), identifier: rgb(117), type: rgb(110) },
  },
};

const painter =
  ([open, close]: Codes): Paint =>
  (text) =>
    text === "" ? "" : `\u001b[${open}m${text}\u001b[${close}m`;

const plain: Paint = (text) => text;

export const themeOf = (name: ThemeName, options: ThemeOptions = {}): Theme => {
  const roles = Object.keys(SYSTEM) as Role[];
  const paint = (role: Role): Paint => (name === "none" ? plain : painter(CODES[name][role]));
  const paints = Object.fromEntries(roles.map((role) => [role, paint(role)])) as Record<Role, Paint>;
  return {
    ...paints,
    ...options,
    name,
    selected: name === "none" ? plain : painter(INVERSE),
    hasDiffBackground: name !== "none" && name !== "system",
  };
};
