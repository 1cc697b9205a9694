/** Draws docs/images/tour.svg from what `npm start` prints: run it again when the tour's output changes.
 *  Invariant: every character and colour in the picture was printed by the run; lines are left out only where the picture
 *  shows "⋮".
 *  Elsewhere: what is printed (packages/cli/src/commands/tour-report.ts).
 *
 *  node scripts/bootstrap.mjs scripts/screenshot.ts */

import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));

const COLUMNS = 88;
const [FONT_SIZE, LINE_HEIGHT, CHARACTER_WIDTH, MARGIN] = [13, 18, 7.83, 20];

const printTour = (): readonly string[] => {
  const main = join(root, "packages/cli/src/main.ts");
  const env = { ...process.env, COLUMNS: String(COLUMNS), FORCE_COLOR: "1" };
  const out = execFileSync(process.execPath, [...process.execArgv, main, "tour"], { env, encoding: "utf8" });
  return out.trimEnd().split("\n");
};

/** The heading, and everything from the table of requests to the comparison. */
const selectLines = (lines: readonly string[]): readonly string[] => {
  const find = (text: string): number => {
    const index = lines.findIndex((line) => line.includes(text));
    if (index === -1) throw new Error(`the tour no longer prints "${text}"; adapt this script`);
    return index;
  };
  return [
    "\u001b[2m$\u001b[22m npm start",
    ...lines.slice(0, find("billed by a simulator") + 1),
    "⋮",
    ...lines.slice(find("miss reason"), find("Next:") - 1),
  ];
};

type Span = { readonly text: string; readonly style: string };

const CLASSES: Readonly<Record<string, string>> = { 1: "bold", 2: "faint", 31: "bad", 32: "good" };

/** Each line as pieces of one style. A style may cover several lines; the tour never nests styles, so every other code
 *  ends the current one. */
const spansIn = (lines: readonly string[]): readonly (readonly Span[])[] => {
  let style = "";
  return lines.map((line) => {
    const [first = "", ...coded] = line.split("\u001b[");
    const spans: Span[] = [{ text: first, style }];
    for (const piece of coded) {
      const end = piece.indexOf("m");
      style = CLASSES[piece.slice(0, end)] ?? "";
      spans.push({ text: piece.slice(end + 1), style });
    }
    return spans.filter(({ text }) => text !== "");
  });
};

const escaped = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll(" ", "\u00a0");

const drawLine = (spans: readonly Span[], index: number): string => {
  const y = MARGIN + (index + 1) * LINE_HEIGHT;
  let column = 0;
  return spans
    .map(({ text, style }) => {
      const x = (MARGIN + column * CHARACTER_WIDTH).toFixed(1);
      column += [...text].length;
      const length = ([...text].length * CHARACTER_WIDTH).toFixed(1);
      const attribute = style === "" ? "" : ` class="${style}"`;
      return `<text x="${x}" y="${y}" textLength="${length}"${attribute}>${escaped(text)}</text>`;
    })
    .join("\n");
};

const draw = (lines: readonly string[]): string => {
  const width = Math.ceil(2 * MARGIN + COLUMNS * CHARACTER_WIDTH);
  const height = 2 * MARGIN + (lines.length + 0.5) * LINE_HEIGHT;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="ui-monospace, SFMono-Regular, Menlo, DejaVu Sans Mono, monospace" font-size="${FONT_SIZE}" role="img" aria-label="What npm start prints: the requests of an agent and five forks with their cost, and the cost of the same work done in other ways">
<rect width="100%" height="100%" fill="#0d1117" rx="10"/>
<style>text{fill:#e6edf3}.bold{font-weight:700}.faint{fill:#8b949e}.good{fill:#3fb950}.bad{fill:#ff7b72}</style>
${spansIn(lines)
  .map(drawLine)
  .filter((line) => line !== "")
  .join("\n")}
</svg>
`;
};

writeFileSync(join(root, "docs/images/tour.svg"), draw(selectLines(printTour())));
