/** Formats the proxy's report: cache reads by lineage, what was lost and why, and what was not analysed.
 *  Invariant: the figures equal those in JSON; text from a request cannot control the terminal; money appears only if a
 *  model has prices.
 *  Elsewhere: the figures (@prefork/xray/proxy), when it is shown (proxy.ts). */

import { promptTokens } from "@prefork/wire";
import type { Counted, FamilyReport, Loss, MissReport, ProxyReport, ProxySpend } from "@prefork/xray/proxy";
import { formatMoney, formatTokens } from "../numbers.ts";
import { painter, type Row, renderTable } from "../table.ts";
import { escapeLine } from "./xray-excerpt.ts";

const count = (number: number, one: string, many = `${one}s`): string =>
  `${formatTokens(number)} ${number === 1 ? one : many}`;

const share = (part: number | null): string => (part === null ? "–" : `${(part * 100).toFixed(1)} %`);
const factor = (value: number | null): string =>
  value === null ? "–" : value < 10 ? value.toFixed(3) : formatTokens(Math.round(value));
const money = (usd: number | undefined): string => (usd === undefined ? "–" : formatMoney(usd));

const written = ({ usage }: ProxySpend): number =>
  Object.values(usage.written).reduce((sum, tokens) => sum + tokens, 0);
const prompt = (spent: ProxySpend): number => spent.usage.plain + spent.usage.read + written(spent);

export const lossText = ({ tokens, usd }: Loss): string =>
  `${count(tokens, "token")}${usd === undefined ? "" : ` (${formatMoney(usd)})`}`;

/** One status line while the proxy runs. */
export const statusText = (all: ProxySpend, lineages: number): string =>
  [
    `${count(all.requests, "request")}, ${count(lineages, "lineage")}: ${share(all.readShare)} read from cache`,
    `re-write factor ${factor(all.rewriteFactor)}`,
    ...(all.usd === undefined ? [] : [formatMoney(all.usd)]),
    ...(all.lost.tokens === 0 ? [] : [`lost ${lossText(all.lost)}`]),
  ].join(", ");

/** What happened to one request. */
export const missText = ({ request, lineage, against, words, lost, path, why, fix }: MissReport): string => {
  const place = path === undefined || path === "" ? "" : ` at ${escapeLine(path)}`;
  const first = `#${request} (lineage ${lineage}, against #${against}) ${words}${place}: ${lossText(lost)} paid for again`;
  return `${first}\n    ${escapeLine(why)}${fix === undefined ? "" : `; to fix it: ${escapeLine(fix)}`}\n`;
};

export const familyText = ({ from, members, prefix }: Pick<FamilyReport, "from" | "members" | "prefix">): string =>
  `${members.map((member) => `#${member}`).join(", ")} ` +
  `${members.includes(from) ? "name one stored entry" : `grew from #${from}`} and share its ${count(prefix, "token")}`;

export const reportAsText = (report: ProxyReport, colour: boolean): string => {
  const { all, families, lineages, older, misses, causes } = report;
  const paint = painter(colour);
  const total = lineages.length + older.lineages;
  const familyText = families.length === 0 ? "" : `, ${count(families.length, "family", "families")}`;
  const lostMoney = all.lost.usd === undefined ? "" : `, of which ${formatMoney(all.lost.usd)} for cache misses`;
  const hidden = causes.reduce((sum, { times }) => sum + times, 0) - misses.length;
  return [
    `${paint("bold", `${count(all.requests, "request")} to models, ${count(total, "lineage")}${familyText}`)}\n`,
    ...(all.requests === 0 ? [] : [readShareText(all)]),
    ...(all.usd === undefined ? [] : [`paid ${formatMoney(all.usd)}${all.lost.tokens === 0 ? "" : lostMoney}\n`]),
    ...(total === 0 ? [] : [`\n${lineageTable(report, colour)}`]),
    ...(families.length === 0 ? [] : [`\n${familyTable(report, colour)}`]),
    ...(causes.length === 0 ? [] : [`\n${causeTable(report, colour)}`]),
    ...(misses.length === 0 ? [] : [`\n${misses.map(missText).join("")}`]),
    ...(hidden > 0 ? [`… and ${count(hidden, "earlier miss", "earlier misses")}\n`] : []),
    remarks(report),
  ].join("");
};

const readShareText = (all: ProxySpend): string =>
  `${share(all.readShare)} of ${count(prompt(all), "prompt token")} were read from the cache; re-write factor ${factor(all.rewriteFactor)}\n`;

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
const SPENT_COLUMNS = ["requests", "read", "tokens read", "written", "uncached", "re-write", "cost", "lost"].map(right);

const lineageTable = ({ lineages, older, all }: ProxyReport, colour: boolean): string => {
  const several = new Set(lineages.map(({ account }) => account)).size > 1;
  const rows = lineages.map((lineage): Row => {
    const { id, forkedFrom, client, model, account, lost } = lineage;
    const name = `${id}${forkedFrom === undefined ? "" : ` from #${forkedFrom}`}`;
    const by = `${escapeLine(client)}${several ? ` (account ${account})` : ""}`;
    return {
      cells: [name, by, escapeLine(model), ...spentCells(lineage)],
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

/** What is not in the sums, and why. */
const remarks = (report: ProxyReport): string => {
  const { passed, failed, aborted, brokenOff, cut, unanswered, unstated, notLookedAt, errors, analysis, record, open } =
    report;
  const { others, created, upgraded, unreachable, refused, unfinished } = passed;
  const listed = (list: readonly Counted[]): string =>
    list.map(({ name, times }) => `${escapeLine(name)} (${formatTokens(times)})`).join(", ");
  const lines: readonly (readonly [number, string])[] = [
    [failed.length, `Refused by the provider, by status: ${listed(failed)}.`],
    [aborted, `${count(aborted, "client")} disconnected before the end of an answer.`],
    [unfinished, `${count(unfinished, "client")} disconnected before the end of a request.`],
    [cut, `${count(cut, "answer")} cut off by the provider.`],
    [
      brokenOff.requests,
      `Paid for unfinished answers, not in the sums: ${formatTokens(promptTokens(brokenOff.usage))} prompt tokens` +
        `${brokenOff.usd === undefined ? "" : ` (${formatMoney(brokenOff.usd)})`}.`,
    ],
    [
      unanswered,
      `${count(unanswered, "request")} without an answer; ${unreachable} of these could not reach the provider.`,
    ],
    [open, `${count(open, "request")} still open.`],
    [unstated, `${count(unstated, "answer")} reported no usage and are not in the sums.`],
    [
      others + upgraded,
      `Passed through without analysis: ${count(others, "request")} on other paths, ${count(upgraded, "upgraded connection")}.`,
    ],
    [
      created,
      `Not in the sums: the cost of creating ${created === 1 ? "one stored entry" : `${formatTokens(created)} stored entries`}.`,
    ],
    [refused, `${count(refused, "request")} refused by the proxy itself.`],
    [notLookedAt.length, `Passed through and not compared: ${listed(notLookedAt)}.`],
    [errors.length, `Not understood: ${listed(errors)}.`],
    [analysis === "runs" ? 0 : 1, `The analysis has ${analysis}; requests were still passed through.`],
    [
      record ? 1 : 0,
      `Recorded: ${record?.file} (${count(record?.requests ?? 0, "request")}); prefork xray shows what differs.`,
    ],
  ];
  const shown = lines.filter(([times]) => times > 0).map(([, text]) => `${text}\n`);
  return shown.length === 0 ? "" : `\n${shown.join("")}`;
};
