/** /cost, /cache, /explain: what was paid, what was read from the cache, and why not more.
 *  Invariant: figures come from the provider's own answers in the journal; what the next request costs is calculated from the
 *  published prices and shown as "about"; without a price, tokens are shown.
 *  Elsewhere: the figures (@prefork/runtime/observe), today's sum (../spent-today.ts). */

import { explainFamily, readFamily } from "@prefork/runtime/observe";
import { childTtl, costOf, modelFacts, noUsage } from "@prefork/wire";
import { formatMoney, formatTokens } from "../../numbers.ts";
import type { TerminalContext } from "../context.ts";
import { spentToday } from "../spent-today.ts";
import { type Child, type State, safeLine } from "../state/index.ts";
import { lengthText } from "./age.ts";
import { type ArgumentChoice, counted, openPage, type SlashCommand, showCli, storeOf } from "./command.ts";

const requireSession = ({ state }: TerminalContext): string => {
  const { session } = state();
  if (session === undefined) throw new Error("The session is not open yet.");
  return session;
};

const percentText = (part: number, whole: number): string =>
  whole === 0 ? "–" : `${Math.floor((part / whole) * 1000) / 10} %`;

// --- /cost ---------------------------------------------------------------------------------------------------------------

const ALTERNATIVES = {
  "no-fork": "one agent that does everything itself",
  "no-cache": "the same requests without a cache",
  "cold-at-once": "fresh sub-agents with the same context",
} as const;

const labelOf = (agent: string, { children }: State): string =>
  agent === "main" ? "main agent" : (children.get(agent)?.label ?? safeLine(agent));

const MAX_AGENTS = 50;

const costText = async (context: TerminalContext): Promise<string> => {
  const state = context.state();
  const family = await readFamily(storeOf(context), requireSession(context));
  const { total, agents, instead, misses } = explainFamily(family);
  const today = await spentToday(context.io, Date.now());
  if (total.requests === 0)
    return `No request was sent in this session yet.\n\nToday, all sessions: ${formatMoney(today)}`;
  const money = (usd: number | undefined): string => (usd === undefined ? "no price known" : formatMoney(usd));
  const prompt = total.usage.read + total.usage.plain + Object.values(total.usage.written).reduce((a, b) => a + b, 0);
  const rows = agents.toSorted((one, other) => (other.usd ?? 0) - (one.usd ?? 0));
  const lost = misses.reduce((sum, { usd = 0 }) => sum + usd, 0);
  return [
    "## This session",
    `**${money(total.usd)}** for ${counted(total.requests, "request")}: ${formatTokens(prompt)} tokens of input, ${percentText(total.usage.read, prompt)} of them read from the cache, and ${formatTokens(total.usage.output)} of output.`,
    "",
    `Today, all sessions: **${formatMoney(today)}**`,
    "",
    "## By agent",
    ...rows
      .slice(0, MAX_AGENTS)
      .map(
        ({ agent, requests, usd }) => `- ${labelOf(agent, state)}: **${money(usd)}**, ${counted(requests, "request")}`,
      ),
    ...(rows.length > MAX_AGENTS ? [`- and ${rows.length - MAX_AGENTS} more`] : []),
    "",
    "## What else it could have cost",
    ...instead.map(({ id, usd, saved }) => {
      const compared =
        saved.usd === undefined
          ? ""
          : saved.usd >= 0
            ? ` (${formatMoney(saved.usd)} more)`
            : ` (${formatMoney(-saved.usd)} less)`;
      return `- ${ALTERNATIVES[id]}: ${money(usd)}${compared}`;
    }),
    "",
    misses.length === 0
      ? "No cache miss."
      : `${counted(misses.length, "cache miss", "cache misses")}${lost > 0 ? `, which cost ${formatMoney(lost)}` : ""}: /explain shows each one.`,
  ].join("\n");
};

const cost: SlashCommand = {
  name: "cost",
  summary: "the bill: this session, today, each agent, and what alternatives would have cost",
  group: "Cost and cache",
  run: async (_args, context) => openPage(context, { title: "Cost", text: await costText(context), isMarkdown: true }),
};

