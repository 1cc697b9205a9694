/** How many columns does a text take on a terminal, and how many are there?
 *  Invariant: wide letters (CJK, emoji) count two and combining ones none; text is cut between letters, never inside one.
 *  Elsewhere: tables (table.ts), what a terminal would act on (visible.ts). */

const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\u33ff\u3400-\u4dbf\u4e00-\u9fff\ua000-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}|[\u{20000}-\u{3fffd}]/u;
const FLAT = /^[\p{Mn}\p{Me}\p{Cf}]$/u;
const PLAIN = /^[\x20-\x7e]*$/;

const columnsOf = (letter: string): number => (FLAT.test(letter) ? 0 : WIDE.test(letter) ? 2 : 1);

export const widthOf = (text: string): number =>
  PLAIN.test(text) ? text.length : [...text].reduce((sum, letter) => sum + columnsOf(letter), 0);

/** The letters that fit into so many columns, from the start or from the end. */
export const fitting = (text: string, most: number, from: "start" | "end" = "start"): string => {
  const letters = from === "start" ? [...text] : [...text].toReversed();
  const kept: string[] = [];
  let width = 0;
  for (const letter of letters) {
    width += columnsOf(letter);
    if (width > most) break;
    kept.push(letter);
  }
  return (from === "start" ? kept : kept.toReversed()).join("");
};

/** With a sign where something is missing, and never wider than `most`. */
export const shortened = (text: string, most: number): string =>
  widthOf(text) <= most ? text : `${fitting(text, Math.max(0, most - 1))}…`;

/** Lines of at most so many columns, broken between words, and inside a word that is longer than a line. */
export const brokenInto = (text: string, most: number): readonly string[] => {
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
      const part = fitting(line, Math.max(2, most));
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

/** The columns of the terminal, or what COLUMNS says; undefined where output goes to a file or a program. */
export const terminalColumns = ({ stdout, env }: Screen = process): number | undefined => {
  const stated = /^\d+$/.test(env.COLUMNS ?? "") ? Number(env.COLUMNS) : undefined;
  const columns = stdout.columns ?? stated;
  return columns === undefined || columns <= 0 ? undefined : columns;
};
