/** Formats the requests of a session and their bill, as tables and sentences or as JSON.
 *  Invariant: no line is wider than 100 columns, unless a figure has more than six digits; text from a journal cannot
 *  control the terminal; colour adds no information.
 *  Elsewhere: the figures (@prefork/runtime), which session is explained (explain.ts). */

import type { Task } from "@prefork/runtime";
import { type Explanation, missReasonLabel, type ObservedFamily, type RequestRow } from "@prefork/runtime/observe";
import { promptTokens, writtenTokens } from "@prefork/wire";
import { jsonLine } from "../lines.ts";
import { formatMoney, formatTokens, moneyDecimals } from "../numbers.ts";
import { type Column, painter, type Row, renderTable } from "../table.ts";
import { inLine, outputWidth, shortId, wrapped } from "./tasks-store.ts";

export type Explained = ObservedFamily & {
  /** Set when only one task is explained. */
  readonly only?: Task;
  readonly explanation: Explanation;
};

export const explainedAsJson = ({ explanation, only, tasks, ...rest }: Explained): string =>
  jsonLine({
    ...rest,
    tasks: tasks
      .filter(({ id }) => only === undefined || id === only.id)
      .map(({ id, kind, label, state, session }) => ({ id, kind, label, state, journal: session ?? null })),
    ...explanation,
  });

export const explainedAsText = (explained: Explained, colour: boolean): string => {
  const { rows, explanation, only, session, model, cwd } = explained;
  const paint = painter(colour);
  const title = `Session ${inLine(session)}${only ? `, task ${inLine(only.id)}` : ""} on ${inLine(model)}`;
  const problems = explained.problems.map((problem) => wrapped(`Skipped: ${inLine(problem)}`));
  if (rows.length === 0 && explained.unread.length === 0)
    return [`${paint("bold", title)}\nNo request has been sent yet.\n`, ...problems].join("");
  return [
    `${paint("bold", title)}\n${inLine(cwd, outputWidth())}\n\n`,
    requestTable(rows, colour),
    "\n",
    agentLines(explained),
    wrapped(totalSentence(explanation)),
    insteadLines(explanation, colour),
    ...explanation.misses.map((miss) => missLines(miss, colour)),
    ...explained.unread.map(({ agent, reason }) =>
      wrapped(`${shortId(agent)}: counted as one sum, because its journal cannot be read: ${inLine(reason)}`),
    ),
    ...problems,
  ].join("");
};

/** One line per request: the provider's figures, and the miss reason in two words. */
export const requestTable = (rows: readonly RequestRow[], colour: boolean): string => {
  const startedAt = Math.min(...rows.map(({ at }) => at));
  const decimals = moneyDecimals(rows.flatMap(({ usd }) => (usd === undefined ? [] : [usd])));
  const right = (title: string, dispensable?: number): Column => ({
    ...{ title, align: "right" },
    ...(dispensable === undefined ? {} : { dispensable }),
  });
  return renderTable({
    columns: [
      { title: "agent" },
      ...[
        right("turn"),
        right("at", 1),
        right("expected", 3),
        right("read"),
        right("written", 4),
        right("uncached", 2),
      ],
      ...[right("output", 5), right("cost")],
      { title: "miss reason", dispensable: 6 },
    ],
    rows: rows.map((row): Row => {
      const { agent, kind, turn, at, expected, estimated, usage, usd, cause, isAnswered } = row;
      const figures = [usage.read, writtenTokens(usage), usage.plain, usage.output].map(formatTokens);
      const isBilled = isAnswered || promptTokens(usage) > 0;
      const isShort = expected > usage.read && !["none", "first-request", "new-epoch"].includes(cause.kind);
      return {
        cells: [
          shortId(agent),
          kind === "turn" ? String(turn) : kind,
          clockTime(at - startedAt),
          `${estimated > 0 ? "~" : ""}${formatTokens(expected)}`,
          ...(isBilled ? figures : figures.map(() => "–")),
          usd === undefined ? "–" : formatMoney(usd, decimals),
          isAnswered ? missReasonLabel(cause) : isBilled ? "broken off" : "no answer",
        ],
        ...(isAnswered ? (isShort ? { style: "bad" } : {}) : { style: "faint" }),
      };
    }),
    colour,
  });
};

