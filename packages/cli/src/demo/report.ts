/** Formats the demo: one row per request, then the family's bill next to the cost of the alternatives.
 *  Invariant: text and JSON state the same figures; those of requests come from the simulator's ledger.
 *  Elsewhere: the run itself (run.ts). */

import { type Bill, costOf, type LaunchPlan, modelFacts, type PlanId } from "@prefork/wire";
import { jsonText } from "../lines.ts";
import { formatMoney, formatTokens, moneyDecimals } from "../numbers.ts";
import { prose, type Row, renderTable } from "../table.ts";
import type { DemoResult, DemoRow } from "./run.ts";

/** Input only, because the output costs the same under every plan. */
type Compared = { readonly id: PlanId; readonly title: string; readonly bill: Bill };

export type DemoBills = {
  readonly family: Bill;
  readonly cheapest: Compared;
  /** What the family paid, as a multiple of the cheapest plan for the same blocks. */
  readonly overCheapest: number;
  readonly others: readonly Compared[];
};

const written = ({ ledger }: DemoRow): number => ledger.written["5m"] + ledger.written["1h"];

/** Input in dollars; the ledger also bills the output, which no plan changes. */
const inputMoney = ({ ledger }: DemoRow): number | undefined => {
  const { plain, read, written } = ledger;
  return costOf({ plain, read, written, output: 0 }, modelFacts(ledger.model))?.total;
};

const inputUnitsOf = ({ ledger }: DemoRow): number => ledger.billed.inputUnits ?? 0;

export const billsOf = (result: DemoResult): DemoBills => {
  const { plans } = result.plans;
  const rows = [...result.children, result.parentNext];
  const units = rows.reduce((sum, row) => sum + inputUnitsOf(row), 0);
  const money = rows.reduce((sum, row) => sum + (inputMoney(row) ?? Number.NaN), 0);
  const planned = (id: PlanId): Compared => {
    const { title, total } = plans.find((plan) => plan.id === id) as LaunchPlan;
    return { id, title, bill: total };
  };
  const cheapest = planned(cheapestFor(result));
  return {
    family: { units, ...(Number.isNaN(money) ? {} : { money }) },
    cheapest,
    overCheapest: units / cheapest.bill.units,
    others: [planned("cold-at-once"), planned("no-cache")],
  };
};

/** The cheapest plan that sends the same blocks. Trimming changes what forks see, so it is compared only with itself. */
const cheapestFor = ({ options, plans }: DemoResult): PlanId => {
  if (options.inFlight === "keep") return plans.cheapestKept.id;
  return options.cold ? "trim-cold-leader-first" : "trim";
};

export const demoAsJson = (result: DemoResult): string => {
  const row = ({ label, inheritable, ledger }: DemoRow) => ({ label, inheritable, ...ledger });
  const { children, parentNext, plans: _, ...rest } = result;
  return jsonText({ ...rest, children: children.map(row), parentNext: row(parentNext), bills: billsOf(result) });
};

const title = ({ options, prefix }: DemoResult): string =>
  `${options.forks} ${options.forks === 1 ? "fork" : "forks"} of a ${formatTokens(prefix)}-token parent, ` +
  `${options.cold ? "cold" : "warm"}, ${options.model} (simulated)`;

export const demoAsText = (result: DemoResult, colour: boolean): string => {
  const bills = billsOf(result);
  return [
    "",
    prose(title(result), { style: "bold", colour }),
    prose(
      `P ${formatTokens(result.prefix)} inherited · S ${formatTokens(result.tail)} shared tail · D ${formatTokens(result.directive)} each fork's own`,
      {},
    ),
    "",
    requestTable(result, colour),
    prose(`Decided before sending, from estimates: ${result.launch.reason}.`, { style: "faint", colour }),
    "",
    billTable(result, bills, colour),
    prose(`The family paid ${bills.overCheapest.toFixed(3)} × the cheapest plan for the same blocks.`, {}),
    prose("No model was called: a simulator on loopback caches, expires and bills by the provider's rules.", {
      style: "faint",
      colour,
    }),
    "",
  ].join("\n");
};

const requestTable = (result: DemoResult, colour: boolean): string => {
  const rows = [...result.children, result.parentNext];
  const decimals = moneyDecimals(rows.map((row) => inputMoney(row) ?? 0));
  const cells = (row: DemoRow): readonly string[] => {
    const money = inputMoney(row);
    return [
      row.label,
      formatTokens(row.inheritable),
      formatTokens(row.ledger.read),
      formatTokens(written(row)),
      formatTokens(row.ledger.plain),
      money === undefined ? "–" : formatMoney(money, decimals),
    ];
  };
  return renderTable({
    columns: [
      { title: "request" },
      { title: "expected read", align: "right" },
      { title: "read", align: "right" },
      { title: "written", align: "right" },
      { title: "uncached", align: "right" },
      { title: "input cost", align: "right" },
    ],
    rows: selectRows(rows).map((row): Row => {
      if (row === "…") return { cells: ["…"], style: "faint" };
      const missed = row.ledger.read < 0.995 * row.inheritable;
      return { cells: cells(row), ...(missed ? { style: "bad" } : {}) };
    }),
    colour,
  });
};

const MOST_ROWS = 12;

/** Fifty equal rows say no more than a few, so only the first and the last ones are shown. */
const selectRows = (rows: readonly DemoRow[]): readonly (DemoRow | "…")[] =>
  rows.length <= MOST_ROWS + 1 ? rows : [...rows.slice(0, MOST_ROWS - 4), "…", ...rows.slice(-3)];

const billTable = (result: DemoResult, bills: DemoBills, colour: boolean): string => {
  const { family, cheapest, others } = bills;
  const named = [
    { title: "this family", bill: family, mark: true },
    { title: `cheapest plan (${cheapest.title})`, bill: cheapest.bill, mark: false },
    ...others.map(({ title, bill }) => ({ title, bill, mark: false })),
  ];
  const decimals = moneyDecimals(named.map(({ bill }) => bill.money ?? 0));
  return renderTable({
    columns: [
      { title: `${result.options.forks} + the parent's next request` },
      { title: "input, in uncached tokens", align: "right" },
      { title: "cost", align: "right" },
      { title: "compared", align: "right" },
    ],
    rows: named.map(
      ({ title, bill, mark }): Row => ({
        cells: [
          title,
          formatTokens(Math.round(bill.units)),
          bill.money === undefined ? "–" : formatMoney(bill.money, decimals),
          `${(bill.units / family.units).toFixed(2)} ×`,
        ],
        ...(mark ? { mark: "best", style: "good" } : {}),
      }),
    ),
    colour,
  });
};
