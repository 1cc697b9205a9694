/** How the proxy's report is laid out: what was read, by whom, what was lost and why, what nobody looked at.
 *  Invariant: the same figures as in JSON; what comes from a request is shown as letters; money appears only where a
 *  model has prices.
 *  Elsewhere: the figures (@prefork/xray/proxy), when it is shown (proxy.ts). */

import { promptTokens } from "@prefork/wire";
import type { Counted, FamilyReport, Loss, MissReport, ProxyReport, ProxySpend } from "@prefork/xray/proxy";
import { formatMoney, formatTokens } from "../numbers.ts";
import { painter, type Row, renderTable } from "../table.ts";
import { inLine } from "./xray-place.ts";

const count = (number: number, one: string, many = `${one}s`): string =>
  `${formatTokens(number)} ${number === 1 ? one : many}`;

const share = (part: number | null): string => (part === null ? "–" : `${(part * 100).toFixed(1)} %`);
const factor = (value: number | null): string =>
  value === null ? "–" : value < 10 ? value.toFixed(3) : formatTokens(Math.round(value));
const money = (usd: number | undefined): string => (usd === undefined ? "–" : formatMoney(usd));

const written = ({ usage }: ProxySpend): number =>
  Object.values(usage.written).reduce((sum, tokens) => sum + tokens, 0);
const prompt = (spent: ProxySpend): number => spent.usage.plain + spent.usage.read + written(spent);

export const lossWords = ({ tokens, usd }: Loss): string =>
  `${count(tokens, "token")}${usd === undefined ? "" : ` (${formatMoney(usd)})`}`;

/** One line that fits while it goes on. */
export const statusWords = (all: ProxySpend, lineages: number): string =>
  [
    `${count(all.requests, "request")}, ${count(lineages, "lineage")}: ${share(all.readShare)} read`,
    `re-write factor ${factor(all.rewriteFactor)}`,
    ...(all.usd === undefined ? [] : [formatMoney(all.usd)]),
    ...(all.lost.tokens === 0 ? [] : [`lost ${lossWords(all.lost)}`]),
  ].join(", ");

/** What happened to one request. */
export const missWords = ({ request, lineage, against, words, lost, path, why, fix }: MissReport): string => {
  const place = path === undefined || path === "" ? "" : ` at ${inLine(path)}`;
  const first = `#${request} (lineage ${lineage}, against #${against}) ${words}${place}: ${lossWords(lost)} paid for again`;
  return `${first}\n    ${inLine(why)}${fix === undefined ? "" : `; to fix it: ${inLine(fix)}`}\n`;
};

export const familyWords = ({ from, members, prefix }: Pick<FamilyReport, "from" | "members" | "prefix">): string =>
  `${members.map((member) => `#${member}`).join(", ")} ` +
  `${members.includes(from) ? "name one stored entry" : `grew from #${from}`} and share its ${count(prefix, "token")}`;

export const reportAsText = (report: ProxyReport, colour: boolean): string => {
  const { all, families, lineages, older, misses, causes } = report;
  const paint = painter(colour);
  const total = lineages.length + older.lineages;
  const familyText = families.length === 0 ? "" : `, ${count(families.length, "family", "families")}`;
  const lostMoney =
    all.lost.usd === undefined ? "" : `, of which ${formatMoney(all.lost.usd)} for what could have been read`;
  const hidden = causes.reduce((sum, { times }) => sum + times, 0) - misses.length;
  return [
    `${paint("bold", `${count(all.requests, "request")} to models, ${count(total, "lineage")}${familyText}`)}\n`,
    ...(all.requests === 0 ? [] : [readWords(all)]),
    ...(all.usd === undefined ? [] : [`paid ${formatMoney(all.usd)}${all.lost.tokens === 0 ? "" : lostMoney}\n`]),
    ...(total === 0 ? [] : [`\n${lineageTable(report, colour)}`]),
    ...(families.length === 0 ? [] : [`\n${familyTable(report, colour)}`]),
    ...(causes.length === 0 ? [] : [`\n${causeTable(report, colour)}`]),
    ...(misses.length === 0 ? [] : [`\n${misses.map(missWords).join("")}`]),
    ...(hidden > 0 ? [`… and ${count(hidden, "earlier miss", "earlier misses")}\n`] : []),
    remarks(report),
  ].join("");
};

const readWords = (all: ProxySpend): string =>
  `${share(all.readShare)} of ${count(prompt(all), "prompt token")} were read; re-write factor ${factor(all.rewriteFactor)}\n`;

const right = (title: string) => ({ title, align: "right" }) as const;