/** 3,725,000 → "1:02:05". */
const clockTime = (ms: number): string => {
  const seconds = Math.floor(ms / 1_000);
  const [hours, minutes] = [Math.floor(seconds / 3_600), Math.floor(seconds / 60) % 60];
  const two = (value: number): string => String(value).padStart(2, "0");
  return hours > 0 ? `${hours}:${two(minutes)}:${two(seconds % 60)}` : `${minutes}:${two(seconds % 60)}`;
};

const agentLines = ({ tasks, rows }: Explained): string => {
  const agents = new Set(rows.map(({ agent }) => agent));
  const known = tasks.filter(({ id }) => agents.has(id));
  const lines = known.map(
    ({ id, label }) => `${shortId(id)}  ${inLine(label, outputWidth() - shortId(id).length - 2)}\n`,
  );
  return known.length === 0 ? "" : `${lines.join("")}\n`;
};

const totalSentence = ({ total }: Explanation): string => {
  const { requests, usage, units, usd } = total;
  const parts = [
    `${formatTokens(usage.read)} tokens read`,
    `${formatTokens(writtenTokens(usage))} written`,
    `${formatTokens(usage.plain)} uncached`,
    `${formatTokens(usage.output)} output`,
  ];
  const cost = usd === undefined ? "The price is unknown" : `The total cost is ${formatMoney(usd)}`;
  const estimated =
    usage.estimated === undefined
      ? ""
      : ` ${formatTokens(usage.estimated)} of these tokens are estimates, because the provider did not report them.`;
  return `${requests} ${requests === 1 ? "request" : "requests"}: ${parts.join(", ")}. ${cost}; the input cost equals ${formatTokens(Math.round(units))} uncached tokens.${estimated}`;
};

const NAMES = { "no-fork": "no fork", "no-cache": "no cache", "cold-at-once": "cold, all at once" } as const;

const insteadLines = ({ instead, total }: Explanation, colour: boolean): string => {
  const decimals = moneyDecimals([total, ...instead].flatMap(({ usd }) => (usd === undefined ? [] : [usd])));
  const table = renderTable({
    columns: [
      { title: "alternative" },
      { title: "input, in uncached tokens", align: "right", dispensable: 1 },
      { title: "cost", align: "right" },
      { title: "saved", align: "right" },
      { title: "compared", align: "right", dispensable: 2 },
    ],
    rows: instead.map(({ id, units, usd, saved }) => ({
      cells: [
        NAMES[id],
        formatTokens(Math.round(units)),
        usd === undefined ? "–" : formatMoney(usd, decimals),
        saved.usd === undefined ? formatTokens(Math.round(saved.units)) : formatMoney(saved.usd, decimals),
        total.units > 0 ? `${(units / total.units).toFixed(2)} ×` : "–",
      ],
    })),
    colour,
  });
  const paint = painter(colour);
  const how = instead.map(({ id, how: words }) => wrapped(`${NAMES[id]}: ${words}`));
  return `\n${table}${paint("faint", how.join("").trimEnd())}\n`;
};

const missLines = (miss: Explanation["misses"][number], colour: boolean): string => {
  const { agent, turn, lost, usd, why, advice } = miss;
  const paint = painter(colour);
  const cost = usd === undefined ? "" : ` (${formatMoney(usd)})`;
  const who = `${shortId(agent)} ${turn === 0 ? "side request" : `turn ${turn}`}`;
  const sentence = wrapped(`${who} missed ${formatTokens(lost)} cached tokens${cost}: ${inLine(why)}.`);
  return `\n${paint("bad", sentence.trimEnd())}\n${wrapped(`To avoid it: ${advice}.`, { indent: 2 })}`;
};
