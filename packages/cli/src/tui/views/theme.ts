/** Colours and signs of the terminal, by theme.
 *  Invariant: colour never carries meaning alone: signs and words say the same; the theme "none" adds no sequence at all.
 *  Elsewhere: which theme is used (../open-terminal.ts). */

export type ThemeName = "dark" | "light" | "system" | "colour-blind" | "none";

type Role =
  | "accent"
  | "bold"
  | "faint"
  | "good"
  | "bad"
  | "warning"
  | "code"
  | "heading"
  | "link"
  | "quote"
  | "added"
  | "removed"
  | "border"
  | "prompt";

export type Paint = (text: string) => string;

export type Theme = Readonly<Record<Role, Paint>> & {
  readonly name: ThemeName;
  readonly selected: Paint;
};

type Codes = readonly [open: string, close: string];

const FOREGROUND = "39";
const rgb = (index: number): Codes => [`38;5;${index}`, FOREGROUND];
const basic = (code: number): Codes => [String(code), FOREGROUND];
const BOLD: Codes = ["1", "22"];
const FAINT: Codes = ["2", "22"];
const ITALIC: Codes = ["3", "23"];
const INVERSE: Codes = ["7", "27"];

const SYSTEM: Readonly<Record<Role, Codes>> = {
  ...{ accent: basic(36), bold: BOLD, faint: FAINT, good: basic(32), bad: basic(31), warning: basic(33) },
  ...{ code: basic(36), heading: BOLD, link: ["4", "24"], quote: ITALIC, added: basic(32), removed: basic(31) },
  ...{ border: FAINT, prompt: basic(34) },
};

const CODES: Readonly<Record<Exclude<ThemeName, "none">, Readonly<Record<Role, Codes>>>> = {
  system: SYSTEM,
  dark: {
    ...SYSTEM,
    ...{ accent: rgb(80), good: rgb(114), bad: rgb(210), warning: rgb(221), code: rgb(152), faint: rgb(245) },
    ...{ added: rgb(114), removed: rgb(210), border: rgb(240), prompt: rgb(117), heading: BOLD },
  },
  light: {
    ...SYSTEM,
    ...{ accent: rgb(30), good: rgb(28), bad: rgb(160), warning: rgb(130), code: rgb(24), faint: rgb(242) },
    ...{ added: rgb(28), removed: rgb(160), border: rgb(247), prompt: rgb(25), heading: BOLD },
  },
  // Blue and orange instead of green and red.
  "colour-blind": {
    ...SYSTEM,
    ...{ accent: rgb(110), good: rgb(75), bad: rgb(208), warning: rgb(221), code: rgb(152), faint: rgb(245) },
    ...{ added: rgb(75), removed: rgb(208), border: rgb(240), prompt: rgb(117), heading: BOLD },
  },
};

const painter =
  ([open, close]: Codes): Paint =>
  (text) =>
    text === "" ? "" : `\u001b[${open}m${text}\u001b[${close}m`;

const plain: Paint = (text) => text;

export const themeOf = (name: ThemeName): Theme => {
  const roles = Object.keys(SYSTEM) as Role[];
  const paint = (role: Role): Paint => (name === "none" ? plain : painter(CODES[name][role]));
  const paints = Object.fromEntries(roles.map((role) => [role, paint(role)])) as Record<Role, Paint>;
  return { ...paints, name, selected: name === "none" ? plain : painter(INVERSE) };
};