// --- /cache --------------------------------------------------------------------------------------------------------------

/** What the input of the next request costs: with everything read from the cache, and with everything written again. */
export const nextRequestCost = (
  model: string,
  prompt: number,
): { readonly warm: number; readonly cold: number } | undefined => {
  const facts = modelFacts(model);
  const warm = costOf({ ...noUsage, read: prompt }, facts)?.total;
  const cold = costOf({ ...noUsage, written: { [childTtl(facts)]: prompt } }, facts)?.total;
  return warm === undefined || cold === undefined ? undefined : { warm, cold };
};

type Warmth = { readonly name: string; readonly cache: Child["cache"] };

const warmthLines = ({ name, cache }: Warmth, { model, now }: State): readonly string[] => {
  if (!cache || cache.prompt === 0) return [`- **${name}**: no request yet`];
  const { read, prompt, warmUntil } = cache;
  const left = warmUntil === undefined ? undefined : warmUntil - now;
  const warm =
    left === undefined
      ? ""
      : left > 0
        ? `, warm for ${lengthText(left)}`
        : ", expired: the next request writes it again";
  const next = nextRequestCost(model, prompt);
  const price = next
    ? ` Next request: about ${formatMoney(next.warm)} warm, ${formatMoney(next.cold)} cold.`
    : ` The price of ${model} is unknown.`;
  return [
    `- **${name}**: ${percentText(read, prompt)} of ${formatTokens(prompt)} tokens read from the cache${warm}.${price}`,
  ];
};

const cacheText = async (context: TerminalContext): Promise<string> => {
  const state = { ...context.state(), now: Date.now() };
  const running = [...state.children.values()].filter((child) => child.state !== "ended");
  const family = await readFamily(storeOf(context), requireSession(context));
  const { total, misses } = explainFamily(family);
  const { read, plain, written } = total.usage;
  const prompt = read + plain + Object.values(written).reduce((sum, tokens) => sum + tokens, 0);
  const missLines = misses.slice(-20).map(({ agent, turn, lost, usd, why, advice }) => {
    const where = turn === 0 ? "a side request" : `turn ${turn}`;
    return `- ${labelOf(agent, state)}, ${where}: ${formatTokens(lost)} tokens${usd === undefined ? "" : ` (${formatMoney(usd)})`}. ${safeLine(why)}. To avoid it: ${safeLine(advice)}.`;
  });
  return [
    "## Now",
    ...warmthLines({ name: "main agent", cache: state.cache }, state),
    ...running.flatMap(({ label, cache }) => warmthLines({ name: label, cache }, state)),
    "",
    "## The whole session",
    total.requests === 0
      ? "No request was sent yet."
      : `${counted(total.requests, "request")}: ${percentText(read, prompt)} of ${formatTokens(prompt)} tokens of input were read from the cache.`,
    "",
    "## What was missed",
    ...(missLines.length === 0 ? ["Nothing: everything that was written to the cache was read."] : missLines),
  ].join("\n");
};

const cache: SlashCommand = {
  name: "cache",
  summary: "what is warm and until when, what the next request costs, and what was missed",
  group: "Cost and cache",
  run: async (_args, context) =>
    openPage(context, { title: "Cache", text: await cacheText(context), isMarkdown: true }),
};

// --- /explain ------------------------------------------------------------------------------------------------------------

const childChoices = ({ children }: State): readonly ArgumentChoice[] =>
  [...children.values()].map(({ id, label }) => ({ value: id, about: label }));

const explain: SlashCommand = {
  name: "explain",
  args: "[fork]",
  summary: "every request: what it read, wrote and cost, and why",
  group: "Cost and cache",
  complete: ({ state }) => childChoices(state()),
  run: (args, context) =>
    showCli(context, "Requests", ["explain", requireSession(context), ...args.split(/\s+/).filter(Boolean)]),
};

export const costCommands: readonly SlashCommand[] = [cost, cache, explain];
