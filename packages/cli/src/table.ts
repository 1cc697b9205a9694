/** Aligned text tables that fit the terminal, with the same text whether coloured or not.
 *  Invariant: colour adds no information, and widths are counted before it is added; no line ends in white space;
 *  numbers are never cut. In a narrow terminal dispensable columns are dropped first, then long texts are cut, and in
 *  the end each row becomes a list of its cells.
 *  Elsewhere: what the cells say (commands/), numbers as text (numbers.ts), the width of a character (width.ts). */

import { terminalColumns, truncateText, widthOf, wrapText } from "./width.ts";

export type Style = "bold" | "faint" | "good" | "bad";

const CODES: Readonly<Record<Style, readonly [open: number, close: number]>> = {
  bold: [1, 22],
  faint: [2, 22],
  good: [32, 39],
  bad: [31, 39],
};

/** Wraps text in a terminal style, or returns it unchanged when colour is off. */
export const painter =
  (colour: boolean) =>
  (style: Style, text: string): string => {
    const [open, close] = CODES[style];
    return colour && text !== "" ? `\u001b[${open}m${text}\u001b[${close}m` : text;
  };

type Prose = {
  readonly style?: Style;
  readonly colour?: boolean; // default: false
  readonly indent?: string; // before every line but the first
  readonly width?: number; // default: the terminal's
};

/** A sentence wrapped to the width, without the last line feed. */
export const prose = (
  text: string,
  { style, colour = false, indent = "", width = terminalColumns() }: Prose,
): string => {
  const paint = painter(colour);
  const styled = (line: string): string => (style === undefined ? line : paint(style, line));
  const [first = "", ...others] = width === undefined ? [text] : wrapText(text, Math.max(2, width - indent.length));
  return [styled(first), ...others.map((line) => indent + styled(line))].join("\n");
};

export type Column = {
  readonly title: string;
  readonly align?: "left" | "right"; // default: left
  /** The column may be dropped in a narrow terminal, the lowest number first. Default: it never is. */
  readonly dispensable?: number;
};

export type Row = {
  readonly cells: readonly string[];
  readonly mark?: "best"; // shown as a sign in the gutter
  readonly style?: Style;
};

export type Table = {
  readonly columns: readonly Column[];
  readonly rows: readonly Row[];
  readonly rule?: boolean; // a line under the header; default: true
  readonly colour?: boolean; // default: false
  readonly width?: number; // default: the terminal's
};

export const BEST_SIGN = "▸";

const GAP = "  ";

const padded = (text: string, width: number, align: Column["align"]): string => {
  const space = " ".repeat(Math.max(0, width - widthOf(text)));
  return align === "right" ? space + text : text + space;
};

const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0);

/** Texts are not cut below this length, which holds an id and is enough to tell labels apart. */
const SHORTEST_TEXT = 12;

/** The column widths that fit into `most`, or undefined where none do. The widest text is cut first. */
const fittingWidths = (columns: readonly Column[], natural: readonly number[], most: number): number[] | undefined => {
  const widths = [...natural];
  for (let excess = sum(widths) - most; excess > 0; excess -= 1) {
    const texts = widths.map((width, index) => (columns[index]?.align === "right" ? 0 : width));
    const widest = Math.max(...texts);
    if (widest <= SHORTEST_TEXT) return undefined;
    widths[texts.indexOf(widest)] = widest - 1;
  }
  return widths;
};

/** The table without the column that matters least; undefined where every column matters. */
const withoutOneColumn = (table: Table): Table | undefined => {
  const ranks = table.columns.map(({ dispensable = Number.POSITIVE_INFINITY }) => dispensable);
  const least = Math.min(...ranks);
  if (least === Number.POSITIVE_INFINITY) return undefined;
  const keeps = (_: unknown, index: number): boolean => index !== ranks.indexOf(least);
  return {
    ...table,
    columns: table.columns.filter(keeps),
    rows: table.rows.map((row) => ({ ...row, cells: row.cells.filter(keeps) })),
  };
};

/** Each row as a list of its cells, one per line. */
const asRecords = ({ columns, rows, colour = false }: Table, most: number): string => {
  const paint = painter(colour);
  const label = Math.max(...columns.map(({ title }) => widthOf(title)));
  const below = " ".repeat(label + GAP.length);
  const isStacked = most - below.length < SHORTEST_TEXT;
  const recordOf = ({ cells, mark, style }: Row): string => {
    const lines = columns.flatMap(({ title }, index) => {
      const cell = cells[index] ?? "";
      if (cell === "") return [];
      if (isStacked) return [truncateText(title, most), ...wrapText(cell, most - GAP.length).map((line) => GAP + line)];
      const [first = "", ...others] = wrapText(cell, most - below.length);
      return [`${padded(title, label, "left")}${GAP}${first}`, ...others.map((line) => below + line)];
    });
    const marked = mark === "best" ? [BEST_SIGN, ...lines] : lines;
    return marked.map((line) => `${style === undefined ? line : paint(style, line)}\n`).join("");
  };
  return rows.map(recordOf).join("\n");
};

/** The table as lines, each with its line feed. */
export const renderTable = (table: Table): string => {
  const { columns, rows, rule = true, colour = false, width = terminalColumns() } = table;
  const paint = painter(colour);
  const natural = columns.map(({ title }, index) =>
    Math.max(widthOf(title), ...rows.map(({ cells }) => widthOf(cells[index] ?? ""))),
  );
  const hasGutter = rows.some(({ mark }) => mark !== undefined);
  const gutter = (sign: string): string => (hasGutter ? padded(sign, 2, "left") : "");
  const spacing = (hasGutter ? 2 : 0) + GAP.length * Math.max(0, columns.length - 1);
  const narrower = width !== undefined && sum(natural) + spacing > width ? withoutOneColumn(table) : undefined;
  if (narrower) return renderTable(narrower);
  const widths = width === undefined ? natural : fittingWidths(columns, natural, width - spacing);
  if (widths === undefined) return asRecords(table, width ?? 0);
  const line = (cells: readonly string[], sign: string): string => {
    const texts = columns.map(({ align }, index) => {
      const most = widths[index] ?? 0;
      return padded(truncateText(cells[index] ?? "", most), most, align);
    });
    return `${gutter(sign)}${texts.join(GAP)}`.trimEnd();
  };

  const header = columns.map(({ title }) => title);
  const lines = [paint("bold", line(header, ""))];
  if (rule) {
    const length = sum(widths) + GAP.length * Math.max(0, widths.length - 1);
    lines.push(paint("faint", gutter("") + "─".repeat(length)));
  }
  for (const { cells, mark, style } of rows) {
    const text = line(cells, mark === "best" ? BEST_SIGN : "");
    lines.push(style === undefined ? text : paint(style, text));
  }
  return lines.map((text) => `${text}\n`).join("");
};
