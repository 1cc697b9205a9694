/** How an x-ray is laid out: the cause first, then the very letters, then what each part cost.
 *  Invariant: everything that comes from a body is shown as letters; money appears only where the model has prices.
 *  Elsewhere: the figures (@prefork/wire), pointing at letters (xray-place.ts). */

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
import { inLine, placesAsText } from "./xray-place.ts";

const FORMATS: Readonly<Record<Xray["protocol"], string>> = {
  "anthropic-messages": "Anthropic Messages",
  "openai-responses": "OpenAI Responses",
  "openai-chat": "OpenAI Chat",
  gemini: "Gemini",
};

type Names = readonly [first: string, second: string];

/** Files without the folders that all of them are in. */
const shortened = (names: readonly string[]): readonly string[] => {
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
  const [first = "", second = ""] = shortened(given);
  const paint = painter(colour);
  const title = `${inLine(second)} against ${inLine(first)}`;
  return [
    `${paint("bold", title)}\n${FORMATS[xray.protocol]}, ${inLine(xray.model) || "no model"}\n\n`,
    findings(xray, [first, second], colour),
    "\n",
    segmentTable(xray, colour),
    ...xray.notes.map((note) => `Note: ${inLine(note)}.\n`),
  ].join("");
};

const lossText = ({ tokens, usd }: XrayLoss, estimated: boolean): string =>
  `${estimated ? "about " : ""}${formatTokens(tokens)} tokens${usd === undefined ? "" : ` (${formatMoney(usd)})`}`;

/** The cause, where it is, and how to mend it. */
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
  const parts = divergence ? "they part here:" : "one is the beginning of the other.";
  return [
    `${head}\n${capital(inLine(why))}${isLost ? "." : `; ${parts}`}\n`,
    ...(divergence && isInBodies(divergence) ? [`\n${placesAsText(divergence, names, colour)}`] : []),
    ...(fix && isLost ? [`\nTo fix it: ${inLine(fix)}.\n`] : []),
    ...also.map((other) => `Also: ${inLine(xrayCauseSentence(other))}.\n`),
  ].join("");
};

/** Betas are in no body. */
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
  const names = shortened(given);
  const { steps, lineages, families, lost } = chain;
  const paint = painter(colour);
  const lineageText = `${lineages.length} ${lineages.length === 1 ? "lineage" : "lineages"}`;
  const title = `${steps.length} requests, ${lineageText}`;
  const total =
    lost.tokens === 0
      ? "Nothing lost."
      : `Lost in all: ${formatTokens(lost.tokens)} tokens${lost.usd === undefined ? "" : ` (${formatMoney(lost.usd)})`}.`;
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
    ...(few === 0 ? [] : [`Negligible, and not told one by one: ${few} of a few tokens each.\n`]),
    ...steps.map((step) => lossOf(step, names, colour)),
  ].join("");
};

const RELATIONS: Readonly<Record<XrayStep["relation"], string>> = {
  starts: "starts",
  repeats: "repeats",
  extends: "goes on from",
  changes: "changes",
  forks: "forks",
  returns: "goes back in",
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
          inLine(names[index] ?? ""),
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
  return `\n${painter(colour)("bold", `#${index + 1} against #${(against ?? 0) + 1}`)}\n${findings(xray, pair, colour)}`;
};
