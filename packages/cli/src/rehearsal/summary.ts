/** Writes the summary of a conversation, and reads it when the conversation continues.
 *  Invariant: reading returns what was written: the prompt as typed, and each finished task with its outcomes. So a list
 *  continues after a summary where it stopped, and nothing is done twice.
 *  Elsewhere: when a conversation is summarized, and the text around the summary (context of @prefork/runtime). */

import type { Next } from "./replay.ts";
import { accountLines, REHEARSAL_LABEL } from "./report.ts";
import { excerptOf, plural } from "./results.ts";
import type { Task } from "./tasks.ts";

/** What a summary says about the exchange that was in progress. */
export type Before = {
  readonly prompt: string;
  /** One text for each finished task. */
  readonly done: readonly string[];
  /** Lines about earlier exchanges. */
  readonly earlier: readonly string[];
};

export type Rehearsed = {
  readonly prompt: string;
  readonly tasks: readonly Task[];
  readonly before: Before;
  readonly next: Next;
  readonly notifications: readonly string[];
};

/** It names the tags for the answer and forbids tools; every wording must say that. */
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
  const prompted = rehearsed.filter(({ prompt }) => prompt !== "");
  const last = prompted.at(-1);
  const earlier = [...prompted.slice(0, -1).flatMap(earlierLines), ...(last?.before.earlier ?? [])].slice(
    -MOST_EARLIER,
  );
  const lines = last === undefined ? ["Goal: none was given"] : goalLines(last);
  const past = earlier.length === 0 ? [] : ["Earlier:", ...earlier];
  return ["<summary>", REHEARSAL_LABEL, ...lines, ...past, "</summary>"].join("\n");
};

/** A summary must be much shorter than the conversation: two lines of each excerpt, or none if there are many tasks. */
const inBrief = (account: readonly (readonly string[])[]): readonly string[] => {
  const [some, none] = [2, 0].map((most) => account.flatMap((lines) => withExcerpts(lines, most)));
  const isShort = (some ?? []).join(" ").split(/\s+/).length <= MOST_WORDS;
  return (isShort ? some : none) ?? [];
};

const MOST_WORDS = 600;

/** Excerpts are indented further than the outcome that they belong to. */
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
