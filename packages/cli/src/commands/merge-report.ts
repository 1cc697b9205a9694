/** Texts about the outcome of a merge.
 *  Invariant: every conflict is named, and every file that was or would be changed, up to a limit; no name that a
 *  repository or a model chose can control the terminal.
 *  Elsewhere: merging (@prefork/worktrees), the command (merge.ts). */

import type { MergeOutcome, UndoResult } from "@prefork/worktrees";
import { painter, type Style } from "../table.ts";
import { inLine } from "./tasks-store.ts";
import { counted } from "./worktrees-store.ts";

const MOST_FILES = 20;
const LAST_LINES = 12;

type OutcomeSummary = { readonly word: string; readonly style: Style; readonly about: string };

const summarize = (outcome: MergeOutcome): OutcomeSummary => {
  const files = counted(outcome.files.length, "file");
  switch (outcome.kind) {
    case "merged":
      return { word: "merged", style: "good", about: `${files} (merge ${outcome.point})` };
    case "would-merge":
      return { word: "would merge", style: "good", about: outcome.files.length === 0 ? "nothing new" : files };
    case "nothing-new":
      return { word: "merged", style: "good", about: "the checkout already had all of it" };
    case "conflicts":
      return {
        word: outcome.isSkipped ? "skipped" : "not merged",
        style: "bad",
        about: `${counted(outcome.conflicts.length, "conflict")} with this checkout`,
      };
    case "check-failed": {
      const about = outcome.isKept
        ? `the check failed; merge ${outcome.point} is kept`
        : "the check failed; the merge was undone";
      return { word: outcome.isKept ? "merged" : "not merged", style: "bad", about };
    }
    case "failed":
      return { word: "not merged", style: "bad", about: inLine(outcome.reason) };
  }
};

export const outcomeText = (outcome: MergeOutcome, colour: boolean): string => {
  const { word, style, about } = summarize(outcome);
  const { task, label, conflicts, files } = outcome;
  const isChanging = outcome.kind !== "conflicts" && outcome.kind !== "failed";
  const clean = files.filter((file) => !conflicts.some(({ path }) => path === file));
  const name = label === "" ? inLine(task) : `${inLine(task)} (${inLine(label, 60)})`;
  return lines([
    `${painter(colour)(style, word)} ${name}: ${about}`,
    ...conflicts.map(({ path, kind }) => `  ${inLine(path)}: conflict (${inLine(kind)})`),
    ...(isChanging ? listed(clean) : []),
    ...(outcome.kind === "check-failed" ? lastLines(outcome.output) : []),
  ]);
};

const listed = (files: readonly string[]): readonly string[] => [
  ...files.slice(0, MOST_FILES).map((file) => `  ${inLine(file)}`),
  ...(files.length > MOST_FILES ? [`  and ${files.length - MOST_FILES} more`] : []),
];

const lastLines = (output: string): readonly string[] =>
  output
    .split("\n")
    .slice(-LAST_LINES)
    .map((line) => `  | ${inLine(line, 200)}`);

/** What a preview did not reach. */
export const previewAdvice = (tasks: readonly string[], outcomes: readonly MergeOutcome[]): readonly string[] => {
  const rest = tasks.slice(outcomes.length);
  return rest.length === 0 ? [] : [`the merge would stop there; not tried: ${rest.join(", ")}`];
};

/** What to do when the queue stopped early. */
export const adviceFor = (tasks: readonly string[], outcomes: readonly MergeOutcome[]): readonly string[] => {
  const last = outcomes.at(-1);
  const rest = tasks.slice(outcomes.length);
  const points = outcomes.filter(({ kind }) => kind === "merged").length;
  const unresolved = new Set(
    outcomes.flatMap((outcome) => (outcome.kind === "merged" ? (outcome.unresolved ?? []) : [])),
  );
  return [
    ...(last?.kind === "conflicts" && !last.isSkipped
      ? [
          `${last.task} was not merged; choose what to do with --on-conflict: markers, mine, theirs, skip, or hand-back to the fork`,
        ]
      : []),
    ...(last?.kind === "merged" && last.conflicts.length > 0 && unresolved.size === 0
      ? ["one side of each conflict was taken; check the files named above before you continue"]
      : []),
    ...(unresolved.size === 0
      ? []
      : [
          `conflicts are left in ${[...unresolved].map((name) => inLine(name)).join(", ")}; resolve them before you continue`,
        ]),
    ...(rest.length === 0 ? [] : [`not tried: ${rest.join(", ")}`]),
    ...(points === 0 ? [] : [`to undo: prefork merge --undo${points > 1 ? " --family" : ""}`]),
  ];
};

export const undoneText = ({ point, task, files, kept }: UndoResult): string =>
  lines([
    `undone: merge ${point} (${inLine(task)}), ${counted(files.length, "file")} restored`,
    ...listed(files),
    ...(kept === undefined ? [] : [`  the replaced content is kept on ${kept}`]),
  ]);

const lines = (texts: readonly string[]): string => texts.map((text) => `${text}\n`).join("");
