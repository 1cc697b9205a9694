/** Formats the answer of `prefork cost`, as a table with sentences or as JSON.
 *  Invariant: money appears only if the model has prices; otherwise a sentence says that it has none.
 *  Elsewhere: the figures (cost.ts asks @prefork/wire for them), columns and colour (table.ts). */

import {
  type Bill,
  type BreakEven,
  childTtl,
  type FanOut,
  type ForkPlans,
  type KeepAliveBudget,
  type LaunchDecision,
  type LaunchPlan,
  multipliersOf,
  pricesFor,
  type StoredDecision,
  type TtlDecision,
  USUAL_HIT_RATE,
  writeMultiplier,
} from "@prefork/wire";
import { jsonText } from "../lines.ts";
import { formatMoney, formatTokens, moneyDecimals } from "../numbers.ts";
import { BEST_SIGN, type Column, prose, renderTable } from "../table.ts";
import { terminalColumns, widthOf } from "../width.ts";

/** The shared prefix stored by name; undefined if the model has no price for that. Without bills if it is too short. */
export type StoredCost =
  | { readonly decision: StoredDecision; readonly bills?: { readonly children: Bill; readonly parentNext: Bill } }
  | undefined;

export type CostReport = ForkPlans & {
  readonly model: string;
  readonly fanOut: FanOut;
  readonly stored: StoredCost;
  readonly launch: LaunchDecision;
  readonly breakEven: BreakEven | undefined;
  readonly keepAlive: KeepAliveBudget;
  /** The cheaper lifetime if the parent pauses once for more than five minutes and less than an hour; undefined if the
   *  model does not sell both. */
  readonly pause: TtlDecision | undefined;
};

const applicability = ({ requires, applies }: LaunchPlan): string =>
  applies ? "now" : requires === "warm" ? "if warm" : "if cold";

const sumOf = (one: Bill, other: Bill): Bill => ({
  units: one.units + other.units,
  money: (one.money ?? 0) + (other.money ?? 0),
});

const planTable = ({ plans, cheapest, stored }: CostReport, colour: boolean): string => {
  const amounts = plans.map(({ total }) => total.money).filter((money) => money !== undefined);
  const decimals = moneyDecimals(amounts);
  const columns: readonly Column[] = [
    { title: "plan" },
    { title: "applies" },
    { title: "children", align: "right" },
    { title: "parent's next", align: "right" },
    { title: "total", align: "right" },
    ...(amounts.length > 0 ? [{ title: "money", align: "right" } as const] : []),
  ];
  const figures = ({ children, parentNext, total }: Pick<LaunchPlan, "children" | "parentNext" | "total">) => [
    ...[children, parentNext, total].map(({ units }) => formatTokens(Math.round(units))),
    total.money === undefined ? "" : formatMoney(total.money, decimals),
  ];
  const rows = plans.map((plan) => ({
    cells: [plan.title, applicability(plan), ...figures(plan)],
    ...(plan.id === cheapest.id ? { mark: "best" as const, style: "good" as const } : {}),
    ...(plan.applies ? {} : { style: "faint" as const }),
  }));
  const { bills } = stored ?? {};
  const named = bills && {
    cells: ["stored by name", "now", ...figures({ ...bills, total: sumOf(bills.children, bills.parentNext) })],
  };
  return renderTable({ columns, rows: named ? [...rows, named] : rows, colour });
};

/** Automatic caching is not guaranteed, so the plans above show what it costs when it works. */
const storedLine = ({ decision }: NonNullable<StoredCost>): string =>
  `Stored by name, compared with automatic caching that hits ${USUAL_HIT_RATE * 100} % of the time: ${decision.reason}.`;

/** Multipliers are rarely round. */
const rate = (multiplier: number): number => Number(multiplier.toFixed(4));

const terms = ({ fanOut }: CostReport): string => {
  const { prefix, tail, directive, forks, facts, parentTtl = childTtl(facts), singleTurn } = fanOut;
  const multipliers = multipliersOf(facts, prefix + tail);
  const write = writeMultiplier(multipliers, childTtl(facts));
  const parentWrite =
    parentTtl === childTtl(facts) ? "" : ` (the parent ${rate(writeMultiplier(multipliers, parentTtl))})`;
  const sizes = Object.entries({ P: prefix, S: tail, D: directive, N: forks });
  const rates = Object.entries({
    w: `${rate(write)}${parentWrite}`,
    r: rate(multipliers.read),
    d: singleTurn ? 1 : rate(write),
  });
  return [...sizes.map(([name, value]) => [name, formatTokens(value)]), ...rates]
    .map(([name, value]) => `${name} ${value}`)
    .join(" · ");
};

const keepAliveLine = ({ each, loss, requests }: KeepAliveBudget): string =>
  `Keep-alive: one costs ${formatTokens(each)}, a lost entry ${formatTokens(loss)}, so it pays for ` +
  `${Number.isFinite(requests) ? `at most ${formatTokens(requests)}` : "any number"} in a row.`;

