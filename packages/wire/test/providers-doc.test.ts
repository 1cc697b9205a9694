/** The tables of docs/providers.md are what the code says: a figure that changes here must change there. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { knownModels, LIFETIME_MS, type ModelFacts, type Prices, profiles, type Ttl } from "../src/index.ts";

const page = readFileSync(new URL("../../../docs/providers.md", import.meta.url), "utf8");

/** The table between two comments of this name, against the one that the code gives: the message has it ready to paste. */
const assertTable = (name: string, table: string): void => {
  const [, shown] = new RegExp(`<!-- ${name} -->\\n([^]*?)\\n<!-- /${name} -->`).exec(page) ?? [];
  assert.ok(shown === table, `docs/providers.md: the table between the comments "${name}" should be\n${table}`);
};

const tableOf = (columns: readonly string[], rows: readonly (readonly string[])[]): string =>
  [columns, columns.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");

const count = (tokens: number): string => tokens.toLocaleString("en-US");

// --- models ----------------------------------------------------------------------------------------------------------

const writes = ({ write }: Prices): string => {
  const sold = Object.entries(write).map(([ttl, price]) => `${ttl} ${price}`);
  return sold.length > 0 ? sold.join(" · ") : "no fee";
};

const apart = ({ tiers = [], fast, storage, peak, unmarkedRead }: ModelFacts): string => {
  const longer = tiers.map(
    ({ above, prices }) =>
      `above ${count(above)}: ${prices.input} / ${writes(prices)} / ${prices.read} / ${prices.output}`,
  );
  const quick = fast ? [`fast: ${fast.input} in, ${fast.output} out`] : [];
  const others = [
    ...(peak
      ? [`at peak hours: ${peak.prices.input} / ${writes(peak.prices)} / ${peak.prices.read} / ${peak.prices.output}`]
      : []),
    ...(unmarkedRead === undefined ? [] : [`read without a marker: ${unmarkedRead}`]),
    ...(storage === undefined ? [] : [`stored: ${storage} an hour`]),
  ];
  return [...longer, ...quick, ...others].join("; ") || "–";
};

const modelRow = (facts: ModelFacts): readonly string[] => {
  const { input, read, output } = facts.prices;
  const thinking = facts.earlierThinking === "keep-all" ? "kept" : "stripped";
  const figures = [input, writes(facts.prices), read, output].map(String);
  return [`\`${facts.id}\``, ...figures, count(facts.minimumPrefix), thinking, apart(facts)];
};

test("every model is on the page with its prices, its shortest prefix and its special prices", () => {
  const columns = ["model", "input", "write", "read", "output", "shortest prefix", "earlier thinking", "apart"];
  assertTable("models", tableOf(columns, [...knownModels.values()].map(modelRow)));
});

// --- endpoints -------------------------------------------------------------------------------------------------------

const READABLE = { "at-once": "at once", "first-event": "at the first event", complete: "when the answer is complete" };

/** A model that has markers, where any has. */
const MARKED: Readonly<Record<string, string>> = {
  openai: "gpt-6-sol",
  "openai-chat": "gpt-6-sol",
  minimax: "MiniMax-M2.7",
  openrouter: "anthropic/claude-sonnet-5",
};

const LIFETIMES = Object.keys(LIFETIME_MS) as Ttl[];

/** What asks for an entry: nothing, one spelling for every lifetime, or one for each. */
const markersOf = (marker: (ttl: Ttl, model: string) => string, model: string): string => {
  const spelled = [...new Set(LIFETIMES.map((ttl) => marker(ttl, model)))];
  if (spelled[0] === "") return "none";
  const [, name = ""] = /^,"(\w+)"/.exec(spelled[0] ?? "") ?? [];
  return spelled.length === 1 ? `\`${name}\`, one lifetime` : `\`${name}\`, by lifetime`;
};

test("every endpoint is on the page with its address, its markers and when a sibling can read", () => {
  const rows = [...profiles.values()].map(({ name, baseUrl, protocol }) => {
    const markers = markersOf(protocol.marker, MARKED[name] ?? "");
    return [`\`${name}\``, `\`${baseUrl}\``, markers, READABLE[protocol.readable]];
  });
  const columns = ["profile", "base URL", "what asks for an entry", "a sibling can read it"];
  assertTable("endpoints", tableOf(columns, rows));
});
