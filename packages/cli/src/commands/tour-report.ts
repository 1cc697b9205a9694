/** What the tour prints: the job, the reports, the bill, and what other ways of working cost; as text and as JSON.
 *  Invariant: it says that no language model wrote the answers and whose prices it uses; no line is wider than the
 *  terminal or 100 columns; text and JSON state the same figures. A command to paste is on one line, however narrow
 *  the terminal is.
 *  Elsewhere: the run and its live lines (../tour), the table of requests (explain-report.ts). */

import { readReport } from "@prefork/runtime";
import type { RequestRow } from "@prefork/runtime/observe";
import { writtenTokens } from "@prefork/wire";
import { jsonText } from "../lines.ts";
import { formatMoney, formatTokens, moneyDecimals } from "../numbers.ts";
import { painter, type Row, renderTable } from "../table.ts";
import type { ComparedWay, TourFork, TourResult, TourStart } from "../tour/index.ts";
import { wrapText } from "../width.ts";
import { requestTable } from "./explain-report.ts";
import { inLine, outputWidth, wrapped } from "./tasks-store.ts";

const COUNTS = ["no", "one", "two", "three", "four", "five"];
const counted = (count: number, noun: string): string => `${COUNTS[count] ?? count} ${noun}${count === 1 ? "" : "s"}`;

const text = (lines: readonly string[]): string => lines.map((line) => `${line}\n`).join("");

export const tourIntroduction = ({ sample, repository, parts, model, prompt }: TourStart, colour: boolean): string => {
  const paint = painter(colour);
  const { service } = sample.domain;
  const size = `${repository.files} files, ${formatTokens(repository.lines)} lines, one commit, made from seed ${sample.seed}`;
  const about =
    "The engine is a rehearsal: a script follows the prompt's list with real tools. No language model is called and " +
    `nothing leaves this machine. Prices are those of ${inLine(model)}, billed by a simulator.`;
  return [
    paint("bold", wrapped(`A real agent and ${counted(parts.length, "fork")} in a sample repository`, { hang: 0 })),
    paint("faint", wrapped(about, { hang: 0 })),
    "\n",
    wrapped(`${service}: ${size}. The prompt asks for this, in parallel:`, { hang: 0 }).replace(
      service,
      paint("bold", service),
    ),
    ...prompt
      .split("\n")
      .slice(-parts.length)
      .map((line) => wrapped(inLine(line), { indent: 2, hang: 3 })),
    "\n",
  ].join("");
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
    wrapped(firstReads(result)),
    wrapped(totalSentence(result)),
    "\n",
    comparisonTable(result, colour),
    painter(colour)("faint", wrapped(COMPARISON_NOTE, { hang: 0 })),
    "\n",
    nextLines(result, colour),
  ].join("");
};

const OUTCOME = /^ {3}(\S.*)$/;
const EXCERPT = /^ {5}(.*)$/;

type ReportStyle = { readonly colour: boolean; readonly decimals: number };

/** Every step with its outcome; for the last one also the beginning of the text that it found. */
const reportLines = ({ part, task, tools }: TourFork, { colour, decimals }: ReportStyle): string => {
  const paint = painter(colour);
  const answer = task.result?.text ?? "";
  const read = readReport(answer);
  const lines = (read.kind === "report" ? read.report.result : answer).split("\n");
  const steps = lines.flatMap((line) => OUTCOME.exec(line)?.slice(1) ?? []);
  const last = lines.slice(lines.findLastIndex((line) => OUTCOME.test(line)));
  const excerpt = last.flatMap((line) => EXCERPT.exec(line)?.slice(1) ?? []).map((line) => inLine(line));
  const end = task.state.kind === "ended" ? task.state.end : task.state.kind;
  return text([
    `${paint("bold", part.name)} ${end}: ${counted(tools.length, "call")}, ${formatMoney(task.result?.usd ?? 0, decimals)}`,
    ...steps.map((step) => `  ${stepLine(inLine(step))}`),
    ...(excerpt.length === 0 ? [] : [paint("faint", `    ${inLine(excerpt.join("  "), outputWidth() - 4)}`)]),
  ]);
};

/** The outcome is at the end, so a long call is cut before it. */
const stepLine = (step: string): string => {
  const room = outputWidth() - 2;
  if (step.length <= room) return step;
  const outcome = step.slice(step.lastIndexOf(": "));
  return `${step.slice(0, Math.max(0, room - outcome.length - 2)).trimEnd()}…\`${outcome}`.slice(0, room);
};

/** Only the outermost lines: the excerpts below them are in the reports. */
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

/** Forks that were launched at once have no role to name. */
const ROLES = { leader: "leader ", follower: "followers ", "at-once": "" } as const;

