/** The part of a help text that follows the options: details, examples, exit codes, files and variables.
 *  Invariant: no line is longer than the given width, except an example, which must stay one line to be copied.
 *  Elsewhere: what the pages say (pages-*.ts), which command has which (index.ts). */

import { widthOf, wrapText } from "../width.ts";

type Rows = readonly (readonly [term: string, meaning: string])[];

export type HelpPage = {
  /** Paragraphs. */
  readonly about?: readonly string[];
  /** Lists of their own, such as the values of an option. */
  readonly lists?: Readonly<Record<string, Rows>>;
  readonly examples: Rows;
  /** Only where they differ from: 0 done, 1 failed, 2 usage error, 130 interrupted. */
  readonly exitCodes?: Rows;
  readonly files?: Rows;
  readonly environment?: Rows;
};

/** Starts and ends without an empty line. */
export const pageText = (page: HelpPage, width: number): string => {
  const { about = [], lists = {}, examples, exitCodes = [], files = [], environment = [] } = page;
  const sections: Rows[] = [...Object.values(lists), exitCodes, environment, files];
  const titles = [...Object.keys(lists), "Exit codes", "Environment", "Files"];
  return [
    ...about.map((paragraph) => wrapText(paragraph, width).join("\n")),
    `Examples:\n${exampleLines(examples, width)}`,
    ...sections.flatMap((rows, at) => (rows.length === 0 ? [] : [`${titles[at]}:\n${termLines(rows, width)}`])),
  ].join("\n\n");
};

const INDENT = "  ";

/** The meaning stands beside the example if both fit, and above it otherwise. */
const exampleLines = (rows: Rows, width: number): string => {
  const longest = Math.max(...rows.map(([line]) => widthOf(line)));
  const fits = rows.every(([, meaning]) => INDENT.length + longest + INDENT.length + widthOf(meaning) <= width);
  const lines = rows.map(([line, meaning]) =>
    fits
      ? `${INDENT}${line.padEnd(longest)}${INDENT}${meaning}`
      : [
          ...wrapText(meaning, width - INDENT.length).map((part) => `${INDENT}${part}`),
          `${INDENT}${INDENT}${line}`,
        ].join("\n"),
  );
  return lines.join("\n");
};

const termLines = (rows: Rows, width: number): string => {
  const longest = Math.max(...rows.map(([term]) => widthOf(term)));
  const start = INDENT.length + longest + INDENT.length;
  const isNarrow = width - start < 20;
  const lines = rows.flatMap(([term, meaning]) => {
    if (isNarrow)
      return [`${INDENT}${term}`, ...wrapText(meaning, width - 4).map((part) => `${INDENT}${INDENT}${part}`)];
    const [first = "", ...others] = wrapText(meaning, width - start);
    return [
      `${INDENT}${term.padEnd(longest)}${INDENT}${first}`,
      ...others.map((part) => `${" ".repeat(start)}${part}`),
    ];
  });
  return lines.join("\n");
};