const breakEvenLine = (answer: BreakEven): string =>
  answer.kind === "always"
    ? `Break-even: a fork is always cheaper than a fresh sub-agent; ${answer.reason}.`
    : `Break-even: T* = ${answer.turns.toFixed(1)} turns; with fewer turns a fork is cheaper than a fresh sub-agent; ${answer.reason}.`;

/** A price tier applies to the whole request, so a slightly longer prompt can cost much more. */
const tierNote = ({ fanOut }: CostReport): readonly string[] => {
  const { facts, prefix, tail, directive } = fanOut;
  if (facts?.tiers === undefined || pricesFor(facts, prefix + tail + directive) === facts.prices) return [];
  const crossed = facts.tiers.filter(({ above }) => prefix + tail + directive > above).map(({ above }) => above);
  return [
    `Price tier: prompts above ${formatTokens(Math.max(...crossed))} tokens are billed at a higher price for the whole request; the money column includes it.`,
  ];
};

const DAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

const peakNote = ({ fanOut: { facts } }: CostReport): readonly string[] => {
  if (!facts?.peak) return [];
  const { hours, days, prices } = facts.peak;
  const spans = hours.map((span) => span.map((hour) => String(hour).padStart(2, "0")).join("–")).join(" and ");
  const [first = 0, last = 6] = [days.at(0), days.at(-1)];
  return [
    `Peak hours: ${spans} UTC, ${DAYS[first]} to ${DAYS[last]}, input costs $${prices.input} per million tokens instead of $${facts.prices.input}; the money column uses the off-peak price.`,
  ];
};

const notes = (report: CostReport): readonly string[] => {
  const { fanOut, model, cheapest, cheapestKept } = report;
  const { facts, prefix, tail } = fanOut;
  const found = [
    `${BEST_SIGN} cheapest now: ${cheapest.title}.` +
      (cheapest.id === cheapestKept.id ? "" : ` If forks should see the parent's last turn: ${cheapestKept.title}.`),
  ];
  if (facts === undefined) {
    found.push(
      `The prices of ${model} are unknown, so costs are in tokens only, with the usual multipliers and no minimum length.`,
    );
  } else if (prefix + tail < facts.minimumPrefix) {
    found.push(`${model} caches nothing shorter than ${formatTokens(facts.minimumPrefix)} tokens.`);
  }
  if (facts?.earlierThinking === "last-turn") {
    found.push(`${model} drops earlier thinking at new user text: do not trim inside a tool loop with thinking.`);
  }
  return [...found, ...tierNote(report), ...peakNote(report)];
};

export const costAsText = (report: CostReport, colour: boolean): string => {
  const { fanOut, model } = report;
  const forks = fanOut.forks === 1 ? "1 fork" : `${formatTokens(fanOut.forks)} forks`;
  const title = `${forks} of a ${fanOut.warm ? "warm" : "cold"} ${formatTokens(fanOut.prefix)}-token prefix on ${model}`;
  const sentences = [
    ...notes(report),
    `Launch: ${report.launch.reason}.`,
    ...(report.breakEven ? [breakEvenLine(report.breakEven)] : []),
    ...(report.stored ? [storedLine(report.stored)] : []),
    keepAliveLine(report.keepAlive),
    ...(report.pause ? [`Lifetime if the parent pauses once for 5 to 60 minutes: ${report.pause.reason}.`] : []),
  ];
  const head = "Input of first requests, in uncached tokens.";
  const fits = widthOf(`${head} ${terms(report)}`) <= (terminalColumns() ?? Number.POSITIVE_INFINITY);
  const explained = prose(terms(report), { style: "faint", colour });
  return (
    `${prose(title, { style: "bold", colour })}\n` +
    `${fits ? `${head} ` : `${prose(head, {})}\n`}${explained}\n\n` +
    `${planTable(report, colour)}\n` +
    `${sentences.map((sentence) => `${prose(sentence, {})}\n`).join("")}`
  );
};

/** `null` where there is no figure: no money without a price, no turns if a fork is always cheaper. */
export const costAsJson = (report: CostReport): string => {
  const { fanOut, model, plans, cheapest, cheapestKept, launch, keepAlive, pause } = report;
  const { facts, ...asked } = fanOut;
  const bill = ({ units, money }: LaunchPlan["total"]) => ({ units, money: money ?? null });
  const answer = {
    model,
    priced: facts !== undefined,
    ...asked,
    multipliers: multipliersOf(facts, fanOut.prefix + fanOut.tail),
    plans: plans.map(({ children, parentNext, total, ...plan }) => ({
      ...plan,
      children: bill(children),
      parentNext: bill(parentNext),
      total: bill(total),
    })),
    cheapest: cheapest.id,
    cheapestKept: cheapestKept.id,
    stored: report.stored ?? null,
    launch: { ...launch, atOnce: bill(launch.atOnce), leaderFirst: bill(launch.leaderFirst) },
    breakEven: report.breakEven ? { turns: null, ...report.breakEven } : null,
    keepAlive,
    pause: pause ?? null,
  };
  return jsonText(answer);
};
