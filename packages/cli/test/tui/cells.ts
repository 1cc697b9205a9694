/** What an emulator shows, cell by cell: text and style.
 *  Invariant: every row is as wide as the emulator; a wide character is one cell with `width` 2.
 *  Elsewhere: drawing them (picture-svg.ts). */

import type headless from "@xterm/headless";

/** `#rrggbb`, the number of one of the 256 colours, or the terminal's own colour. */
export type CellColour = string | number | undefined;

export type CellStyle = {
  readonly foreground: CellColour;
  readonly background: CellColour;
  readonly isBold: boolean;
  readonly isFaint: boolean;
  readonly isItalic: boolean;
  readonly isUnderlined: boolean;
  readonly isInverse: boolean;
};

export type Cell = { readonly text: string; readonly width: number; readonly style: CellStyle };

type BufferCell = NonNullable<ReturnType<headless.IBufferLine["getCell"]>>;

export const readCells = ({ buffer, cols, rows }: headless.Terminal): readonly (readonly Cell[])[] =>
  Array.from({ length: rows }, (_row, row) => {
    const line = buffer.active.getLine(buffer.active.baseY + row);
    return Array.from({ length: cols }, (_column, column) => line?.getCell(column)).flatMap((cell) =>
      cell && cell.getWidth() > 0 ? [toCell(cell)] : [],
    );
  });

const toCell = (cell: BufferCell): Cell => ({
  text: cell.getChars() || " ",
  width: cell.getWidth(),
  style: {
    foreground: colourOf(cell.getFgColor(), { isRgb: cell.isFgRGB(), isIndexed: cell.isFgPalette() }),
    background: colourOf(cell.getBgColor(), { isRgb: cell.isBgRGB(), isIndexed: cell.isBgPalette() }),
    isBold: cell.isBold() !== 0,
    isFaint: cell.isDim() !== 0,
    isItalic: cell.isItalic() !== 0,
    isUnderlined: cell.isUnderline() !== 0,
    isInverse: cell.isInverse() !== 0,
  },
});

const colourOf = (value: number, kind: { readonly isRgb: boolean; readonly isIndexed: boolean }): CellColour =>
  kind.isRgb ? `#${value.toString(16).padStart(6, "0")}` : kind.isIndexed ? value : undefined;

const PLAIN: CellStyle = {
  ...{ foreground: undefined, background: undefined, isBold: false, isFaint: false },
  ...{ isItalic: false, isUnderlined: false, isInverse: false },
};

/** With each occurrence of `old` replaced. What follows moves to the left, and the row keeps its width. */
export const replaceText = (row: readonly Cell[], old: string, replacement: string): readonly Cell[] => {
  const at = row.findIndex((_cell, index) => [...old].every((letter, offset) => row[index + offset]?.text === letter));
  const first = row[at];
  if (!first) return row;
  const replaced = [...replacement].map((text) => ({ text, width: 1, style: first.style }));
  const rest = replaceText(row.slice(at + old.length), old, replacement);
  const freed = old.length - replacement.length;
  return [
    ...row.slice(0, at),
    ...replaced,
    ...rest,
    ...Array.from({ length: freed }, () => ({ text: " ", width: 1, style: PLAIN })),
  ];
};
