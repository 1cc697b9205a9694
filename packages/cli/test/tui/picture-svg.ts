/** Draws the cells of a terminal as SVG, in a window frame.
 *  Invariant: pure; the picture needs no script, font or file from elsewhere; every run of text is fitted to its columns,
 *  whatever monospaced font the reader has.
 *  Elsewhere: reading the cells (cells.ts), which pictures there are (draw-pictures.ts). */

import type { Cell, CellColour, CellStyle } from "./cells.ts";

export type DrawOptions = {
  /** On the window's bar. */
  readonly title: string;
  /** For readers who cannot see it. */
  readonly about: string;
  readonly columns: number;
};

const [FONT_SIZE, LINE_HEIGHT, COLUMN_WIDTH, MARGIN, BAR] = [14, 19, 8.4, 14, 30];
const [FOREGROUND, BACKGROUND] = ["#e6edf3", "#0d1117"];

const BASIC = [
  ...["#484f58", "#ff7b72", "#3fb950", "#d29922", "#58a6ff", "#bc8cff", "#39c5cf", "#b1bac4"],
  ...["#6e7681", "#ffa198", "#56d364", "#e3b341", "#79c0ff", "#d2a8ff", "#56d4dd", "#f0f6fc"],
];
const CUBE = [0, 95, 135, 175, 215, 255];

const hex = (...parts: readonly number[]): string =>
  `#${parts.map((part) => part.toString(16).padStart(2, "0")).join("")}`;

const toHex = (colour: CellColour, own: string): string => {
  if (colour === undefined) return own;
  if (typeof colour === "string") return colour;
  if (colour < 16) return BASIC[colour] ?? own;
  if (colour >= 232) return hex(...[0, 0, 0].map(() => 8 + (colour - 232) * 10));
  const index = colour - 16;
  return hex(...[Math.floor(index / 36), Math.floor(index / 6) % 6, index % 6].map((step) => CUBE[step] ?? 0));
};

type Run = { readonly text: string; readonly column: number; readonly width: number; readonly style: CellStyle };

const runsOf = (row: readonly Cell[]): readonly Run[] => {
  const runs: Run[] = [];
  let column = 0;
  for (const { text, width, style } of row) {
    const last = runs.at(-1);
    if (last && JSON.stringify(last.style) === JSON.stringify(style))
      runs[runs.length - 1] = { ...last, text: last.text + text, width: last.width + width };
    else runs.push({ text, column, width, style });
    column += width;
  }
  return runs;
};

const coloursOf = ({ foreground, background, isInverse }: CellStyle): readonly [ink: string, paper: string] => {
  const [ink, paper] = [toHex(foreground, FOREGROUND), toHex(background, BACKGROUND)];
  return isInverse ? [paper, ink] : [ink, paper];
};

const place = (columns: number): string => (MARGIN + columns * COLUMN_WIDTH).toFixed(1);

const escaped = (text: string): string =>
  text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;")
    .replaceAll(" ", "\u00a0");

const drawRun = ({ text, column, width, style }: Run, y: number): readonly string[] => {
  const [ink, paper] = coloursOf(style);
  const length = (columns: number): string => (columns * COLUMN_WIDTH).toFixed(1);
  const behind =
    paper === BACKGROUND
      ? []
      : [
          `<rect x="${place(column)}" y="${y - LINE_HEIGHT + 5}" width="${length(width)}" height="${LINE_HEIGHT}" fill="${paper}"/>`,
        ];
  const shown = text.trim();
  if (shown === "") return behind;
  const before = text.length - text.trimStart().length;
  const after = text.length - text.trimEnd().length;
  const attributes = [
    `x="${place(column + before)}" y="${y}" textLength="${length(width - before - after)}" lengthAdjust="spacingAndGlyphs"`,
    ...(ink === FOREGROUND ? [] : [`fill="${ink}"`]),
    ...(style.isBold ? ['font-weight="700"'] : []),
    ...(style.isItalic ? ['font-style="italic"'] : []),
    ...(style.isUnderlined ? ['text-decoration="underline"'] : []),
    ...(style.isFaint ? ['opacity="0.65"'] : []),
  ];
  return [...behind, `<text ${attributes.join(" ")}>${escaped(shown)}</text>`];
};

const drawFrame = (title: string, width: number): readonly string[] => [
  `<rect width="100%" height="100%" rx="8" fill="${BACKGROUND}"/>`,
  `<path d="M0 ${BAR}V8a8 8 0 0 1 8-8H${width - 8}a8 8 0 0 1 8 8V${BAR}z" fill="#21262d"/>`,
  ...["#ff5f57", "#febc2e", "#28c840"].map(
    (fill, index) => `<circle cx="${18 + index * 18}" cy="15" r="5.5" fill="${fill}"/>`,
  ),
  `<text x="50%" y="20" text-anchor="middle" fill="#8b949e" font-size="12">${escaped(title)}</text>`,
];

export const drawSvg = (cells: readonly (readonly Cell[])[], { title, about, columns }: DrawOptions): string => {
  const width = Math.ceil(2 * MARGIN + columns * COLUMN_WIDTH);
  const height = BAR + MARGIN + cells.length * LINE_HEIGHT + MARGIN;
  const font = "ui-monospace, SFMono-Regular, Menlo, Consolas, DejaVu Sans Mono, monospace";
  const lines = cells.flatMap((row, index) =>
    runsOf(row).flatMap((run) => drawRun(run, BAR + MARGIN + (index + 1) * LINE_HEIGHT - 5)),
  );
  return `${[
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" font-family="${font}" font-size="${FONT_SIZE}" fill="${FOREGROUND}" role="img" aria-label="${escaped(about).replaceAll("\u00a0", " ")}">`,
    ...drawFrame(title, width),
    ...lines,
    "</svg>",
  ].join("\n")}\n`;
};
