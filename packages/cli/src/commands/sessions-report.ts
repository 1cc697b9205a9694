/** Layout of `prefork sessions`: the list, one session in full, and what a search found.
 *  Invariant: text from a journal is made safe for the terminal; numbers are shown as people read them.
 *  Elsewhere: what the commands do (sessions.ts), tables (../table.ts). */

import type { JournalProblem, SearchMatch, SessionPreview, SessionReading } from "@prefork/runtime/observe";
import { promptTokens } from "@prefork/wire";
import { formatMoney, formatTokens, moneyDecimals } from "../numbers.ts";
import { painter, renderTable } from "../table.ts";
import { visible } from "../visible.ts";
import { inLine, outputWidth } from "./tasks-store.ts";

type ListLayout = { readonly folders: boolean; readonly colour: boolean; readonly now: number };

export const sessionTable = (sessions: readonly SessionPreview[], { folders, colour, now }: ListLayout): string => {
  const decimals = moneyDecimals(sessions.map(({ usdWithForks }) => usdWithForks));
  return renderTable({
    colour,
    columns: [
      { title: "id" },
      { title: "last used" },
      { title: "turns", align: "right", dispensable: 2 },
      { title: "forks", align: "right", dispensable: 3 },
      { title: "cost", align: "right", dispensable: 4 },
      { title: "size", align: "right", dispensable: 1 },
      ...(folders ? [{ title: "folder" }] : []),
      { title: "title" },
    ],
    rows: sessions.map((session) => ({
      cells: [
        session.id,
        `${formatAge(now - session.usedAt)}${session.holder ? ` (open in process ${session.holder.pid})` : ""}`,
        String(session.turns),
        String(session.forks),
        formatMoney(session.usdWithForks, decimals),
        formatSize(session.bytes),
        ...(folders ? [inLine(session.cwd)] : []),
        inLine(session.title),
      ],
    })),
  });
};

const AGES: readonly (readonly [ms: number, unit: string])[] = [
  [365 * 86_400_000, "year"],
  [30 * 86_400_000, "month"],
  [7 * 86_400_000, "week"],
  [86_400_000, "day"],
  [3_600_000, "hour"],
  [60_000, "minute"],
];

/** 7,300,000 → "2 hours ago". A clock that was set back gives no negative age. */
export const formatAge = (ms: number): string => {
  const [length, unit] = AGES.find(([least]) => ms >= least) ?? [];
  if (length === undefined) return "just now";
  const count = Math.floor(ms / length);
  return `${count} ${unit}${count === 1 ? "" : "s"} ago`;
};

export const formatTime = (ms: number): string => new Date(ms).toISOString().slice(0, 16).replace("T", " ");

const formatSize = (bytes: number): string =>
  bytes < 1_000_000 ? `${Math.ceil(bytes / 1_000)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;

// --- one session -------------------------------------------------------------------------------------------------------

const describeDamage = ({ line, detail }: JournalProblem): string => `line ${line}: ${detail}`;

/** What `sessions show --json` prints. `preview` is missing if the session was deleted meanwhile. */
export const factsOf = ({ replayed }: SessionReading, id: string, preview?: SessionPreview) => {
  const { opened, turns, usage, usd, lastAt, openEpoch: began, problems, openCalls, forks } = replayed;
  return {
    id,
    title: preview?.title ?? "",
    folder: opened?.cwd ?? "",
    model: began?.head.model ?? opened?.model ?? "",
    lastUsed: formatTime(lastAt),
    epoch: began?.epoch ?? 0,
    turns,
    promptTokens: promptTokens(usage),
    readFromCache: usage.read,
    outputTokens: usage.output,
    usd,
    usdWithForks: preview?.usdWithForks ?? usd,
    openCalls: openCalls.length,
    forks: forks.map(({ session }) => session),
    problems: problems.map(describeDamage),
    lastAnswer: preview?.lastAnswer ?? "",
  };
};

export const factsAsText = (facts: ReturnType<typeof factsOf>): string => {
  const { lastAnswer, ...listed } = facts;
  const shown = {
    ...listed,
    promptTokens: formatTokens(facts.promptTokens),
    readFromCache: formatTokens(facts.readFromCache),
    outputTokens: formatTokens(facts.outputTokens),
    usd: formatMoney(facts.usd),
    usdWithForks: formatMoney(facts.usdWithForks),
  };
  const lines = Object.entries(shown).map(
    ([name, value]) =>
      `${name.padEnd(14)} ${inLine(Array.isArray(value) ? value.join("; ") || "none" : String(value))}\n`,
  );
  const answer =
    lastAnswer === "" ? [] : ["\nLast answer:\n", ...lastAnswer.split("\n").map((line) => `  ${visible(line)}\n`)];
  return [...lines, ...answer].join("");
};

// --- a search ----------------------------------------------------------------------------------------------------------

type MatchLayout = { readonly words: readonly string[]; readonly colour: boolean; readonly now: number };

export const matchAsText = ({ session, excerpts }: SearchMatch, { words, colour, now }: MatchLayout): string => {
  const paint = painter(colour);
  const heading = `${session.id}  ${formatAge(now - session.usedAt)}  ${inLine(session.title)}`;
  const lines = excerpts.map(({ from, text }) => {
    const label = from === "prompt" ? "you:   " : "agent: ";
    return `  ${label}${emphasize(inLine(text, outputWidth() - 9), words, (word) => paint("bold", word))}\n`;
  });
  return `${paint("bold", heading)}\n${lines.join("")}`;
};

const emphasize = (text: string, words: readonly string[], paint: (word: string) => string): string => {
  const escaped = words.filter((word) => word !== "").map((word) => word.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"));
  return escaped.length === 0 ? text : text.replace(new RegExp(escaped.join("|"), "giu"), paint);
};
