/** The answer when all tasks are done: to the user, or from a fork to its parent.
 *  Invariant: every text says that no language model wrote it; everything else in it comes from the request.
 *  Elsewhere: excerpts (results.ts), summaries of a conversation (summary.ts). */

import { taggedIn } from "./conversation.ts";
import { FORMS } from "./moves.ts";
import type { Done } from "./replay.ts";
import { excerptOf, plural } from "./results.ts";
import type { Outcome } from "./work.ts";

export const REHEARSAL_LABEL = "[rehearsal engine: no language model is behind this answer]";

const indented = (lines: readonly string[], by: string): readonly string[] => lines.map((line) => `${by}${line}`);

const outcomeLines = ({ action: did, headline, excerpt }: Outcome): readonly string[] => [
  `${did}: ${headline}`,
  ...indented(excerpt, "  "),
];

/** One task with its outcomes. */
const taskLines = ({ task, outcomes }: Done, number: number): readonly string[] => [
  `${number}. ${task.title}`,
  ...indented(outcomes.flatMap(outcomeLines), "   "),
];

/** In a fence, where backticks are shown: they are part of the forms. */
const formLines: readonly string[] = ["A rehearsal follows these forms, alone or as a list:", "```", ...FORMS, "```"];

const isUnknown = ({ task }: Done): boolean => task.moves.some(({ kind }) => kind === "unknown");

/** Reverses the escapes of a notification. */
const plain = (text: string): string =>
  text
    .replaceAll("&apos;", "'")
    .replaceAll("&quot;", '"')
    .replaceAll("&gt;", ">")
    .replaceAll("&lt;", "<")
    .replaceAll("&amp;", "&");

/** The results of tasks that ran in parallel. */
const newsLines = (notifications: readonly string[]): readonly string[] =>
  notifications.flatMap((text) => {
    const [status] = taggedIn(text, "status");
    const [name] = ["description", "label", "task-id", "task_id", "id"].flatMap((tag) => taggedIn(text, tag));
    const [words] = ["result", "report", "summary", "output"].flatMap((tag) => taggedIn(text, tag));
    const title = [plain(name ?? "a task"), ...(status === undefined ? [] : [status])].join(": ");
    return [
      `- ${title}`,
      ...indented(
        excerptOf(
          plain(words ?? text)
            .split("\n")
            .filter((line) => line.trim() !== ""),
        ),
        "  ",
      ),
    ];
  });

const failures = (done: readonly Done[]): number =>
  done.flatMap(({ outcomes }) => outcomes).filter(({ ok }) => !ok).length;

export type Account = {
  /** Tasks done before a summary, as the summary words them. */
  readonly before: readonly string[];
  readonly done: readonly Done[];
};

/** Every task with its outcomes, numbered. */
export const accountLines = ({ before, done }: Account): readonly (readonly string[])[] => [
  ...before.map((text) => text.split("\n")),
  ...done.map((one, index) => taskLines(one, before.length + index + 1)),
];

export const reportText = (account: Account, notifications: readonly string[]): string => {
  const { done } = account;
  const failed = failures(done);
  const parts = [
    [REHEARSAL_LABEL],
    ...accountLines(account),
    ...(failed > 0 && done.length > 1 ? [[`${plural(failed, "step")} did not work; see above.`]] : []),
    ...(done.some(isUnknown) ? [formLines] : []),
    ...(notifications.length > 0 ? [["News of tasks:", ...newsLines(notifications)]] : []),
  ];
  return parts.map((lines) => lines.join("\n")).join("\n\n");
};

/** For a prompt without a task. */
export const emptyText = (): string =>
  [REHEARSAL_LABEL, "", "There is no task in this prompt.", ...formLines].join("\n");

const MOST_WORDS = 480;

const wordsIn = (line: string): number => line.split(/\s+/).filter((word) => word !== "").length;

/** A report may have 500 words; if it is longer, the last lines of the results are cut. */
const cutReport = (lines: readonly string[], tail: readonly string[]): string => {
  let room = MOST_WORDS - tail.reduce((sum, line) => sum + wordsIn(line), 0);
  const end = lines.findIndex((line) => {
    room -= wordsIn(line);
    return room < 0;
  });
  const kept = end === -1 ? lines : [...lines.slice(0, end), "(cut here: a report has at most 500 words)"];
  return [...kept, ...tail].join("\n");
};

/** In the form that the child protocol asks for. */
export const forkReport = (directive: string, account: Account): string => {
  const outcomes = account.done.flatMap((one) => one.outcomes);
  const files = [...new Set(outcomes.flatMap((outcome) => outcome.files))].slice(0, 10);
  const changed = [...new Set(outcomes.flatMap((outcome) => outcome.changed))];
  const issues = outcomes
    .filter(({ ok }) => !ok)
    .slice(0, 8)
    .map(({ action: did, headline }) => `${did}: ${headline}`);
  const scope = excerptOf([directive.replaceAll(/\s+/g, " ")]).join("");
  const tail = [
    ...(files.length > 0 ? [`Key files: ${files.join(", ")}`] : []),
    ...(changed.length > 0 ? [`Files changed: ${changed.join(", ")}`] : []),
    ...(issues.length > 0 ? [`Issues: ${issues.join("; ")}`] : []),
  ];
  const head = `Scope: ${scope} ${REHEARSAL_LABEL}`;
  return cutReport([head, "Result:", ...accountLines(account).flat()], tail);
};
