/** What the tour shows: what is asked of whom, the reports, and the explained bill; as text and as JSON.
 *  Invariant: says of every answer that no language model wrote it, and of every price whose it is; nothing is wider than
 *  100 columns; text and JSON state the same figures.
 *  Elsewhere: the run and its live lines (../tour), the table of requests (explain-report.ts). */

import { readReport } from "@prefork/runtime";
import type { RequestRow } from "@prefork/runtime/observe";
import { writtenTokens } from "@prefork/wire";
import { jsonText } from "../lines.ts";
import { formatMoney, formatTokens, moneyDecimals } from "../numbers.ts";
import { painter, type Row, renderTable } from "../table.ts";
import type { TourFork, TourResult, TourStart } from "../tour/index.ts";
import { requestTable } from "./explain-report.ts";
import { inLine, WIDTH, wrapped } from "./tasks-store.ts";

const COUNTS = ["no", "one", "two", "three", "four", "five"];
const counted = (count: number, noun: string): string => `${COUNTS[count] ?? count} ${noun}${count === 1 ? "" : "s"}`;

const text = (lines: readonly string[]): string => lines.map((line) => `${line}\n`).join("");

const engineLines = (model: string): readonly string[] => [
  "The engine is a rehearsal: a script follows the prompt's list with real tools. No language model is",
  `called, nothing leaves this machine; prices are those of ${inLine(model)}, as a simulator bills them.`,
];

export const tourIntroduction = ({ sample, repository, parts, model, prompt }: TourStart, colour: boolean): string => {
  const paint = painter(colour);
  const { service } = sample.trade;
  const made = `${repository.files} files, ${formatTokens(repository.lines)} lines, one commit, from seed ${sample.seed}`;
  return text([
    paint("bold", `A real agent and ${counted(parts.length, "fork")} in a sample repository`),
    ...engineLines(model).map((line) => paint("faint", line)),
    "",
    `${paint("bold", service)}: ${made}. The prompt asks, in parallel:`,
    ...prompt
      .split("\n")
      .slice(-parts.length)
      .map((line) => `  ${inLine(line, WIDTH - 2)}`),
    "",
  ]);
};

export const tourAsText = (result: TourResult, colour: boolean): string => {
  const decimals = moneyDecimals(result.forks.map(({ task }) => task.result?.usd ?? 0));
  return [
    ...result.forks.map((fork) => reportLines(fork, { colour, decimals })),
    "\n",
    answerLines(result, colour),
    "\n",
    requestTable(namedRows(result), colour),
    "\n",
    text([firstReads(result), totalSentence(result)]),
    insteadTable(result, colour),
    "\n",
    nextLines(result),
  ].join("");
};

const OUTCOME = /^ {3}(\S.*)$/;
const EXCERPT = /^ {5}(.*)$/;

/** Every step with what it found, and of the last one also the beginning of what stands there. */
type Shown = { readonly colour: boolean; readonly decimals: number };

const reportLines = ({ part, task, tools }: TourFork, { colour, decimals }: Shown): string => {
  const paint = painter(colour);
  const said = task.result?.text ?? "";
  const read = readReport(said);
  const lines = (read.kind === "report" ? read.report.result : said).split("\n");
  const steps = lines.flatMap((line) => OUTCOME.exec(line)?.slice(1) ?? []);
  const last = lines.slice(lines.findLastIndex((line) => OUTCOME.test(line)));
  const excerpt = last.flatMap((line) => EXCERPT.exec(line)?.slice(1) ?? []).map((line) => inLine(line));
  const end = task.state.kind === "ended" ? task.state.end : task.state.kind;
  return text([
    `${paint("bold", part.name)} ${end}: ${counted(tools.length, "call")}, ${formatMoney(task.result?.usd ?? 0, decimals)}`,
    ...steps.map((step) => `  ${stepLine(inLine(step))}`),
    ...(excerpt.length === 0 ? [] : [paint("faint", `    ${inLine(excerpt.join("  "), WIDTH - 4)}`)]),
  ]);
};

/** What was found stands at the end, so a long call is cut before it. */
const stepLine = (step: string): string => {
  const room = WIDTH - 2;
  if (step.length <= room) return step;
  const found = step.slice(step.lastIndexOf(": "));
  return `${step.slice(0, Math.max(0, room - found.length - 2)).trimEnd()}…\`${found}`.slice(0, room);
};

/** What stands furthest out: the excerpts below it are in the reports. */
const answerLines = ({ exchange }: TourResult, colour: boolean): string => {
  const title = "The parent's last answer, in short:";
  const outer = exchange.text.split("\n").filter((line) => /^\S/.test(line));
  const short = outer.map((line) => line.replace(/^- (.*)$/, "$1;")).join(" ");
  const lines = wrapped(`${title} ${inLine(short).replace(/;$/, "")}`);
  return `${painter(colour)("bold", title)}${lines.slice(title.length)}`;
};

