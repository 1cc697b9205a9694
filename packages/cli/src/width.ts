/** How many columns does a text take on a terminal, and how many are there?
 *  Invariant: wide characters (CJK, emoji) count as two and combining ones as zero; text is cut only between characters.
 *  Elsewhere: tables (table.ts), control characters (visible.ts). */

const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\u33ff\u3400-\u4dbf\u4e00-\u9fff\ua000-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}|[\u{20000}-\u{3fffd}]/u;
const FLAT = /^[\p{Mn}\p{Me}\p{Cf}]$/u;
const PLAIN = /^[\x20-\x7e]*$/;

const characterWidth = (letter: string): number => (FLAT.test(letter) ? 0 : WIDE.test(letter) ? 2 : 1);

export const widthOf = (text: string): number =>
  PLAIN.test(text) ? text.length : [...text].reduce((sum, letter) => sum + characterWidth(letter), 0);

/** The characters that fit into `most` columns, from the start or from the end. */
export const takeColumns = (text: string, most: number, from: "start" | "end" = "start"): string => {
  const letters = from === "start" ? [...text] : [...text].toReversed();
  const kept: string[] = [];
  let width = 0;
  for (const letter of letters) {
    width += characterWidth(letter);
    if (width > most) break;
    kept.push(letter);
  }
  return (from === "start" ? kept : kept.toReversed()).join("");
};

/** Cuts text to `most` columns, with an ellipsis. */
export const truncateText = (text: string, most: number): string =>
  widthOf(text) <= most ? text : `${takeColumns(text, Math.max(0, most - 1))}…`;

/** Lines of at most `most` columns, broken between words, or inside a word that is longer than a line. */
export const wrapText = (text: string, most: number): readonly string[] => {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    const longer = line === "" ? word : `${line} ${word}`;
    if (widthOf(longer) <= most) {
      line = longer;
      continue;
    }
    if (line !== "") lines.push(line);
    line = word;
    while (widthOf(line) > most) {
      const part = takeColumns(line, Math.max(2, most));
      lines.push(part);
      line = line.slice(part.length);
    }
  }
  return [...lines, line];
};

type Screen = {
  readonly stdout: { readonly columns?: number };
  readonly env: Readonly<Record<string, string | undefined>>;
};

const MAX_HELP_WIDTH = 100;

/** Help texts fit the terminal, and are never wider than people like to read. */
export const helpWidth = (): number => Math.min(MAX_HELP_WIDTH, terminalColumns() ?? 80);

/** The columns of the terminal, or of COLUMNS; undefined if the output goes to a file or a program. */
export const terminalColumns = ({ stdout, env }: Screen = process): number | undefined => {
  const stated = /^\d+$/.test(env.COLUMNS ?? "") ? Number(env.COLUMNS) : undefined;
  const columns = stdout.columns ?? stated;
  return columns === undefined || columns <= 0 ? undefined : columns;
};
