/** Aligned text tables, the same with and without colour.
 *  Invariant: colour adds nothing that the characters do not say, and widths are counted before it is added;
 *  no line ends in white space. Characters are taken to be one column wide.
 *  Elsewhere: what stands in the cells (commands/), figures as text (numbers.ts). */

export type Style = "bold" | "faint" | "good" | "bad";

const CODES: Readonly<Record<Style, readonly [open: number, close: number]>> = {
  bold: [1, 22],
  faint: [2, 22],
  good: [32, 39],
  bad: [31, 39],
};

/** Wraps text in a terminal style, or leaves it alone where colour is off. */
export const painter =
  (colour: boolean) =>
  (style: Style, text: string): string => {
    const [open, close] = CODES[style];
    return colour && text !== "" ? `\u001b[${open}m${text}\u001b[${close}m` : text;
  };

export type Column = { readonly title: string; readonly align?: "left" | "right" }; // default: left

export type Row = {
  readonly cells: readonly string[];
  readonly mark?: "best"; // a sign in the gutter
  readonly style?: Style;
};

export type Table = {
  readonly columns: readonly Column[];
  readonly rows: readonly Row[];
  readonly rule?: boolean; // a line under the header; default: true
  readonly colour?: boolean; // default: false
};

export const BEST_SIGN = "▸";

const GAP = "  ";

const widthOf = (text: string): number => [...text].length;

const padded = (text: string, width: number, align: Column["align"]): string => {
  const space = " ".repeat(Math.max(0, width - widthOf(text)));
  return align === "right" ? space + text : text + space;
};

/** The table as lines, each with its line end. */
export const renderTable = ({ columns, rows, rule = true, colour = false }: Table): string => {
  const paint = painter(colour);
  const widths = columns.map(({ title }, index) =>
    Math.max(widthOf(title), ...rows.map(({ cells }) => widthOf(cells[index] ?? ""))),
  );
  const hasGutter = rows.some(({ mark }) => mark !== undefined);
  const gutter = (sign: string): string => (hasGutter ? padded(sign, 2, "left") : "");
  const line = (cells: readonly string[], sign: string): string => {
    const texts = columns.map(({ align }, index) => padded(cells[index] ?? "", widths[index] ?? 0, align));
    return `${gutter(sign)}${texts.join(GAP)}`.trimEnd();
  };

  const header = columns.map(({ title }) => title);
  const lines = [paint("bold", line(header, ""))];
  if (rule) {
    const length = widths.reduce((sum, width) => sum + width, GAP.length * Math.max(0, widths.length - 1));
    lines.push(paint("faint", gutter("") + "─".repeat(length)));
  }
  for (const { cells, mark, style } of rows) {
    const text = line(cells, mark === "best" ? BEST_SIGN : "");
    lines.push(style === undefined ? text : paint(style, text));
  }
  return lines.map((text) => `${text}\n`).join("");
};