/** The ledger, with the forks by name. */
const namedRows = ({ family, forks }: TourResult): readonly RequestRow[] => {
  const names = new Map(forks.map(({ task, part }) => [task.id, part.name]));
  return family.rows.map((row) => ({ ...row, agent: names.get(row.agent) ?? row.agent }));
};

const firstRows = ({ family, forks }: TourResult): readonly RequestRow[] =>
  forks.flatMap(({ task }) => family.rows.filter(({ agent }) => agent === task.id).slice(0, 1));

/** What was sent at once needs no word for it. */
const ROLES = { leader: "leader ", follower: "followers ", "at-once": "" } as const;

const firstReads = (result: TourResult): string => {
  const rows = firstRows(result);
  const short = rows.filter(({ usage, expected }) => usage.read < expected);
  const shares = rows.map(({ usage, expected, family }) => {
    const share = `${formatTokens(usage.read)} of ${formatTokens(expected)}`;
    return `${ROLES[family?.role ?? "at-once"]}${share}`;
  });
  const words = [...new Set(shares)].join(", ");
  return inLine(
    short.length === 0
      ? `Each fork's first request read all it could (${words}).`
      : `${short.length} of ${rows.length} first requests read less than they could (${words}).`,
    WIDTH,
  );
};

const isBilledAlike = ({ billed, explanation }: TourResult): boolean => {
  const { usage, requests } = explanation.total;
  const parts = (each: typeof usage): string => [each.read, writtenTokens(each), each.plain, each.output].join();
  return billed.requests === requests && parts(billed.usage) === parts(usage);
};

const totalSentence = (result: TourResult): string => {
  const { requests, usage } = result.explanation.total;
  const parts = [
    `${formatTokens(usage.read)} read`,
    `${formatTokens(writtenTokens(usage))} written`,
    `${formatTokens(usage.plain)} plain`,
    `${formatTokens(usage.output)} output`,
  ];
  const agrees = isBilledAlike(result) ? "the simulator's ledger agrees" : "the simulator's ledger says otherwise";
  return inLine(`${requests} requests: ${parts.join(", ")}; ${agrees}.`, WIDTH);
};

const TITLES = {
  "no-fork": "no fork, one part after the other",
  "no-cache": "the same requests without a cache",
  "cold-at-once": "forks that find nothing to read",
} as const;

const insteadTable = ({ explanation, forks }: TourResult, colour: boolean): string => {
  const { total, instead } = explanation;
  const compared = [
    { title: `${counted(forks.length, "fork")}, as above`, sum: total, isThis: true },
    ...instead.map((sum) => ({ title: TITLES[sum.id], sum, isThis: false })),
  ];
  const decimals = moneyDecimals(compared.flatMap(({ sum }) => (sum.usd === undefined ? [] : [sum.usd])));
  return renderTable({
    columns: [
      { title: "" },
      { title: "input, in plain tokens", align: "right" },
      { title: "cost, with output", align: "right" },
      { title: "against this", align: "right" },
    ],
    rows: compared.map(
      ({ title, sum, isThis }): Row => ({
        cells: [
          title,
          formatTokens(Math.round(sum.units)),
          sum.usd === undefined ? "–" : formatMoney(sum.usd, decimals),
          `${(sum.units / total.units).toFixed(2)} ×`,
        ],
        ...(isThis ? { mark: "best", style: "good" } : {}),
      }),
    ),
    rule: false,
    colour,
  });
};

const nextLines = ({ keptIn, session }: TourResult): string =>
  text([
    'Next: npx prefork -p "Find TODO in src"  the same agent in your folder; with a key, a model answers',
    "      npx prefork demo                   forks of a 49,000-token parent, where sharing pays more",
    keptIn === undefined
      ? "      npx prefork explain                this bill for your own sessions (for this one: --keep)"
      : `      XDG_STATE_HOME=${keptIn.stateHome} npx prefork explain ${session}`,
    ...(keptIn === undefined ? [] : [`Kept in ${keptIn.folder}: the repository, and the journals of all agents.`]),
  ]);

export const tourAsJson = (result: TourResult): string => {
  const { sample, repository, parts, prompt, model, session, forks, exchange, family, explanation, billed } = result;
  const first = new Map(firstRows(result).map((row) => [row.agent, row]));
  return jsonText({
    engine: { name: "rehearsal", isLanguageModel: false, model, prices: "of the simulated model" },
    sample: { seed: sample.seed, service: sample.trade.service, facts: sample.facts },
    repository: { files: repository.files, lines: repository.lines },
    prompt,
    parts: parts.length,
    session,
    forks: forks.map(({ part, task, tools }) => {
      const { text: report = "", ...spent } = task.result ?? {};
      const row = first.get(task.id);
      return {
        ...{ area: part.area, name: part.name, task: task.id, state: task.state, tools, ...spent },
        firstRequest: { expected: row?.expected ?? 0, read: row?.usage.read ?? 0 },
        report: readReport(report),
      };
    }),
    answer: exchange.text,
    spent: { usage: exchange.usage, usd: exchange.usd },
    rows: family.rows,
    ...explanation,
    billed,
    kept: result.keptIn ?? null,
  });
};
