/** Formats an x-ray: the miss reason first, then the exact difference, then the cost of each part.
 *  Invariant: text from a body cannot control the terminal; money appears only if the model has prices.
 *  Elsewhere: the figures (@prefork/xray), excerpts with marks (xray-excerpt.ts). */

import {
  isNegligibleLoss,
  type Xray,
  type XrayChain,
  type XrayDivergence,
  type XrayLoss,
  type XrayStep,
  xrayCauseSentence,
  xrayCauseWords,
} from "@prefork/xray";
import { formatMoney, formatTokens } from "../numbers.ts";
import { painter, type Row, renderTable } from "../table.ts";
import { divergenceAsText, escapeLine } from "./xray-excerpt.ts";

const FORMATS: Readonly<Record<Xray["protocol"], string>> = {
  "anthropic-messages": "Anthropic Messages",
  "openai-responses": "OpenAI Responses",
  "openai-chat": "OpenAI Chat",
  gemini: "Gemini",
};

type Names = readonly [first: string, second: string];

/** File names without the folders that they all share. */
const withoutCommonFolder = (names: readonly string[]): readonly string[] => {
  const folders = (names[0] ?? "").split("/").slice(0, -1);
  const shared = folders.findLastIndex((_, index) =>
    names.every((name) => name.startsWith(`${folders.slice(0, index + 1).join("/")}/`)),
  );
  return names.map((name) =>
    name
      .split("/")
      .slice(shared + 1)
      .join("/"),
  );
};

export const pairAsText = (xray: Xray, given: Names, colour: boolean): string => {
  const [first = "", second = ""] = withoutCommonFolder(given);
  const paint = painter(colour);
  const title = `${escapeLine(second)} compared with ${escapeLine(first)}`;
  return [
    `${paint("bold", title)}\n${FORMATS[xray.protocol]}, ${escapeLine(xray.model) || "no model"}\n\n`,
    findings(xray, [first, second], colour),
    "\n",
    segmentTable(xray, colour),
    ...xray.notes.map((note) => `Note: ${escapeLine(note)}.\n`),
  ].join("");
};

const lossText = ({ tokens, usd }: XrayLoss, estimated: boolean): string =>
  `${estimated ? "about " : ""}${formatTokens(tokens)} tokens${usd === undefined ? "" : ` (${formatMoney(usd)})`}`;

/** The miss reason, where it is, and how to fix it. */
const findings = (xray: Xray, names: Names, colour: boolean): string => {
  const { cause, lost, tokens, why, fix, also, divergence } = xray;
  const paint = painter(colour);
  const isLost = lost.tokens > 0;
  const head = isLost
    ? paint(
        "bad",
        `${xrayCauseWords(cause)}: ${lossText(lost, tokens.estimated)} paid for again${isNegligibleLoss(lost) ? ", which is negligible" : ""}`,
      )
    : paint("good", xrayCauseWords(cause));
  const parts = divergence ? "they diverge here:" : "one is the beginning of the other.";
  return [
    `${head}\n${capital(escapeLine(why))}${isLost ? "." : `; ${parts}`}\n`,
    ...(divergence && isInBodies(divergence) ? [`\n${divergenceAsText(divergence, names, colour)}`] : []),
    ...(fix && isLost ? [`\nTo fix it: ${escapeLine(fix)}.\n`] : []),
    ...also.map((other) => `Also: ${escapeLine(xrayCauseSentence(other))}.\n`),
  ].join("");
};

/** Beta headers are not part of a body. */
const isInBodies = ({ a, b }: XrayDivergence): boolean => a.length > 0 || b.length > 0;

const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

const segmentTable = ({ segments, tokens }: Xray, colour: boolean): string => {
  const right = (title: string) => ({ title, align: "right" }) as const;
  const rows = segments.map(({ level, a, b, shared, read }) => [level, a, b, shared, read] as const);
  const sum = (pick: (segment: Xray["segments"][number]) => number): number =>
    segments.reduce((total, segment) => total + pick(segment), 0);
  const total = ["all", tokens.a, tokens.b, sum(({ shared }) => shared), tokens.read] as const;
  return renderTable({
    columns: [
      { title: tokens.estimated ? "tokens, estimated" : "tokens" },
      ...["first", "second", "in common", "read"].map(right),
    ],
    rows: [...rows, total].map(([name, ...figures]): Row => ({ cells: [name, ...figures.map(formatTokens)] })),
    colour,
  });
};

// --- more than two ---------------------------------------------------------------------------------------------------

export const chainAsText = (chain: XrayChain, given: readonly string[], colour: boolean): string => {
  const names = withoutCommonFolder(given);
  const { steps, lineages, families, lost } = chain;
  const paint = painter(colour);
  const lineageText = `${lineages.length} ${lineages.length === 1 ? "lineage" : "lineages"}`;
  const title = `${steps.length} requests, ${lineageText}`;
  const total =
    lost.tokens === 0
      ? "Nothing lost."
      : `Lost in total: ${formatTokens(lost.tokens)} tokens${lost.usd === undefined ? "" : ` (${formatMoney(lost.usd)})`}.`;
  const few = steps.filter(({ xray }) => xray && xray.lost.tokens > 0 && isNegligibleLoss(xray.lost)).length;
  return [
    `${paint("bold", title)}\n\n`,
    stepTable(steps, names, colour),
    ...families.map(
      ({ from, members }) =>
        `${members.map((member) => `#${member + 1}`).join(", ")} ` +
        `${members.includes(from) ? "name one stored entry" : `grew from #${from + 1}`}.\n`,
    ),
    `${total}\n`,
    ...(few === 0 ? [] : [`Not listed: ${few} negligible losses of a few tokens each.\n`]),
    ...steps.map((step) => lossOf(step, names, colour)),
  ].join("");
};

const RELATIONS: Readonly<Record<XrayStep["relation"], string>> = {
  starts: "starts",
  repeats: "repeats",
  extends: "continues",
  changes: "changes",
  forks: "forks",
  returns: "rewinds",
};

const stepTable = (steps: readonly XrayStep[], names: readonly string[], colour: boolean): string => {
  const right = (title: string) => ({ title, align: "right" }) as const;
  return renderTable({
    columns: [
      right("#"),
      { title: "request" },
      right("lineage"),
      { title: "how" },
      right("prompt"),
      right("read"),
      right("lost"),
      { title: "why" },
    ],
    rows: steps.map(({ index, relation, against, lineage, prompt, xray }): Row => {
      const isLost = xray !== undefined && xray.lost.tokens > 0;
      return {
        cells: [
          String(index + 1),
          escapeLine(names[index] ?? ""),
          String(lineage + 1),
          relation === "starts" || against === undefined
            ? RELATIONS[relation]
            : `${RELATIONS[relation]} #${against + 1}`,
          formatTokens(prompt),
          formatTokens(xray?.tokens.read ?? 0),
          formatTokens(xray?.lost.tokens ?? 0),
          isLost ? xrayCauseWords(xray.cause) : "",
        ],
        ...(isLost ? { style: "bad" } : {}),
      };
    }),
    colour,
  });
};

const lossOf = ({ index, against, xray }: XrayStep, names: readonly string[], colour: boolean): string => {
  if (!xray || xray.lost.tokens === 0 || isNegligibleLoss(xray.lost)) return "";
  const pair: Names = [names[against ?? 0] ?? "", names[index] ?? ""];
  return `\n${painter(colour)("bold", `#${index + 1} compared with #${(against ?? 0) + 1}`)}\n${findings(xray, pair, colour)}`;
};
