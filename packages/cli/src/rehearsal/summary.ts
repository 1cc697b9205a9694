/** What is written when a conversation is to be summed up, and what is read from it when it goes on?
 *  Invariant: reading gives back what was written: the prompt as it was typed, and each task that was done with what came
 *  of it. So a list goes on after a summary where it was, and nothing is done twice.
 *  Elsewhere: when a conversation is summed up, and what stands around the summary (context of @prefork/runtime). */

import type { Next } from "./replay.ts";
import { accountLines, REHEARSAL_LABEL } from "./report.ts";
import { excerptOf, plural } from "./results.ts";
import type { Task } from "./tasks.ts";

/** What a summary says of the exchange that was under way. */
export type Before = {
  readonly prompt: string;
  /** One text for each task that was done. */
  readonly done: readonly string[];
  /** Lines about exchanges before that one. */
  readonly earlier: readonly string[];
};

export type Rehearsed = {
  readonly prompt: string;
  readonly tasks: readonly Task[];
  readonly before: Before;
  readonly next: Next;
  readonly notifications: readonly string[];
};

/** Names the tags to answer in, and wants no tools: whoever words it, that is what it must say. */
export const isSummaryDirective = (text: string): boolean =>
  /<summary>/i.test(text) && /<\/summary>/i.test(text) && /\b(?:no|not|without)\b[^.]{0,30}\btools?\b/i.test(text);

const MOST_EARLIER = 20;

const earlierLines = ({ prompt, tasks, next, before }: Rehearsed): readonly string[] => {
  const changed = next.done.flatMap(({ outcomes }) => outcomes.flatMap((outcome) => outcome.changed));
  const [title = ""] = excerptOf([prompt.replaceAll(/\s+/g, " ").trim()]);
  const done = before.done.length + next.done.length;
  const files = changed.length === 0 ? "" : `; changed ${[...new Set(changed)].join(", ")}`;
  return [...before.earlier, `- "${title}": ${done} of ${plural(tasks.length, "task")} done${files}`];
};

export const summaryText = (rehearsed: readonly Rehearsed[]): string => {
  const told = rehearsed.filter(({ prompt }) => prompt !== "");
  const last = told.at(-1);
  const earlier = [...told.slice(0, -1).flatMap(earlierLines), ...(last?.before.earlier ?? [])].slice(-MOST_EARLIER);
  const lines = last === undefined ? ["Goal: none was given"] : goalLines(last);
  const past = earlier.length === 0 ? [] : ["Earlier:", ...earlier];
  return ["<summary>", REHEARSAL_LABEL, ...lines, ...past, "</summary>"].join("\n");
};

/** A summary replaces what it sums up, so it must be far shorter: of excerpts a line or two, or none if tasks are many. */
const inBrief = (account: readonly (readonly string[])[]): readonly string[] => {
  const [some, none] = [2, 0].map((most) => account.flatMap((lines) => withExcerpts(lines, most)));
  const isShort = (some ?? []).join(" ").split(/\s+/).length <= MOST_WORDS;
  return (isShort ? some : none) ?? [];
};

const MOST_WORDS = 600;

/** Excerpts stand further in than what they belong to. */
const withExcerpts = (lines: readonly string[], most: number): readonly string[] => {
  let shown = 0;
  return lines.filter((line) => {
    shown = line.startsWith("     ") ? shown + 1 : 0;
    return shown <= most;
  });
};

const goalLines = ({ prompt, tasks, before, next }: Rehearsed): readonly string[] => {
  const account = accountLines({ before: before.done, done: next.done });
  const following = tasks[account.length];
  return [
    "Goal: the last prompt, as it was typed",
    ...prompt.split("\n").map((line) => `> ${line}`),
    `Done: ${account.length} of ${plural(tasks.length, "task")}`,
    ...inBrief(account),
    following === undefined ? "Next: nothing, every task is done" : `Next: ${account.length + 1}. ${following.title}`,
  ];
};

export const readBefore = (summary: string): Before => {
  const section = (heading: string, until: string): readonly string[] => {
    const lines = summary.split("\n");
    const start = lines.findIndex((line) => line.startsWith(heading));
    const end = lines.findIndex((line, index) => index > start && until !== "" && line.startsWith(until));
    return start === -1 ? [] : lines.slice(start + 1, end === -1 ? undefined : end);
  };
  const prompt = section("Goal:", "Done:")
    .filter((line) => line.startsWith("> "))
    .map((line) => line.slice(2));
  const done: string[] = [];
  for (const line of section("Done:", "Next:"))
    if (/^\d+\. /.test(line)) done.push(line);
    else if (done.length > 0) done.push(`${done.pop()}\n${line}`);
  return { prompt: prompt.join("\n"), done, earlier: section("Earlier:", "") };
};