const spentCells = (spent: ProxySpend): readonly string[] => [
  formatTokens(spent.requests),
  share(spent.readShare),
  formatTokens(spent.usage.read),
  formatTokens(written(spent)),
  formatTokens(spent.usage.plain),
  factor(spent.rewriteFactor),
  money(spent.usd),
  formatTokens(spent.lost.tokens),
];
const SPENT_COLUMNS = ["requests", "read", "tokens read", "written", "plain", "re-write", "cost", "lost"].map(right);

const lineageTable = ({ lineages, older, all }: ProxyReport, colour: boolean): string => {
  const several = new Set(lineages.map(({ account }) => account)).size > 1;
  const rows = lineages.map((lineage): Row => {
    const { id, forkedFrom, client, model, account, lost } = lineage;
    const name = `${id}${forkedFrom === undefined ? "" : ` from #${forkedFrom}`}`;
    const by = `${inLine(client)}${several ? ` (account ${account})` : ""}`;
    return {
      cells: [name, by, inLine(model), ...spentCells(lineage)],
      ...(lost.tokens > 0 ? { style: "bad" } : {}),
    };
  });
  const more: readonly Row[] =
    older.lineages === 0 ? [] : [{ cells: [`${older.lineages} older`, "", "", ...spentCells(older)] }];
  return renderTable({
    columns: [{ title: "lineage" }, { title: "client" }, { title: "model" }, ...SPENT_COLUMNS],
    rows: [...rows, ...more, { cells: ["all", "", "", ...spentCells(all)], style: "bold" }],
    colour,
  });
};

const familyTable = ({ families }: ProxyReport, colour: boolean): string =>
  renderTable({
    columns: [{ title: "family of" }, right("members"), right("shared"), ...SPENT_COLUMNS],
    rows: families.map((family) => ({
      cells: [
        `#${family.from}`,
        formatTokens(family.members.length),
        formatTokens(family.prefix),
        ...spentCells(family),
      ],
      ...(family.lost.tokens > 0 ? { style: "bad" as const } : {}),
    })),
    colour,
  });

const causeTable = ({ causes }: ProxyReport, colour: boolean): string =>
  renderTable({
    columns: [{ title: "lost by" }, ...["times", "tokens", "cost"].map(right)],
    rows: causes.map(({ words, times, tokens, usd }) => ({
      cells: [words, formatTokens(times), formatTokens(tokens), money(usd)],
    })),
    colour,
  });

/** Whatever is not in the sums, and why. */
const remarks = (report: ProxyReport): string => {
  const { passed, failed, aborted, brokenOff, cut, unanswered, unstated, notLookedAt, errors, analysis, record, open } =
    report;
  const { others, created, upgraded, unreachable, refused, unfinished } = passed;
  const listed = (list: readonly Counted[]): string =>
    list.map(({ name, times }) => `${inLine(name)} (${formatTokens(times)})`).join(", ");
  const lines: readonly (readonly [number, string])[] = [
    [failed.length, `Refused by the provider, by status: ${listed(failed)}.`],
    [aborted, `${count(aborted, "client")} left before the end of an answer.`],
    [unfinished, `${count(unfinished, "client")} left before the end of a request.`],
    [cut, `${count(cut, "answer")} broken off by the provider.`],
    [
      brokenOff.requests,
      `Paid for answers that came to no end, and in no sum: ${formatTokens(promptTokens(brokenOff.usage))} prompt tokens` +
        `${brokenOff.usd === undefined ? "" : ` (${formatMoney(brokenOff.usd)})`}.`,
    ],
    [unanswered, `${count(unanswered, "request")} without an answer; ${unreachable} of these found nobody.`],
    [open, `${count(open, "request")} still open.`],
    [unstated, `${count(unstated, "answer")} stated no usage and stand in no sum.`],
    [
      others + upgraded,
      `Passed on unseen: ${count(others, "request")} on other paths, ${count(upgraded, "upgraded connection")}.`,
    ],
    [
      created,
      `In no sum: what the creation of ${created === 1 ? "one stored entry" : `${formatTokens(created)} stored entries`} cost.`,
    ],
    [refused, `${count(refused, "request")} refused by the proxy itself.`],
    [notLookedAt.length, `Passed on and not compared: ${listed(notLookedAt)}.`],
    [errors.length, `Not understood: ${listed(errors)}.`],
    [analysis === "runs" ? 0 : 1, `The analysis has ${analysis}; requests were passed on all the same.`],
    [
      record ? 1 : 0,
      `Recorded: ${record?.file} (${count(record?.requests ?? 0, "request")}); prefork xray shows the letters.`,
    ],
  ];
  const shown = lines.filter(([times]) => times > 0).map(([, text]) => `${text}\n`);
  return shown.length === 0 ? "" : `\n${shown.join("")}`;
};
