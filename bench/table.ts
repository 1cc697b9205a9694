/** Findings as a table: what was measured, what it is compared with, and whether the promised limit is met.
 *  Invariant: a verdict uses the unrounded figures; a figure without a limit has no verdict.
 *  Elsewhere: measuring (measure.ts), what is measured (wire/, guard/). */

export type Unit = "µs" | "ms" | "KiB" | "MiB" | "streams" | "forks" | "handles" | "files" | "verdicts/s";
export type Amount = { readonly value: number; readonly unit: Unit };

/** What the design promises, for our own figure or for its ratio to the other one. */
export type Limit = { readonly of: "ratio" | "ours"; readonly is: "at most" | "at least"; readonly value: number };

export type Finding = {
  readonly group: string;
  readonly figure: string;
  readonly ours: Amount;
  readonly against?: { readonly name: string; readonly amount: Amount };
  readonly limit?: Limit;
};

export type Judged = Finding & { readonly ratio?: number; readonly ok?: boolean };

export const judge = (finding: Finding): Judged => {
  const { ours, against, limit } = finding;
  // Growth can be lost in noise; a ratio to zero would say less than no ratio.
  const ratio = against && against.amount.value > 0 ? ours.value / against.amount.value : undefined;
  const judged = limit?.of === "ratio" ? ratio : ours.value;
  const beside = ratio === undefined ? {} : { ratio };
  if (!limit) return { ...finding, ...beside };
  const ok = judged !== undefined && (limit.is === "at most" ? judged <= limit.value : judged >= limit.value);
  return { ...finding, ...beside, ok };
};

/** Three significant digits. */
export const figureText = (value: number): string => {
  if (Math.abs(value) >= 100) return Math.round(value).toLocaleString("en-US");
  if (Math.abs(value) >= 10) return value.toFixed(1);
  return Math.abs(value) >= 0.1 ? value.toFixed(2) : value.toFixed(Math.abs(value) >= 0.001 || value === 0 ? 3 : 5);
};

const amountText = ({ value, unit }: Amount): string => `${figureText(value)} ${unit}`;

const limitText = ({ of, is, value }: Limit, unit: Unit): string =>
  `${is === "at most" ? "≤" : "≥"} ${value.toLocaleString("en-US")} ${of === "ratio" ? "×" : unit}`;

type Column = { readonly title: string; readonly right?: boolean; readonly cell: (row: Judged) => string };

const COLUMNS: readonly Column[] = [
  { title: "figure", cell: ({ figure }) => figure },
  { title: "ours", right: true, cell: ({ ours }) => amountText(ours) },
  { title: "compared with", cell: ({ against }) => against?.name ?? "" },
  { title: "", right: true, cell: ({ against }) => (against ? amountText(against.amount) : "") },
  { title: "ratio", right: true, cell: ({ ratio }) => (ratio === undefined ? "" : `${figureText(ratio)} ×`) },
  { title: "limit", right: true, cell: ({ limit, ours }) => (limit ? limitText(limit, ours.unit) : "") },
  { title: "", cell: ({ ok }) => (ok === undefined ? "" : ok ? "ok" : "MISS") },
];

const BOLD = 1;
const FAINT = 2;
const RED = 31;
const GREEN = 32;

export const renderFindings = (rows: readonly Judged[], colour: boolean): string => {
  const widths = COLUMNS.map(({ title, cell }) => Math.max(title.length, ...rows.map((row) => cell(row).length)));
  const line = (texts: readonly string[]): string =>
    COLUMNS.map(({ right }, index) => {
      const text = texts[index] ?? "";
      return right ? text.padStart(widths[index] ?? 0) : text.padEnd(widths[index] ?? 0);
    })
      .join("  ")
      .trimEnd();
  const paint = (text: string, code: number): string => (colour ? `\u001b[${code}m${text}\u001b[0m` : text);
  const groups = Map.groupBy(rows, ({ group }) => group);
  const body = [...groups].flatMap(([group, members]) => [
    "",
    paint(group, BOLD),
    ...members.map((row) => {
      const text = line(COLUMNS.map(({ cell }) => cell(row)));
      return row.ok === undefined ? text : text.replace(/\S+$/, (verdict) => paint(verdict, row.ok ? GREEN : RED));
    }),
  ]);
  return [paint(line(COLUMNS.map(({ title }) => title)), FAINT), ...body].join("\n");
};