const firstReads = (result: TourResult): string => {
  const rows = firstRows(result);
  const missed = rows.filter(({ usage, expected }) => usage.read < expected);
  const shares = rows.map(({ usage, expected, family }) => {
    const share = `${formatTokens(usage.read)} of ${formatTokens(expected)}`;
    return `${ROLES[family?.role ?? "at-once"]}${share}`;
  });
  const words = [...new Set(shares)].join(", ");
  return missed.length === 0
    ? `Each fork's first request read from the cache all it could (${words}).`
    : `${missed.length} of ${rows.length} first requests read less from the cache than they could (${words}).`;
};

const isBilledAlike = ({ billed, explanation }: TourResult): boolean => {
  const { usage, requests } = explanation.total;
  const parts = (each: typeof usage): string => [each.read, writtenTokens(each), each.plain, each.output].join();
  return billed.requests === requests && parts(billed.usage) === parts(usage);
};

const totalSentence = (result: TourResult): string => {
  const { requests, usage } = result.explanation.total;
  const parts = [
    `${formatTokens(usage.read)} tokens read`,
    `${formatTokens(writtenTokens(usage))} written`,
    `${formatTokens(usage.plain)} uncached`,
    `${formatTokens(usage.output)} output`,
  ];
  const agrees = isBilledAlike(result) ? "the simulator's ledger agrees" : "the simulator's ledger disagrees";
  return `${requests} requests: ${parts.join(", ")}; ${agrees}.`;
};

const TITLES: Readonly<Record<ComparedWay, string>> = {
  "fresh-agents": "a fresh sub-agent each",
  "one-by-one": "one part after another",
  "no-cache": "forks without a cache",
};

const COMPARISON_NOTE =
  "The second and the third row were run just now too. The simulator billed all three, and waits 0.3 s before each " +
  "answer. The fresh sub-agents start together, with an empty cache and without the conversation. One part after " +
  "another is cheap here and slow, and leaves every tool result in the conversation. The last row is the forks' own " +
  "requests at the uncached price.";

const comparisonTable = ({ explanation, alternatives, forks, ms }: TourResult, colour: boolean): string => {
  const { requests, usd = 0 } = explanation.total;
  const compared = [
    { title: counted(forks.length, "fork"), requests, usd, ms, isThis: true },
    ...alternatives.map(({ id, ...sum }) => ({ title: TITLES[id], ...sum, isThis: false })),
  ];
  const decimals = moneyDecimals(compared.map((each) => each.usd));
  return renderTable({
    columns: [
      { title: "the same work with" },
      { title: "requests", align: "right", dispensable: 1 },
      { title: "time", align: "right" },
      { title: "cost", align: "right" },
      { title: "compared", align: "right", dispensable: 2 },
    ],
    rows: compared.map(
      ({ title, isThis, ...sum }): Row => ({
        cells: [
          title,
          String(sum.requests),
          `${(sum.ms / 1_000).toFixed(1)} s`,
          formatMoney(sum.usd, decimals),
          `${(sum.usd / usd).toFixed(2)} ×`,
        ],
        ...(isThis ? { mark: "best", style: "good" } : {}),
      }),
    ),
    rule: false,
    colour,
  });
};

/** Commands start in the first column, and what they are for is a shell comment: all of it can be pasted as it is. */
const nextLines = ({ keptIn, session }: TourResult, colour: boolean): string => {
  const paint = painter(colour);
  const explain =
    keptIn === undefined ? "npx prefork explain" : `XDG_STATE_HOME=${keptIn.stateHome} npx prefork explain ${session}`;
  const commands = [
    ['npx prefork -p "Count files per folder"', "the same agent on your files; with an API key, a model answers"],
    [explain, keptIn === undefined ? "the bill of that session, request by request" : "the bill of this tour"],
    ["npx prefork demo", "forks of a 49,000-token parent, where sharing saves more"],
  ] as const;
  const kept = keptIn && `Kept in ${keptIn.folder}: the repository, and the journals of all agents.`;
  return [
    paint("bold", "Next:\n"),
    ...commands.flatMap(([command, purpose]) => [
      ...wrapText(purpose, outputWidth() - 2).map((line) => paint("faint", `# ${line}\n`)),
      `${command}\n`,
    ]),
    ...(kept === undefined ? [] : ["\n", `${kept}\n`]),
  ].join("");
};

export const tourAsJson = (result: TourResult): string => {
  const {
    sample,
    repository,
    parts,
    prompt,
    model,
    session,
    forks,
    exchange,
    family,
    explanation,
    alternatives,
    billed,
    ms,
  } = result;
  const first = new Map(firstRows(result).map((row) => [row.agent, row]));
  return jsonText({
    engine: { name: "rehearsal", isLanguageModel: false, model, prices: "of the simulated model" },
    sample: { seed: sample.seed, service: sample.domain.service, facts: sample.facts },
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
    ms,
    alternatives,
    billed,
    kept: result.keptIn ?? null,
  });
};
